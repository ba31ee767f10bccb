//! Questions that are answered by a scan.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_domain::filter::Predicate;
use headcount_domain::ids::ProjectId;
use headcount_domain::queries::UniqueUsers;
use headcount_domain::time::Window;

use super::events::{Scan, ScanError};
use super::unique_users::unique_users;
use crate::engine::handle::Engine;
use crate::engine::shard_client::AskError;

/// Memory of each sort; three sorts are under way at a time.
pub(super) const SORT_BYTES: usize = 4 << 20;

/// Set when nobody waits for a scan any more.
pub(super) type Cancelled = Arc<AtomicBool>;

pub(super) struct CancelOnDrop(pub(super) Cancelled);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Engine {
    /// Unique users with an event that matches `predicate`, per day of `window` and over it.
    ///
    /// Costs a pass over the project's partition of the log. Dropping the future ends it.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn scan_unique_users(
        &self,
        project: ProjectId,
        window: Window,
        predicate: Predicate,
    ) -> Result<UniqueUsers, AskError> {
        let cancelled = Cancelled::default();
        let _cancel = CancelOnDrop(Arc::clone(&cancelled));
        let turn = Arc::clone(&self.inner.scans).acquire_owned().await.map_err(|_| AskError::NoAnswer)?;
        let until = self.last(project).await?;
        let known = self.known_ids(project).await?;
        let engine = self.clone();
        let scan = move || {
            // The permit is held until the scan is over, whether or not somebody waits.
            let _turn = turn;
            let scan = Scan { engine: &engine, project, until, known, cancelled: &cancelled };
            unique_users(&scan, window, &predicate, SORT_BYTES)
        };
        match tokio::task::spawn_blocking(scan).await.map_err(|_| AskError::NoAnswer)? {
            Ok(users) => Ok(users),
            Err(ScanError::Ask(error)) => Err(error),
            Err(error) => {
                tracing::error!(%error, "the log could not be scanned");
                Err(AskError::NoAnswer)
            }
        }
    }
}
