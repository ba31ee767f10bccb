//! The private addresses to which connections are allowed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use url::Host;

use crate::address::{is_global, is_metadata};

/// Allowed hosts, addresses and networks, each for one port or for all ports. As text they are
/// separated by commas, such as `crm.internal, 10.1.0.0/16:8080, [::1]:81`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    entries: Vec<(Target, Option<u16>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The host name in a URL, with any addresses.
    Name(String),
    Network(IpNet),
}

/// The error for an entry that is neither a host, nor an address, nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a host, address or network, such as crm.internal:8080, 10.0.0.7, 10.1.0.0/16 or [::1]:81")]
pub struct InvalidEntry(pub String);

impl AllowList {
    /// Whether a request for `host` may connect to `address`. A cloud's metadata service requires
    /// an entry with exactly its address, since entries of names and networks rarely mean to
    /// include it.
    pub fn permits(&self, host: &str, address: SocketAddr) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_metadata = is_metadata(address.ip());
        let is_named = |(target, port): &(Target, Option<u16>)| {
            let is_target = match target {
                Target::Name(name) => !is_metadata && name.eq_ignore_ascii_case(host),
                Target::Network(network) => {
                    let is_exact = network.prefix_len() == network.max_prefix_len();
                    (is_exact || !is_metadata) && network.contains(&address.ip().to_canonical())
                }
            };
            is_target && port.is_none_or(|port| port == address.port())
        };
        (is_global(address.ip()) && !is_metadata) || self.entries.iter().any(is_named)
    }

    /// Whether only globally reachable addresses are allowed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl FromStr for AllowList {
    type Err = InvalidEntry;

    fn from_str(text: &str) -> Result<Self, InvalidEntry> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let entry = |part: &str| entry(part).ok_or_else(|| InvalidEntry(part.to_owned()));
        Ok(Self { entries: parts.map(entry).collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (target, port)) in self.entries.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { ", " })?;
            match (target, port) {
                (Target::Name(name), _) => f.write_str(name)?,
                (Target::Network(network @ IpNet::V6(_)), Some(_)) => write!(f, "[{network}]")?,
                (Target::Network(network), _) => write!(f, "{network}")?,
            }
            port.map_or(Ok(()), |port| write!(f, ":{port}"))?;
        }
        Ok(())
    }
}

fn entry(part: &str) -> Option<(Target, Option<u16>)> {
    if let Some(rest) = part.strip_prefix('[') {
        let (inner, rest) = rest.split_once(']')?;
        let port = if rest.is_empty() { None } else { Some(port(rest.strip_prefix(':')?)?) };
        return Some((network(inner)?, port));
    }
    // Several colons without brackets: an IPv6 address, for all ports.
    let (host, port) = match part.split_once(':') {
        Some((host, rest)) if !rest.contains(':') => (host, Some(port(rest)?)),
        _ => (part, None),
    };
    let target = network(host).or_else(|| match Host::parse(host) {
        // Text that only looks like an address or network is a mistake.
        Ok(Host::Domain(name)) if !name.contains('/') => Some(Target::Name(name.strip_suffix('.').unwrap_or(&name).to_owned())),
        _ => None,
    });
    Some((target?, port))
}

fn network(text: &str) -> Option<Target> {
    let single = || text.parse::<IpAddr>().ok().map(IpNet::from);
    text.parse::<IpNet>().ok().or_else(single).map(Target::Network)
}

fn port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_hosts_addresses_and_networks_with_ports() {
        let list: AllowList =
            " CRM.Internal, intra.example:8080 ,10.1.0.0/16,10.2.0.7:81,[::1]:82,fd00::/8,[fd12::/16]:443 ,".parse().unwrap();
        let permits = |host: &str, address: &str| list.permits(host, address.parse().unwrap());
        assert!(permits("crm.internal", "192.168.0.9:1") && permits("crm.internal.", "[fe80::1]:443"));
        assert!(permits("intra.example", "10.9.9.9:8080") && !permits("intra.example", "10.9.9.9:8081"));
        assert!(permits("any", "10.1.2.3:5") && permits("any", "[::ffff:10.1.2.3]:5") && !permits("any", "10.3.0.1:5"));
        assert!(permits("any", "10.2.0.7:81") && !permits("any", "10.2.0.7:80"));
        assert!(permits("any", "[::1]:82") && !permits("any", "[::1]:81"));
        assert!(permits("any", "[fd77::1]:9") && permits("any", "1.1.1.1:80") && !permits("internal", "127.0.0.1:80"));
        assert_eq!(list.to_string().parse::<AllowList>().unwrap(), list);
        assert!(AllowList::from_str(" , ").unwrap().is_empty());
    }

    #[test]
    fn metadata_services_are_reached_only_if_named_exactly() {
        let spellings = [
            "169.254.169.254",
            "169.254.170.2",
            "168.63.129.16",
            "100.100.100.200",
            "fd00:ec2::254",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "::ffff:168.63.129.16",
            "::100.100.100.200",
            "2002:a83f:8110::1",
            "64:ff9b::168.63.129.16",
            "64:ff9b:1::168.63.129.16",
            "fd99::a9fe:a9fe",
            "::ffff:0:100.100.100.200",
            "2400::5efe:168.63.129.16",
            "2001:0:4136:e378:8000:63bf:57c0:7eef",
        ];
        let broad: AllowList = "0.0.0.0/0, ::/0, cloud.internal".parse().unwrap();
        for spelling in spellings {
            let address: IpAddr = spelling.parse().unwrap();
            let socket = SocketAddr::new(address, 80);
            for list in [&AllowList::default(), &broad] {
                assert!(!list.permits("cloud.internal", socket) && !list.permits(spelling, socket), "{spelling} {list}");
            }
            let exact: AllowList = format!("[{}]:80", address.to_canonical()).parse().unwrap();
            assert!(exact.permits("any", socket) && !exact.permits("any", SocketAddr::new(address, 81)), "{spelling}");
        }
        assert!(broad.permits("any", "10.0.0.1:80".parse().unwrap()) && broad.permits("any", "[fd00::1]:80".parse().unwrap()));
    }

    #[test]
    fn other_entries_are_refused_by_name() {
        for text in [
            "10.0.0.0/33",
            "host:0",
            "host:70000",
            "[::1",
            "[::1]x",
            "[host]:80",
            "a b",
            "http://host",
            "10.0.0.300/8",
            ":80",
            "1.2.3.4/x",
        ] {
            assert_eq!(text.parse::<AllowList>(), Err(InvalidEntry(text.to_owned())), "{text}");
        }
    }
}
