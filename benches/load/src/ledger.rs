//! The acknowledged events, to compare with the server's counts.

use std::sync::atomic::{AtomicU64, Ordering};

use super::events::EventWriter;
use super::spread::{Spread, UserRange};

/// The acknowledged events of one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Acknowledged {
    /// Recorded events.
    pub(crate) events: u64,
    /// Orders among them.
    pub(crate) orders: u64,
    /// Events with an `external_id` that was recorded before.
    pub(crate) duplicates: u64,
    /// Their users.
    pub(crate) users: u64,
}

#[derive(Debug, Default)]
struct ProjectEntry {
    events: AtomicU64,
    orders: AtomicU64,
    duplicates: AtomicU64,
    /// Requests with an unknown outcome.
    uncertain: AtomicU64,
}

/// The acknowledged events by project, including the warm-up.
#[derive(Debug)]
pub(crate) struct Ledger {
    projects: Box<[ProjectEntry]>,
    users: Box<[AtomicU64]>,
    spread: Spread,
}

impl Ledger {
    /// Creates an empty ledger.
    pub(crate) fn new(projects: usize, spread: Spread) -> Self {
        let words = usize::try_from(spread.users() / 64 + 1).unwrap_or(1);
        Self {
            projects: (0..projects).map(|_| ProjectEntry::default()).collect(),
            users: (0..words).map(|_| AtomicU64::new(0)).collect(),
            spread,
        }
    }

    /// Notes that these events of a project were recorded.
    pub(crate) fn recorded(&self, project: usize, numbers: impl Iterator<Item = u64>, events: &EventWriter) {
        let Some(entry) = self.projects.get(project) else { return };
        let users = self.spread.users_of(project);
        let (mut count, mut orders) = (0, 0);
        for number in numbers {
            count += 1;
            orders += u64::from(events.is_order(number));
            let user = EventWriter::user(number, users);
            if let Some(word) = usize::try_from(user / 64).ok().and_then(|at| self.users.get(at)) {
                word.fetch_or(1 << (user % 64), Ordering::Relaxed);
            }
        }
        entry.events.fetch_add(count, Ordering::Relaxed);
        entry.orders.fetch_add(orders, Ordering::Relaxed);
    }

    /// Notes that this many events of a project were duplicates.
    pub(crate) fn duplicates(&self, project: usize, count: u64) {
        if let Some(entry) = self.projects.get(project) {
            entry.duplicates.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Notes that the outcome of a request is unknown.
    pub(crate) fn uncertain(&self, project: usize) {
        if let Some(entry) = self.projects.get(project) {
            entry.uncertain.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether an event of this user was acknowledged.
    pub(crate) fn has_user(&self, user: u64) -> bool {
        let word = usize::try_from(user / 64).ok().and_then(|at| self.users.get(at));
        word.is_some_and(|word| word.load(Ordering::Relaxed) >> (user % 64) & 1 == 1)
    }

    /// The acknowledged events of a project, and whether the server may have recorded more.
    pub(crate) fn of(&self, project: usize) -> (Acknowledged, bool) {
        let Some(entry) = self.projects.get(project) else { return (Acknowledged::default(), false) };
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let acknowledged = Acknowledged {
            events: of(&entry.events),
            orders: of(&entry.orders),
            duplicates: of(&entry.duplicates),
            users: self.users_in(self.spread.users_of(project)),
        };
        (acknowledged, of(&entry.uncertain) > 0)
    }

    fn users_in(&self, range: UserRange) -> u64 {
        let end = range.start + range.size;
        let mut user = range.start;
        let mut count = 0;
        while user < end {
            let bits = (64 - user % 64).min(end - user);
            let mask = if bits == 64 { u64::MAX } else { ((1 << bits) - 1) << (user % 64) };
            let word = usize::try_from(user / 64).ok().and_then(|at| self.users.get(at));
            count += word.map_or(0, |word| u64::from((word.load(Ordering::Relaxed) & mask).count_ones()));
            user += bits;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::ORDER_EVERY;

    #[test]
    fn events_orders_and_users_are_counted_by_project() {
        let events = EventWriter::new("run", true);
        for (projects, users) in [(1, 1_000), (3, 1_000), (3, 64), (7, 129)] {
            let spread = Spread::new(projects, users, 0);
            let ledger = Ledger::new(projects, spread);
            for project in 0..projects {
                // Twice the same: users are counted once.
                for _ in 0..2 {
                    ledger.recorded(project, 0..10, &events);
                }
                let distinct: std::collections::BTreeSet<u64> =
                    (0..10).map(|number| EventWriter::user(number, spread.users_of(project))).collect();
                assert!(distinct.iter().all(|user| ledger.has_user(*user)));
                let expected = Acknowledged { events: 20, orders: 2, duplicates: 0, users: distinct.len() as u64 };
                assert_eq!(ledger.of(project), (expected, false), "{projects} {users} {project}");
            }
        }
        assert_eq!(ORDER_EVERY, 16);
    }

    #[test]
    fn what_is_uncertain_is_of_one_project() {
        let ledger = Ledger::new(2, Spread::new(2, 10, 0));
        ledger.uncertain(1);
        ledger.duplicates(1, 3);
        assert_eq!(ledger.of(0), (Acknowledged::default(), false));
        assert_eq!(ledger.of(1), (Acknowledged { duplicates: 3, ..Acknowledged::default() }, true));
        assert_eq!(ledger.of(2), (Acknowledged::default(), false));
        assert!(!ledger.has_user(5));
    }
}
