//! Sealing and merging on demand.

use std::sync::Arc;

use headcount_domain::fault::Fault;

use super::handle::Engine;
use crate::archiver::Sealed;

impl Engine {
    /// Seals everything that was recorded before the call into the archive, after checkpoints of it were written.
    ///
    /// # Errors
    /// The cause. What was not sealed is still in the log.
    pub async fn seal_archive(&self) -> Result<Sealed, Fault> {
        let archiver = Arc::clone(&self.inner.archiver);
        match tokio::task::spawn_blocking(move || archiver.seal_all()).await {
            Ok(sealed) => sealed.map_err(Fault::from),
            Err(_) => Err(Fault::io("the engine is shutting down")),
        }
    }

    /// Merges the sorted files of the store now, which happens by itself where nothing changes for a minute. Returns `false` if some are left as they are:
    /// the disk has too little room, a merge failed, or the engine stops.
    pub async fn merge_tables(&self) -> bool {
        let archiver = Arc::clone(&self.inner.archiver);
        tokio::task::spawn_blocking(move || archiver.merge_tables()).await.unwrap_or(false)
    }
}
