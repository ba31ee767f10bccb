//! Errors of collecting what a backup consists of.

use headcount_archive::error::ArchiveError;
use headcount_storage::backup::BackupError;
use headcount_storage::format::FormatError;
use headcount_storage::lock::LockError;
use headcount_storage::log::LogError;

use crate::registry::RegistryError;

/// Why a backup could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupFailure {
    /// Another one is being made.
    #[error("another backup is being made")]
    Running,
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
