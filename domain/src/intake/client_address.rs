//! The address of a visitor: one for all spellings of an IP address.

use core::net::IpAddr;
use std::fmt;

/// The address of a visitor. Equal for all spellings of one IP address; any other text that a server sent in its place
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
    /// Reads the text that stands for an address. Some servers send the name of a host, or a number of their own.
    #[must_use]
    pub fn parse(text: &'a str) -> Self {
        match text.trim().parse::<IpAddr>() {
            Ok(address) => address.into(),
            Err(_) => Self(IpOrText::Other(text)),
        }
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
    /// Writes the canonical form (RFC 5952), or the text as it was sent.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpOrText::Ip(address) => address.fmt(f),
            IpOrText::Other(text) => f.write_str(text),
        }
    }
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
        for text in ["a.host", "1.2.3", "1.2.3.4:80", "01.2.3.4", "fe80::1%eth0", "visitor 7", " x "] {
            let address = ClientAddress::parse(text);
            assert_eq!((address.to_string().as_str(), address.ip()), (text, None));
        }
    }
}
