//! Bounds on work in flight: the bytes of bodies, and the number of waiting queries.
//!
//! Mailboxes are not bounded (an actor's capacity is per sender), so the bound is here: a sender
//! takes its bytes from a pool first. They are returned when the events are applied, not when the
//! sender stops waiting.
//!
//! A pool is shared. The amount of one holder (a project, a network of addresses, an organization)
//! may not exceed a third of the free part: a single holder gets a quarter of the pool, two get a
//! fifth each, and so on, and there is always room for the next one. To let one large batch fit
//! into a small pool of bytes, a holder may always have 4 MiB (at most half of the pool), as long
//! as an eighth of the pool stays free.
//!
//! In a pool of bytes, a sender (one project at one address, say) gets less than its project and
//! its address do: a fifth of the pool. So a sender alone uses up neither the share of its project
//! nor that of its address.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dashmap::{DashMap, Entry};
use headcount_domain::{OrganizationId, ProjectId};

use crate::erasures::Epoch;

/// The largest size of one request: the largest batch.
const LARGEST_BODY_BYTES: usize = 4 << 20;
/// A holder may have one part in this many of the free part.
const PART_OF_FREE: usize = 3;
/// The same for a sender.
const SENDER_PART_OF_FREE: usize = 4;
/// How often a waiting request checks for room.
const POLL: Duration = Duration::from_millis(5);
/// One part in this many of the pool is reserved for holders that have little.
const RESERVE: usize = 8;

/// A holder of a bounded share of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A project: all events that are sent to it.
    Project(ProjectId),
    /// An organization: all questions about it.
    Organization(OrganizationId),
    /// The addresses of one client: an IPv4 address, or the /64 network of an IPv6 address.
    Network(IpAddr),
}

impl Holder {
    /// The holder that an address belongs to.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Network(match address.to_canonical() {
            IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// The reason why a gate admitted nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The engine takes no events now, or none of this project.
    #[error("{0}")]
    Unavailable(&'static str),
    /// The pool is used up.
    #[error("too many bytes are under way")]
    Full,
    /// The holder has used up its share of the pool.
    #[error("too many bytes of this {} are under way", kind_of(.0))]
    Share(Holder),
    /// The sender has used up its share of the pool.
    #[error("too many bytes of this sender are under way")]
    Sender,
}

fn kind_of(holder: &Holder) -> &'static str {
    match holder {
        Holder::Project(_) => "project",
        Holder::Organization(_) => "organization",
        Holder::Network(_) => "address",
    }
}

/// The account that an amount is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Account {
    Of(Holder),
    /// The first holder, which may be unknown, at an address.
    Sender([Option<Holder>; 2]),
}

impl From<Account> for Refused {
    fn from(account: Account) -> Self {
        match account {
            Account::Of(holder) => Self::Share(holder),
            Account::Sender(_) => Self::Sender,
        }
    }
}

/// A shared pool.
#[derive(Debug, Clone)]
pub struct Gate {
    pool: Arc<Pool>,
}

struct Pool {
    limit: usize,
    /// The amount that a sender may have while the reserve is free, whatever the number of other
    /// holders. 0: senders have no share of their own.
    always: usize,
    used: AtomicUsize,
    /// The amount of each account. Accounts without any are absent.
    held: DashMap<Account, usize, ahash::RandomState>,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("limit", &self.limit).field("used", &self.used).finish_non_exhaustive()
    }
}

impl Pool {
    fn take(&self, holders: [Option<Holder>; 2], amount: usize) -> Result<(), Refused> {
        let within = |used: usize| used.checked_add(amount).filter(|used| *used <= self.limit);
        let used = self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, within).map_err(|_| Refused::Full)?;
        let accounts = self.accounts(holders);
        for (place, account) in accounts.iter().enumerate() {
            if let Some(account) = account
                && !self.take_as(*account, amount, used + amount)
            {
                self.give(&accounts[..place], amount);
                return Err((*account).into());
            }
        }
        Ok(())
    }

    fn accounts(&self, holders: [Option<Holder>; 2]) -> [Option<Account>; 3] {
        let [first, address] = holders;
        let sender = address.filter(|_| self.always > 0).map(|_| Account::Sender(holders));
        [sender, first.map(Account::Of), address.map(Account::Of)]
    }

    /// Adds to the amount of an account, if it may have that much when `used` of the pool is taken.
    fn take_as(&self, account: Account, amount: usize, used: usize) -> bool {
        let free = self.limit.saturating_sub(used);
        let (part, always) = match account {
            Account::Sender(_) => (SENDER_PART_OF_FREE, self.always),
            // This leaves room beside the largest body of one sender.
            Account::Of(_) if self.always > 0 => (PART_OF_FREE, self.always + self.limit / RESERVE),
            Account::Of(_) => (PART_OF_FREE, 0),
        };
        let may_have = |after: usize| after <= free / part || (after <= always && free >= self.limit / RESERVE);
        match self.held.entry(account) {
            Entry::Occupied(mut held) if may_have(held.get() + amount) => *held.get_mut() += amount,
            Entry::Vacant(nothing) if may_have(amount) => drop(nothing.insert(amount)),
            _ => return false,
        }
        true
    }

    fn give(&self, accounts: &[Option<Account>], amount: usize) {
        for account in accounts.iter().flatten() {
            if let Entry::Occupied(mut held) = self.held.entry(*account) {
                *held.get_mut() = held.get().saturating_sub(amount);
                if *held.get() == 0 {
                    held.remove();
                }
            }
        }
        self.used.fetch_sub(amount, Ordering::AcqRel);
    }
}

