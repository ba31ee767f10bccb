//! Questions that are answered by a scan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_domain::aggregate::{Aggregate, Grouping};
use headcount_domain::filter::Predicate;
use headcount_domain::ids::ProjectId;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::time::Window;

use super::aggregate::{AggregateQuestion, aggregate};
use super::events::{Scan, ScanError};
use super::unique_users::unique_users;
use crate::engine::handle::Engine;
use crate::engine::shard_client::AskError;
use crate::memory_budget::MemoryShares;

/// Set when nobody waits for a scan any more.
type Cancelled = Arc<AtomicBool>;

struct CancelOnDrop(Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Engine {
    /// Unique users with an event that matches `predicate`, per day of `window` and over it.
    ///
    /// Costs a pass over the project's events. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn scan_unique_users(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
    ) -> Result<UniqueUsers, AskError> {
        self.scan(project, move |scan, sort_bytes| unique_users(&scan, window, &predicate, sort_bytes)).await
    }

    /// Groups the events of `window` that match `predicate`, and returns the first `limit` groups.
    ///
    /// Costs a pass over the project's events. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn aggregate(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
        grouping: Grouping,
        limit: usize,
    ) -> Result<Aggregate, AskError> {
        self.scan(project, move |scan, sort_bytes| {
            let question = AggregateQuestion { window, predicate: &predicate, grouping: &grouping, limit };
            aggregate(&scan, &question, sort_bytes)
        })
        .await
    }

    /// Runs a scan within the time that a question may take. `answer` also gets the memory of each of its tables and sorts.
    pub(super) async fn scan<R: Send + 'static>(
        &self,
        project: ProjectId,
        answer: impl FnOnce(Scan<'_>, usize) -> Result<R, ScanError> + Send + 'static,
    ) -> Result<R, AskError> {
        let most = self.inner.config.question_timeout;
        tokio::time::timeout(most, self.scan_in_turn(project, answer)).await.unwrap_or(Err(AskError::TimedOut(most)))
    }

    async fn scan_in_turn<R: Send + 'static>(
        &self,
        project: ProjectId,
        answer: impl FnOnce(Scan<'_>, usize) -> Result<R, ScanError> + Send + 'static,
    ) -> Result<R, AskError> {
        let organization = self.registry().policy(project).map(|keyed| keyed.policy.organization);
        let turn = self.inner.scans.take(organization).await?;
        self.scan_with(turn, project, answer).await
    }

    /// Runs a scan that holds `turn`. Dropping the future ends it.
    pub(super) async fn scan_with<T: Send + 'static, R: Send + 'static>(
        &self,
        turn: T,
        project: ProjectId,
        answer: impl FnOnce(Scan<'_>, usize) -> Result<R, ScanError> + Send + 'static,
    ) -> Result<R, AskError> {
        let cancelled = Cancelled::default();
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
        let until = self.last(project).await?;
        let known = self.known_ids(project).await?;
        let engine = self.clone();
        let scan = move || {
            // The turn lasts until the scan is over, whether or not somebody waits.
            let _turn = turn;
            let sort_bytes = MemoryShares::of(engine.inner.config.memory_bytes).scan_sort;
            answer(Scan { engine: &engine, project, until, known, cancelled: &cancelled }, sort_bytes)
        };
        match tokio::task::spawn_blocking(scan).await.map_err(|_| AskError::NoAnswer)? {
            Ok(answer) => Ok(answer),
            Err(ScanError::Ask(error)) => Err(error),
            Err(error) => {
                tracing::error!(%error, "the events could not be scanned");
                Err(AskError::NoAnswer)
            }
        }
    }
}
