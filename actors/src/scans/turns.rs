//! Turns of scans: few run at once, and organizations take turns.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use headcount_domain::OrganizationId;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::helpers::ScanHelpers;
use crate::admission_gate::{Gate, Holder};
use crate::shard::AskError;

/// How many scans may be waiting at once.
const MAX_WAITING: usize = 256;

/// Gives out a fixed number of turns. Organizations that wait get the next ones in rotation, so
/// that one with many questions delays another by one question at most.
#[derive(Clone)]
pub(crate) struct ScanTurns {
    state: Arc<Mutex<WaitingScans>>,
    /// Bounds how many wait, and divides the places among organizations.
    waiting: Gate,
    /// The helpers of the scans that run.
    pub(super) helpers: Arc<ScanHelpers>,
}

struct WaitingScans {
    free: usize,
    /// Organizations that wait, in the order of their next turn.
    rotation: VecDeque<Option<OrganizationId>>,
    waiting: BTreeMap<Option<OrganizationId>, VecDeque<oneshot::Sender<ScanTurn>>>,
}

/// A turn; given back when dropped.
pub(crate) struct ScanTurn {
    /// `None` once it is passed on.
    turns: Option<ScanTurns>,
}

impl Drop for ScanTurn {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.pass_on();
        }
    }
}

/// Those of scans for other nodes, one at a time of each kind.
#[derive(Clone)]
pub(crate) struct NodeScans {
    /// For questions and exports.
    pub(crate) questions: ScanTurns,
    /// For backups, which wait for none of the others.
    #[cfg(feature = "cluster")]
    pub(crate) backups: ScanTurns,
}

impl Default for NodeScans {
    fn default() -> Self {
        let one = || ScanTurns::new(1, ScanHelpers::new(0));
        Self {
            questions: one(),
            #[cfg(feature = "cluster")]
            backups: one(),
        }
    }
}

impl ScanTurns {
    /// Creates `count` turns. Those who have one share `helpers`.
    pub(crate) fn new(count: usize, helpers: ScanHelpers) -> Self {
        let state = WaitingScans { free: count, rotation: VecDeque::new(), waiting: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(state)), waiting: Gate::new(MAX_WAITING), helpers: Arc::new(helpers) }
    }

    /// Waits for a turn of `organization`.
    ///
    /// # Errors
    /// [`AskError::Busy`] if too many wait.
    pub(super) async fn take(&self, organization: Option<OrganizationId>) -> Result<ScanTurn, AskError> {
        let holders = [organization.map(Holder::Organization), None];
        let _place = self.waiting.take_for(holders, 1).map_err(|_| AskError::Busy)?;
        let wait = {
            let mut state = self.state.lock();
            if state.free > 0 && state.rotation.is_empty() {
                state.free -= 1;
                return Ok(ScanTurn { turns: Some(self.clone()) });
            }
            let (sender, wait) = oneshot::channel();
            let WaitingScans { rotation, waiting, .. } = &mut *state;
            let queue = waiting.entry(organization).or_default();
            if queue.is_empty() {
                rotation.push_back(organization);
            }
            // Who no longer waits must not take up room.
            queue.retain(|sender| !sender.is_closed());
            queue.push_back(sender);
            wait
        };
        wait.await.map_err(|_| AskError::NoAnswer)
    }

    /// Passes a turn on to the next one that still waits.
    fn pass_on(self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                let next = state.next();
                if next.is_none() {
                    state.free += 1;
                }
                next
            };
            let Some(next) = next else { return };
            match next.send(ScanTurn { turns: Some(self.clone()) }) {
                Ok(()) => return,
                // Nobody waits for it any more: the turn goes to the next one.
                Err(mut turn) => turn.turns = None,
            }
        }
    }

    /// The number of turns that nobody has.
    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.state.lock().free
    }
}

impl WaitingScans {
    fn next(&mut self) -> Option<oneshot::Sender<ScanTurn>> {
        loop {
            let organization = self.rotation.pop_front()?;
            let queue = self.waiting.get_mut(&organization)?;
            // Those that no longer wait cost their organization no turn.
            queue.retain(|sender| !sender.is_closed());
            let next = queue.pop_front();
            if queue.is_empty() {
                self.waiting.remove(&organization);
            } else {
                self.rotation.push_back(organization);
            }
            if next.is_some() {
                return next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn of(number: u64) -> Option<OrganizationId> {
        Some(OrganizationId(number))
    }

    #[tokio::test]
    async fn organizations_take_turns() {
        let turns = ScanTurns::new(1, ScanHelpers::new(0));
        let first = turns.take(of(1)).await.unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for organization in [1, 1, 1, 2, 3, 2] {
            let (turns, order) = (turns.clone(), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _turn = turns.take(of(organization)).await.unwrap();
                order.lock().push(organization);
            }));
            tokio::task::yield_now().await;
        }
        // One that went away is passed over.
        tasks[1].abort();
        tokio::task::yield_now().await;
        drop(first);
        for (number, task) in tasks.into_iter().enumerate() {
            assert_eq!(task.await.is_ok(), number != 1);
        }
        assert_eq!(*order.lock(), [1, 2, 3, 1, 2]);
        assert_eq!((turns.free(), turns.waiting.used()), (1, 0));
    }

    #[tokio::test]
    async fn few_run_at_once_and_few_wait() {
        let turns = ScanTurns::new(2, ScanHelpers::new(0));
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = Vec::new();
        for _ in 0..200 {
            let (turns, running, most) = (turns.clone(), Arc::clone(&running), Arc::clone(&most));
            tasks.push(tokio::spawn(async move {
                let _turn = turns.take(of(1)).await?;
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                running.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, AskError>(())
            }));
        }
        let mut refused = 0;
        for task in tasks {
            match task.await.unwrap() {
                Err(AskError::Busy) => refused += 1,
                other => other.unwrap(),
            }
        }
        assert_eq!(most.load(Ordering::SeqCst), 2);
        assert!((1..200).contains(&refused), "{refused}");
        assert_eq!(turns.free(), 2);
    }
}
