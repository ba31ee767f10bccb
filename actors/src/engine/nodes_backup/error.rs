//! The errors of a backup of a cluster.

use std::io;
use std::path::Path;

use headcount_common::ControlError;
use headcount_control::RegistryError;
use headcount_domain::ProjectId;
use headcount_storage::backup::BackupError;
use headcount_storage::log::LogError;

use crate::backup::BackupFailure;
use crate::shard::AskError;

/// The reason why a backup of a cluster could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NodesBackupError {
    /// The backup can't be written, or the data of this machine can't be read.
    #[error(transparent)]
    Failed(#[from] BackupFailure),
    /// The owner of a partition does not answer, or there is none.
    #[error("a partition can't be read: {0}")]
    Asking(#[from] AskError),
    /// Events were removed before they were read, because a retention was set meanwhile.
    #[error("events of {0} were removed by a retention that it got while the backup was made: make it again")]
    Removed(ProjectId),
    /// The owner of a project's partition can't seal its events, or keeps replacing its files.
    #[error("the events of {0} could not be sealed, or its files not be read: the log of the node that has them may say why")]
    NotSealed(ProjectId),
    /// There is too little room.
    #[error("the disk of the node is nearly full")]
    DiskFull,
    /// The machine stops, or the client has left.
    #[error("the node stops, or nobody waits for the backup any more")]
    Stopped,
}

impl NodesBackupError {
    /// Wraps an error of the operating system.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| BackupError::Io { doing, path, source }.into()
    }
}

impl From<BackupError> for NodesBackupError {
    fn from(error: BackupError) -> Self {
        BackupFailure::from(error).into()
    }
}

impl From<LogError> for NodesBackupError {
    fn from(error: LogError) -> Self {
        BackupFailure::from(error).into()
    }
}

impl From<RegistryError> for NodesBackupError {
    fn from(error: RegistryError) -> Self {
        BackupFailure::from(error).into()
    }
}

impl From<ControlError> for NodesBackupError {
    fn from(error: ControlError) -> Self {
        RegistryError::from(error).into()
    }
}
