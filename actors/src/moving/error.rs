//! The errors of reading an installation that moves into a cluster.

use std::io;
use std::path::{Path, PathBuf};

use headcount_archive::ArchiveError;
use headcount_common::secrets::SecretsError;
use headcount_control::RegistryError;
use headcount_domain::ProjectId;
use headcount_storage::backup::BackupError;
use headcount_storage::codec::CodecError;
use headcount_storage::format::FormatError;
use headcount_storage::lock::LockError;
use headcount_storage::log::LogError;

use crate::history::HistoryError;

/// The reason why an installation can't move into a cluster.
#[derive(Debug, thiserror::Error)]
pub enum MovingError {
    /// The path is neither a backup nor a data directory.
    #[error("{} is neither a backup (`headcount backup`) nor a data directory", .0.display())]
    Neither(PathBuf),
    /// A project has lost events, and has unsealed events that its base counts.
    #[error(
        "{0} has lost events by its retention, and not all others are sealed: start the server, seal its archive (`headcount archive seal`), and make another backup"
    )]
    Unsealed(ProjectId),
    /// Projects are being deleted.
    #[error("{0} projects are being deleted: start the server, wait until nothing of them is left, and make another backup")]
    Deleting(usize),
    /// Identities are being erased.
    #[error("{0} erasures are not finished: start the server, wait until they are, and make another backup")]
    Erasing(usize),
    /// The backup is damaged.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The data directory is in use.
    #[error(transparent)]
    InUse(#[from] LockError),
    /// The directory can't be used.
    #[error(transparent)]
    Layout(#[from] FormatError),
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The archive can't be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// Recorded events can't be read.
    #[error("{0}")]
    Events(String),
    /// An event can't be encoded.
    #[error(transparent)]
    Encode(#[from] CodecError),
    /// The control data can't be read.
    #[error(transparent)]
    Control(#[from] RegistryError),
    /// The keys can't be read or written.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The operating system refuses.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl MovingError {
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }
}

impl From<HistoryError> for MovingError {
    fn from(error: HistoryError) -> Self {
        Self::Events(error.to_string())
    }
}
