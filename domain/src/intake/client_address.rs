//! The address of a visitor, in one form for all spellings of an IP address.

use core::net::IpAddr;
use std::fmt;

/// The address of a visitor. All spellings of an IP address are equal. Any other text from a server
/// stands for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress<'a>(IpOrText<'a>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IpOrText<'a> {
    /// In canonical form: an IPv4 address is never mapped into IPv6.
    Ip(IpAddr),
    Other(&'a str),
}

impl<'a> ClientAddress<'a> {
    /// Parses the text of an address. Some servers send a host name or their own number instead.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        // In a list from proxies, the first address is the visitor's.
        let first = text.split_once(',').map_or(text, |(first, _)| first);
        ip_of(first).map_or(Self(IpOrText::Other(text)), Self::from)
    }

    /// Returns the IP address, if it is one.
    #[must_use]
    pub fn ip(self) -> Option<IpAddr> {
        match self.0 {
            IpOrText::Ip(address) => Some(address),
            IpOrText::Other(_) => None,
        }
    }
}

impl From<IpAddr> for ClientAddress<'_> {
    fn from(address: IpAddr) -> Self {
        Self(IpOrText::Ip(address.to_canonical()))
    }
}

impl fmt::Display for ClientAddress<'_> {
    /// Writes the canonical form (RFC 5952), or the text as sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpOrText::Ip(address) => address.fmt(f),
            IpOrText::Other(text) => f.write_str(text),
        }
    }
}

/// Parses an IP address as proxies write it: with a port, in brackets, in quotes, or with a zone.
#[must_use]
pub fn ip_of(text: &str) -> Option<IpAddr> {
    let text = text.trim().trim_matches('"').trim();
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => match text.split_once(':') {
            // Several colons mean an IPv6 address without a port.
            Some((host, port)) if !port.contains(':') => (host, &text[host.len()..]),
            _ => (text, ""),
        },
    };
    // RFC 7239 allows an obfuscated port.
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
    let has_port = port.trim().is_empty() || port.trim().strip_prefix(':').is_some_and(|port| is_port(port.trim()));
    let host = host.split_once('%').map_or(host, |(host, _zone)| host);
    let address = host.trim().parse::<IpAddr>().ok().filter(|_| has_port)?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_an_address_are_one() {
        let table = [
            ("1.2.3.4", "1.2.3.4"),
            (" 1.2.3.4 ", "1.2.3.4"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
            ("::FFFF:102:304", "1.2.3.4"),
            ("0:0:0:0:0:ffff:1.2.3.4", "1.2.3.4"),
            ("2001:db8::1", "2001:db8::1"),
            ("2001:0DB8:0:0:0000::1", "2001:db8::1"),
            ("::", "::"),
            ("1.2.3.4:80", "1.2.3.4"),
            ("1.2.3.4:", "1.2.3.4"),
            (" \"1.2.3.4:52341\"", "1.2.3.4"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("\"[2001:DB8::1]:443\"", "2001:db8::1"),
            ("[::ffff:1.2.3.4]:443", "1.2.3.4"),
            ("[2001:db8::1]:_obf", "2001:db8::1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%25eth0]:80", "fe80::1"),
            ("1.2.3.4, 10.0.0.1", "1.2.3.4"),
            ("1.2.3.4:80,10.0.0.1:80", "1.2.3.4"),
        ];
        for (text, canonical) in table {
            let address = ClientAddress::parse(text);
            assert_eq!((address.to_string().as_str(), address.ip()), (canonical, canonical.parse().ok()), "{text}");
            assert_eq!(address, ClientAddress::parse(canonical), "{text}");
        }
        let mapped: IpAddr = "::ffff:1.2.3.4".parse().unwrap();
        assert_eq!(ClientAddress::from(mapped), ClientAddress::parse("1.2.3.4"));
    }

    #[test]
    fn other_texts_stand_for_themselves() {
        for text in [
            "a.host",
            "1.2.3",
            "a.host:80",
            "01.2.3.4",
            "[1.2.3.4",
            "[::1]80",
            "1.2.3.4:8 0",
            "visitor 7",
            " x ",
            "",
            ",",
            "[]:",
            "unknown",
        ] {
            let address = ClientAddress::parse(text);
            assert_eq!((address.to_string().as_str(), address.ip()), (text, None));
        }
    }
}
