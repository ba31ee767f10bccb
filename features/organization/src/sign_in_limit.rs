//! The limit of sign-ins by address, so that nobody can try many secrets. The table is bounded: it
//! has the addresses of the last second.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;

/// How many tries an address has in any second.
const TRIES_A_SECOND: usize = 5;
/// The most addresses that may try within a second. Others are refused meanwhile.
const MAX_ADDRESSES: usize = 8_192;
const SECOND: Duration = Duration::from_secs(1);

/// The tries of the last second.
#[derive(Debug, Default)]
pub(crate) struct SignInLimit(Mutex<HashMap<IpAddr, Tries>>);

/// When the last tries of an address were, oldest first.
#[derive(Debug, Default)]
struct Tries {
    times: [Option<Duration>; TRIES_A_SECOND],
}

impl Tries {
    /// Whether a try at `now` is one too many. If not, it counts.
    fn take(&mut self, now: Duration) -> bool {
        let is_allowed = self.times[0].is_none_or(|time| is_over(time, now));
        if is_allowed {
            self.times.rotate_left(1);
            self.times[TRIES_A_SECOND - 1] = Some(now);
        }
        is_allowed
    }

    fn is_forgotten(&self, now: Duration) -> bool {
        self.times[TRIES_A_SECOND - 1].is_none_or(|time| is_over(time, now))
    }
}

fn is_over(time: Duration, now: Duration) -> bool {
    now.saturating_sub(time) >= SECOND
}

impl SignInLimit {
    /// Counts a try of an address at `now`, which counts from any origin. Returns whether it may be made.
    pub(crate) fn take(&self, address: Option<IpAddr>, now: Duration) -> bool {
        let address = network_of(address.unwrap_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED)));
        let mut table = self.0.lock();
        if table.len() >= MAX_ADDRESSES && !table.contains_key(&address) {
            table.retain(|_, tries| !tries.is_forgotten(now));
            if table.len() >= MAX_ADDRESSES {
                return false;
            }
        }
        table.entry(address).or_default().take(now)
    }
}

/// The part of an address that is one customer's: an IPv4 address, or the first 64 bits of an IPv6 one.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn an_address_has_five_tries_in_any_second() {
        let (limit, ada) = (SignInLimit::default(), Some(IpAddr::from([192, 0, 2, 1])));
        let table = [(0, true), (100, true), (200, true), (300, true), (400, true), (400, false), (999, false), (1_000, true)];
        for (at, allowed) in table {
            assert_eq!(limit.take(ada, ms(at)), allowed, "{at}");
        }
        assert!(!limit.take(ada, ms(1_050)) && limit.take(ada, ms(1_100)));
        assert!(limit.take(Some(IpAddr::from([192, 0, 2, 2])), ms(1_050)), "another address");
    }

    #[test]
    fn addresses_of_one_network_share_their_tries() {
        let limit = SignInLimit::default();
        let address = |last: u16| Some(IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, 0, last]));
        let taken = (0..6).filter(|last| limit.take(address(*last), ms(0))).count();
        assert_eq!(taken, TRIES_A_SECOND);
        assert!(limit.take(Some(IpAddr::from([0x2001, 0xdb8, 0, 2, 0, 0, 0, 1])), ms(0)));
    }

    #[test]
    fn the_table_is_bounded() {
        let limit = SignInLimit::default();
        let address = |i: usize| Some(IpAddr::from(u32::try_from(i).unwrap().to_be_bytes()));
        for i in 0..MAX_ADDRESSES {
            assert!(limit.take(address(i), ms(0)));
        }
        assert!(!limit.take(address(MAX_ADDRESSES), ms(999)) && limit.take(address(0), ms(999)));
        assert!(limit.take(address(MAX_ADDRESSES), ms(1_000)), "those of before are forgotten");
        assert_eq!(limit.0.lock().len(), 2);
    }
}
