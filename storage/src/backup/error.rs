//! Errors of backups.

use std::io;
use std::path::{Path, PathBuf};

use crate::format::FormatError;
use crate::lock::LockError;

/// Why a backup could not be made, checked or restored.
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
    /// The directory that is written to has files.
    #[error("{} is not empty", dir.display())]
    NotEmpty {
        /// The directory.
        dir: PathBuf,
    },
    /// A directory has no list of files: the backup in it was not finished, or it is not a backup.
    #[error("{} holds no complete backup: it has no manifest.json", dir.display())]
    Incomplete {
        /// The directory.
        dir: PathBuf,
    },
    /// A stream ended too early.
    #[error("the backup ended before its manifest.json: {reason}")]
    EndedEarly {
        /// The reason, as far as it is known.
        reason: String,
    },
    /// A file is not what was backed up, or the list and the checksums don't agree.
    #[error("the backup is damaged: {name} {reason}")]
    Damaged {
        /// Name of the file in the backup.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Another version of the program made it.
    #[error("the backup has the format {found:?}; this program reads {supported:?}")]
    OtherFormat {
        /// The format that it names.
        found: String,
        /// The format of this program.
        supported: &'static str,
    },
    /// The data directory's description in the backup can't be used, or the new one can't be written.
    #[error(transparent)]
    Layout(#[from] FormatError),
    /// The data directory can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Whoever reads the stream is gone.
    #[error("the backup could not be sent: {0}")]
    Unsent(io::Error),
}

impl BackupError {
    /// Wraps an error of the operating system.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { doing, path, source }
    }

    /// As [`BackupError::io`], for a file by its name in the backup.
    pub(super) fn io_of(doing: &'static str, name: &str) -> impl Fn(io::Error) -> Self {
        let path = PathBuf::from(name);
        move |source| Self::Io { doing, path: path.clone(), source }
    }

    pub(super) fn damaged(name: &str, reason: impl Into<String>) -> Self {
        Self::Damaged { name: name.to_owned(), reason: reason.into() }
    }
}
