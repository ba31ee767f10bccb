//! Errors of backups.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::FormatError;
use crate::lock::LockError;

/// The reason why a backup could not be made, checked or restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The operating system returned an error.
    #[error("could not {doing} {}: {source}", path.display())]
    Io {
        /// The failed operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The target directory has files.
    #[error("{} is not empty", dir.display())]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory has no list of files: its backup was not finished, or it is not a backup.
    #[error("{} is not a complete backup: it has no manifest.json", dir.display())]
    Incomplete {
        /// The directory.
        dir: PathBuf,
    },
    /// A stream ended too early.
    #[error("the backup ended before its manifest.json: {reason}")]
    EndedEarly {
        /// The reason, if known.
        reason: String,
    },
    /// A file has changed since the backup, or the list and the checksums disagree.
    #[error("the backup is damaged: {name} {reason}")]
    Damaged {
        /// Name of the file in the backup.
        name: String,
        /// The damage.
        reason: String,
    },
    /// Another version of the program made it.
    #[error("the backup has the format {found:?}, but this program reads {supported:?}")]
    OtherFormat {
        /// The format that it names.
        found: String,
        /// The format of this program.
        supported: &'static str,
    },
    /// The data directory's description in the backup can't be used, or the new one can't be
    /// written.
    #[error(transparent)]
    Layout(#[from] FormatError),
    /// The data directory can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The reader of the stream has disconnected.
    #[error("the backup could not be sent: {0}")]
    Unsent(io::Error),
}

impl BackupError {
    /// Wraps an error of the operating system.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// Like [`BackupError::io`], for a file by its name in the backup.
    pub(super) fn io_of(doing: &'static str, name: &str) -> impl Fn(io::Error) -> Self {
        let path = PathBuf::from(name);
        move |source| Self::Io { doing, path: path.clone(), source }
    }

    pub(super) fn damaged(name: &str, reason: impl Into<String>) -> Self {
        Self::Damaged { name: name.to_owned(), reason: reason.into() }
    }
}
