//! Turns to erase: few erasures of one organization begin at once, the others wait in their order.
//!
//! Each reads the ids of all identities, and blocks a thread. Nothing else needs turns: erasures of
//! several nodes, and of the same person, may begin at the same time (ADR 33).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use headcount_domain::OrganizationId;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many erasures of an organization begin at once.
const MAX_AT_ONCE: usize = 4;
/// How many wait. A waiting one occupies its connection, and no thread.
const MAX_WAITING: usize = 1_000;
/// How long one waits. Another node that passed the request on waits for 60 s in all.
pub(crate) const PATIENCE: Duration = Duration::from_secs(45);

/// The turns of all organizations of which an erasure begins or waits.
#[derive(Debug, Default)]
pub(crate) struct ErasureTurns(Mutex<HashMap<OrganizationId, Arc<Semaphore>>>);

impl ErasureTurns {
    /// Waits for a turn, which lasts until the value is dropped. Returns `None` if too many wait,
    /// or those before take longer than `patience`.
    pub(crate) async fn take(&self, organization: OrganizationId, patience: Duration) -> Option<OwnedSemaphorePermit> {
        let turns = {
            let mut organizations = self.0.lock();
            // Each that waits or has a turn holds one.
            organizations.retain(|_, turns| Arc::strong_count(turns) > 1);
            Arc::clone(organizations.entry(organization).or_insert_with(|| Arc::new(Semaphore::new(MAX_AT_ONCE))))
        };
        if Arc::strong_count(&turns) > 1 + MAX_AT_ONCE + MAX_WAITING {
            return None;
        }
        tokio::time::timeout(patience, turns.acquire_owned()).await.ok()?.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::join_all;

    use super::*;

    const A: OrganizationId = OrganizationId(1);
    const B: OrganizationId = OrganizationId(2);

    const SHORT: Duration = Duration::from_millis(30);

    #[tokio::test]
    async fn some_begin_others_wait_and_an_organization_waits_for_no_other_one() {
        let turns = ErasureTurns::default();
        let began = join_all((0..MAX_AT_ONCE).map(|_| turns.take(A, PATIENCE))).await;
        assert!(began.iter().all(Option::is_some) && turns.take(B, PATIENCE).await.is_some());
        assert!(turns.take(A, SHORT).await.is_none(), "those before take too long");
        let mut next = Box::pin(turns.take(A, PATIENCE));
        assert!(next.as_mut().now_or_never().is_none(), "it waits");
        drop(began);
        assert!(next.await.is_some());
        assert!(turns.take(B, PATIENCE).await.is_some() && turns.0.lock().len() == 1, "nothing is kept of others");
    }

    #[tokio::test]
    async fn many_wait_and_the_others_are_refused_at_once() {
        let turns = ErasureTurns::default();
        let slow = join_all((0..MAX_AT_ONCE).map(|_| turns.take(A, PATIENCE))).await;
        let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| Box::pin(turns.take(A, PATIENCE))).collect();
        assert!(waiting.iter_mut().all(|one| one.as_mut().now_or_never().is_none()));
        assert!(matches!(turns.take(A, PATIENCE).now_or_never(), Some(None)), "too many wait");
        drop(slow);
        let had_turns = join_all(waiting.into_iter().map(|one| one.map(|turn| turn.is_some()))).await;
        assert!(had_turns.iter().all(|had| *had), "each has its turn");
    }
}
