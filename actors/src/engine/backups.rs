//! Backups of a running engine.

use std::sync::Arc;

use super::handle::Engine;
use crate::backup::{BackupFailure, BackupSnapshot};

impl Engine {
    /// Takes a snapshot of the files of the data directory. It has all events that were
    /// acknowledged before the call. Recording continues meanwhile.
    ///
    /// Blocking; takes as long as reading one segment of the log and giving each file a second
    /// name.
    ///
    /// # Errors
    /// Returns [`BackupFailure::Running`] while another snapshot exists; any other but
    /// [`BackupFailure::InUse`].
    pub fn begin_backup(&self) -> Result<BackupSnapshot, BackupFailure> {
        let permit = Arc::clone(&self.inner.backups).try_acquire_owned().map_err(|_| BackupFailure::Running)?;
        let log = self.questions.logged.hold_after(0).ok_or(BackupFailure::SharedLog)?;
        BackupSnapshot::of_engine(self.data_dir(), log, self.registry(), self.clock().now(), permit)
    }
}
