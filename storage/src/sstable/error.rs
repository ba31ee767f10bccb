use std::io;

use thiserror::Error;

/// What tables return.
pub(super) type Result<T, E = TableError> = std::result::Result<T, E>;

/// An error of a sorted table.
#[derive(Debug, Error)]
pub enum TableError {
    /// A file is missing or changed.
    #[error("damaged: {what}")]
    Damaged {
        /// The part that was found damaged.
        what: String,
    },
    /// The manifest has another version: the tables were written by another version of the program.
    #[error("the tables have format {found}, but this version reads format {expected}")]
    OtherFormat {
        /// The version of the manifest.
        found: u8,
        /// The version that can be read.
        expected: u8,
    },
    /// The operating system refused an operation.
    #[error("could not {action}: {source}")]
    Io {
        /// The operation.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl TableError {
    /// Whether the tables must be rebuilt from the log.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }

    /// Classifies a failed read of a complete file: a missing file or an early end is damage.
    pub(crate) fn read(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound => Self::damaged(format!("{action}: {source}")),
            _ => Self::Io { action, source },
        }
    }
}
