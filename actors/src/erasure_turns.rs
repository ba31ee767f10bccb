//! Turns to erase identities or opt them in, one at a time for each organization.

use std::collections::HashMap;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::OrganizationId;
use parking_lot::{Condvar, Mutex};

/// How many requests may wait for their turn in an organization. Each occupies a thread.
const MAX_WAITING: usize = 32;

/// The turns of all organizations.
#[derive(Debug, Default)]
pub(crate) struct ErasureTurns {
    /// The organizations with a turn taken, or requests waiting for it.
    organizations: Mutex<HashMap<OrganizationId, Queue>>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    is_taken: bool,
    waiting: usize,
}

/// The turn of an organization. Only one exists at a time.
#[derive(Debug)]
pub(crate) struct ErasureTurn<'t> {
    turns: &'t ErasureTurns,
    organization: OrganizationId,
}

impl ErasureTurns {
    /// Waits for the turn of an organization, for at most `patience`. Returns `None` if the turn is
    /// still taken, or too many requests wait.
    pub(crate) fn take(&self, organization: OrganizationId, patience: Duration) -> Option<ErasureTurn<'_>> {
        let until = Stopwatch::now() + patience;
        let mut organizations = self.organizations.lock();
        let queue = organizations.entry(organization).or_default();
        if queue.is_taken {
            if queue.waiting >= MAX_WAITING {
                return None;
            }
            queue.waiting += 1;
            let is_taken = |organizations: &HashMap<OrganizationId, Queue>| {
                organizations.get(&organization).is_some_and(|queue| queue.is_taken)
            };
            while is_taken(&organizations) && !self.ended.wait_until(&mut organizations, until).timed_out() {}
            let queue = organizations.entry(organization).or_default();
            queue.waiting -= 1;
            if queue.is_taken {
                return None;
            }
        }
        organizations.entry(organization).or_default().is_taken = true;
        Some(ErasureTurn { turns: self, organization })
    }
}

impl Drop for ErasureTurn<'_> {
    fn drop(&mut self) {
        let mut organizations = self.turns.organizations.lock();
        if let Some(queue) = organizations.get_mut(&self.organization) {
            queue.is_taken = false;
            if queue.waiting == 0 {
                organizations.remove(&self.organization);
            }
        }
        drop(organizations);
        self.turns.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    const A: OrganizationId = OrganizationId(1);
    const B: OrganizationId = OrganizationId(2);
    const SOON: Duration = Duration::from_secs(30);

    #[test]
    fn an_organization_waits_for_no_other_one() {
        let turns = ErasureTurns::default();
        let of_a = turns.take(A, SOON).unwrap();
        let began = Stopwatch::now();
        assert!(turns.take(A, Duration::from_millis(30)).is_none() && began.elapsed() >= Duration::from_millis(30));
        let of_b = turns.take(B, SOON).unwrap();
        drop(of_a);
        assert!(turns.take(A, Duration::ZERO).is_some());
        assert!(turns.take(B, Duration::ZERO).is_none());
        drop(of_b);
        assert!(turns.organizations.lock().is_empty(), "nothing is kept of who has had a turn");
    }

    #[test]
    fn some_wait_and_the_others_are_refused_at_once() {
        let (turns, ended) = (ErasureTurns::default(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let turn = turns.take(A, SOON).unwrap();
            for _ in 0..MAX_WAITING {
                scope.spawn(|| {
                    let turn = turns.take(A, SOON);
                    ended.fetch_add(usize::from(turn.is_some()), Ordering::Relaxed);
                });
            }
            while turns.organizations.lock()[&A].waiting < MAX_WAITING {
                thread::sleep(Duration::from_millis(1));
            }
            let began = Stopwatch::now();
            assert!(turns.take(A, SOON).is_none() && began.elapsed() < SOON / 2);
            drop(turn);
        });
        assert_eq!(ended.load(Ordering::Relaxed), MAX_WAITING, "each has its turn");
        assert!(turns.organizations.lock().is_empty());
    }
}