/// An amount taken from a [`Gate`]'s pool. Dropping it returns the amount.
#[derive(Debug)]
pub struct Permit {
    pool: Arc<Pool>,
    holders: [Option<Holder>; 2],
    amount: usize,
    /// The list of erased identities that the events were checked against.
    epoch: Option<Epoch>,
}

impl Gate {
    /// Creates a gate with a pool of `limit`.
    pub fn new(limit: usize) -> Self {
        Self::with(limit, 0)
    }

    /// Creates a gate for bytes of request bodies. A sender may always have one body of the largest
    /// size.
    pub fn of_bodies(limit_bytes: usize) -> Self {
        Self::with(limit_bytes, LARGEST_BODY_BYTES.min(limit_bytes / 2))
    }

    fn with(limit: usize, always: usize) -> Self {
        Self { pool: Arc::new(Pool { limit, always, used: AtomicUsize::new(0), held: DashMap::default() }) }
    }

    /// Takes `amount` without a holder. Returns `None` if too little is free.
    #[must_use]
    pub fn take(&self, amount: usize) -> Option<Permit> {
        self.take_for([None, None], amount).ok()
    }

    /// Takes `amount` for these holders. Each must have room for it in its share. The second one is
    /// an address.
    ///
    /// # Errors
    /// The pool, or the share of a holder, is used up.
    pub fn take_for(&self, holders: [Option<Holder>; 2], amount: usize) -> Result<Permit, Refused> {
        self.pool.take(holders, amount)?;
        Ok(Permit { pool: Arc::clone(&self.pool), holders, amount, epoch: None })
    }

    /// Like [`Self::take_for`], but waits for room.
    ///
    /// # Errors
    /// There was no room `within` that time.
    pub async fn take_within(&self, holders: [Option<Holder>; 2], amount: usize, within: Duration) -> Result<Permit, Refused> {
        let began = Instant::now();
        loop {
            match self.take_for(holders, amount) {
                Err(_) if began.elapsed() < within => tokio::time::sleep(POLL).await,
                taken => return taken,
            }
        }
    }

    /// Whether a holder has taken any amount.
    pub(crate) fn has(&self, holder: Holder) -> bool {
        self.pool.held.contains_key(&Account::Of(holder))
    }

    /// The amount taken.
    pub fn used(&self) -> usize {
        self.pool.used.load(Ordering::Relaxed)
    }

    /// The size of the pool.
    pub fn limit(&self) -> usize {
        self.pool.limit
    }
}

impl Permit {
    /// Stores the epoch that the events were checked against, while they are in flight.
    pub(crate) fn keep(&mut self, epoch: Epoch) {
        self.epoch = Some(epoch);
    }

