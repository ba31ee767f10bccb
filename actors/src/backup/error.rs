//! The errors of backing up and restoring.

use std::path::PathBuf;

use headcount_archive::ArchiveError;
use headcount_control::RegistryError;
use headcount_domain::OrganizationId;
use headcount_storage::backup::BackupError;
use headcount_storage::format::FormatError;
use headcount_storage::lock::LockError;
use headcount_storage::log::LogError;

/// The reason why a backup could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupFailure {
    /// Another backup is in progress.
    #[error("another backup is being made")]
    Running,
    /// The engine is a node of a cluster, without its own log: `Engine::begin_nodes_backup` backs
    /// the whole cluster up.
    #[error("one of several machines can't be backed up by itself: its events are on the brokers")]
    SharedLog,
    /// The backup can't be written, or a file can't be read.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The control data can't be read.
    #[error(transparent)]
    Control(#[from] RegistryError),
    /// The archive's lists can't be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The data directory is in use.
    #[error(transparent)]
    InUse(#[from] LockError),
    /// The data directory can't be used.
    #[error(transparent)]
    Layout(#[from] FormatError),
}

impl BackupFailure {
    /// Wraps an error of the operating system.
    pub(super) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Backup(BackupError::Io { doing, path, source })
    }
}

/// The reason why a backup was not restored with the erasures of another data directory. No trace
/// of the attempt is left.
#[derive(Debug, thiserror::Error)]
pub enum RestoreFailure {
    /// The backup is damaged, or can't be written to the directory.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The directory with the erasures is not a data directory.
    #[error("{} is not a data directory: it has no {missing}", dir.display())]
    NoDirectory {
        /// The directory.
        dir: PathBuf,
        /// The file that it lacks.
        missing: &'static str,
    },
    /// The erasures belong to another installation: their keyed hashes match no person in the
    /// backup.
    #[error("{} belongs to another installation than the backup: its hash key is another one", dir.display())]
    OtherKey {
        /// The directory with the erasures.
        dir: PathBuf,
    },
    /// The backup has data that the directory with the erasures never had.
    #[error("the directory with the erasures is no later state of the backup: {what} of {organization} is another one")]
    Diverged {
        /// The organization.
        organization: OrganizationId,
        /// The difference.
        what: String,
    },
    /// The directory with the erasures is in use.
    #[error(transparent)]
    InUse(#[from] LockError),
    /// The directory with the erasures can't be used.
    #[error(transparent)]
    Layout(#[from] FormatError),
    /// Control data can't be read or written.
    #[error(transparent)]
    Control(#[from] RegistryError),
    /// A list of the archive can't be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl RestoreFailure {
    /// Wraps an error of the operating system.
    pub(super) fn io(doing: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Backup(BackupError::Io { doing, path, source })
    }
}
