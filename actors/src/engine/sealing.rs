//! Sealing on demand.

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
}
