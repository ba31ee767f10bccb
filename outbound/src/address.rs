//! Which addresses are globally reachable.
//!
//! The rules follow the IANA registries of special-purpose addresses for IPv4 and IPv6. Entries for
//! single protocols (anycast relays, ORCHID) are left out, since no web server uses them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether the address is globally reachable. For an IPv6 address with an embedded IPv4 address,
/// the IPv4 address decides.
pub(crate) fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => embedded(address).map_or_else(|| is_global_v6(address), is_global_v4),
    }
}

/// Whether a cloud has a metadata service at the address, which gives secrets or instructions to
/// its machines. Some of these addresses are public.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local() || METADATA_V4.contains(&address),
        IpAddr::V6(address) => {
            let [.., a, b, c, d] = address.octets();
            // A network may translate the last 32 bits of its own prefix.
            METADATA_V6.contains(&address)
                || METADATA_V4.contains(&Ipv4Addr::new(a, b, c, d))
                || embedded(address).is_some_and(|address| is_metadata(address.into()))
        }
    }
}

/// AWS and others, Azure, Alibaba.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(169, 254, 169, 254), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(100, 100, 100, 200)];
/// AWS, Google, Oracle, Scaleway.
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
];

fn is_global_v4(address: Ipv4Addr) -> bool {
    let is_special = match address.octets() {
        // This network, private networks, loopback.
        [0 | 10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] => true,
        // Shared by customers of a provider; link-local, where clouds have their metadata.
        [100, 64..=127, ..] | [169, 254, ..] => true,
        // Protocol assignments, documentation, old 6to4 relays.
        [192, 0, 0 | 2, _] | [198, 51, 100, _] | [203, 0, 113, _] | [192, 88, 99, _] => true,
        // Benchmarks; multicast, reserved and broadcast.
        [198, 18 | 19, ..] | [224..=255, ..] => true,
        _ => false,
    };
    !is_special
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        // Protocol assignments, documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // Only this range is assigned to networks; everything else is local, multicast or reserved.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Returns the IPv4 address to which packets for an IPv6 address are finally sent.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // Mapped, compatible (including :: and ::1), translated by NAT64 and by its predecessor.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            Some(from(high, low))
        }
        // ISATAP, in any network. 6to4; Teredo, inverted.
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(from(high, low)),
        [0x2002, high, low, ..] => Some(from(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(from(!high, !low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_are(expected: bool, addresses: &str) {
        for address in addresses.split_whitespace() {
            assert_eq!(is_global(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn special_addresses_are_not_global() {
        all_are(
            false,
            "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1",
        );
        all_are(false, "172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7");
        all_are(false, "203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255");
        all_are(
            true,
            "1.1.1.1 9.255.255.255 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.17.0.1 198.20.0.1 223.255.255.255",
        );
        all_are(
            false,
            ":: ::1 fe80::1 febf::1 fc00::1 fd00:ec2::254 ff02::1 100::1 2001:db8::1 2001:2::1 2001:10::1 2001:20::1 3fff::1 5f00::1",
        );
        all_are(false, "64:ff9b:1::1 4000::1 fec0::1");
        all_are(true, "2606:4700:4700::1111 2001:4860:4860::8888 2a00:1450:4001::1 2400::1 3ffe::1");
    }

    #[test]
    fn an_ipv6_address_that_holds_an_ipv4_address_is_as_global_as_that() {
        all_are(false, "::ffff:127.0.0.1 ::ffff:10.0.0.1 ::127.0.0.1 64:ff9b::169.254.169.254 ::ffff:0:192.168.0.1");
        all_are(
            false,
            "2002:7f00:1::1 2002:a9fe:a9fe:: 2001:0:4136:e378:8000:63bf:80ff:fffe 2400::5efe:10.0.0.1 2400::200:5efe:127.0.0.1",
        );
        all_are(true, "::ffff:1.1.1.1 64:ff9b::8.8.8.8 2002:808:808::1 2001:0:4136:e378:8000:63bf:f7f7:f7f7");
    }
}