    /// Extends this to a permit for at least `amount`.
    ///
    /// # Errors
    /// Too little is free for its holders. Nothing is taken then.
    pub fn cover(&mut self, amount: usize) -> Result<(), Refused> {
        let more = amount.saturating_sub(self.amount);
        if more > 0 {
            self.pool.take(self.holders, more)?;
            self.amount += more;
        }
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.pool.give(&self.pool.accounts(self.holders), self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn project(number: u64) -> [Option<Holder>; 2] {
        [Some(Holder::Project(ProjectId(number))), None]
    }

    /// The amount that a holder gets in pieces of 64 KiB.
    fn all_it_gets(gate: &Gate, holders: [Option<Holder>; 2]) -> (usize, Vec<Permit>) {
        let permits: Vec<Permit> = std::iter::from_fn(|| gate.take_for(holders, 64 << 10).ok()).collect();
        (permits.iter().map(|permit| permit.amount).sum(), permits)
    }

    #[test]
    fn what_is_taken_comes_back() {
        let gate = Gate::new(100);
        let mut first = gate.take(60).unwrap();
        assert!(gate.take(41).is_none());
        assert!(first.cover(100).is_ok() && first.cover(50).is_ok() && first.cover(101).is_err());
        assert_eq!(gate.used(), 100);
        drop(first);
        assert_eq!(gate.used(), 0);
        assert!(gate.take(100).is_some());
    }

    #[test]
    fn one_holder_gets_a_quarter_and_more_holders_get_less_each() {
        let gate = Gate::of_bodies(64 * MIB);
        let (first, mut held) = all_it_gets(&gate, project(1));
        assert_eq!(first, 16 * MIB);
        assert_eq!(gate.take_for(project(1), 64 << 10).unwrap_err(), Refused::Share(Holder::Project(ProjectId(1))));
        for number in 2..200 {
            let (here, permits) = all_it_gets(&gate, project(number));
            assert!((64 << 10..=first).contains(&here), "holder {number} gets {here}");
            held.extend(permits);
            if gate.used() > gate.limit() / 8 * 7 {
                break;
            }
        }
        assert!(gate.take_for(project(1_000), 64 << 10).is_ok(), "somebody new always gets something");
        drop(held);
        assert_eq!(gate.used(), 0);
        assert!(gate.pool.held.is_empty(), "who has nothing is forgotten");
    }

    #[test]
    fn one_address_does_not_get_more_by_using_many_keys() {
        let gate = Gate::of_bodies(64 * MIB);
        let address: IpAddr = "2001:db8::1".parse().unwrap();
        let neighbour: IpAddr = "2001:db8::ffff".parse().unwrap();
        let mut held = Vec::new();
        for number in 0..100 {
            let holder = Holder::of_address(if number % 2 == 0 { address } else { neighbour });
            held.extend(all_it_gets(&gate, [project(number)[0], Some(holder)]).1);
        }
        assert_eq!(gate.used(), 16 * MIB);
        let (same, other) = (Holder::of_address(neighbour), Holder::of_address("192.0.2.1".parse().unwrap()));
        assert_eq!(gate.take_for([project(500)[0], Some(same)], 64 << 10).unwrap_err(), Refused::Share(same));
        assert!(gate.take_for([project(500)[0], Some(other)], 64 << 10).is_ok());
        assert_eq!(gate.used(), 16 * MIB, "what a refused or dropped permit took is free again");
        drop(held);
        assert!(gate.pool.held.is_empty());
    }

    #[test]
    fn bytes_of_no_project_are_those_of_their_address() {
        let gate = Gate::of_bodies(64 * MIB);
        let address = |number: u8| [None, Some(Holder::of_address(IpAddr::from([192, 0, 2, number])))];
        let (first, held) = all_it_gets(&gate, address(1));
        assert!((12 * MIB..=64 * MIB / 5).contains(&first), "{first}");
        assert_eq!(gate.take_for(address(1), 64 << 10).unwrap_err(), Refused::Sender);
        for other in [address(2), project(1), [project(1)[0], address(1)[1]]] {
            assert!(gate.take_for(other, 64 << 10).is_ok(), "{other:?}");
        }
        drop(held);
        assert_eq!(gate.used(), 0);
    }

    /// A sender is one public key at one address. Other keys there and other visitors of its
    /// project don't pay for it.
    #[test]
    fn a_sender_uses_up_neither_its_project_nor_its_address() {
        for limit in [4 * MIB, 8 * MIB, 64 * MIB] {
            let gate = Gate::of_bodies(limit);
            let address = |number: u8| Some(Holder::of_address(IpAddr::from([192, 0, 2, number])));
            let (all, held) = all_it_gets(&gate, [project(1)[0], address(1)]);
            assert!(all >= limit / 6 && all <= limit / 2, "{all} of {limit}");
            for other in
                [[project(2)[0], address(1)], [project(1)[0], address(2)], [None, address(1)], [project(2)[0], address(2)]]
            {
                let (more, permits) = all_it_gets(&gate, other);
                assert!(more >= limit / 32, "{other:?} gets {more} of {limit}");
                drop(permits);
            }
            drop(held);
            assert_eq!(gate.used(), 0);
            assert!(gate.pool.held.is_empty());
        }
    }

    #[test]
    fn an_organization_gets_a_quarter_of_the_places_for_questions() {
        let gate = Gate::new(4_096);
        let of = |number| [Some(Holder::Organization(OrganizationId(number))), None];
        let held: Vec<Permit> = std::iter::from_fn(|| gate.take_for(of(1), 1).ok()).collect();
        assert_eq!(held.len(), 1_024);
        assert!(gate.take_for(of(2), 500).is_ok());
    }

    #[test]
    fn the_largest_body_fits_into_a_small_pool_and_leaves_room_for_events() {
        let gate = Gate::of_bodies(8 * MIB);
        let address = Some(Holder::of_address(IpAddr::from([192, 0, 2, 1])));
        let mut batch = gate.take_for([project(1)[0], address], 64 << 10).unwrap();
        while batch.amount < LARGEST_BODY_BYTES {
            batch.cover(batch.amount + (64 << 10)).unwrap();
        }
        assert!(batch.cover(LARGEST_BODY_BYTES + 1).is_err());
        let (second, _held) = all_it_gets(&gate, project(2));
        assert!(second >= 2 * MIB, "{second}");
        assert!(gate.take_for(project(3), 64 << 10).is_ok());
    }
}
