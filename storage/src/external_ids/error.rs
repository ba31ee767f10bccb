use std::io;

use thiserror::Error;

use crate::format::Incarnation;
use crate::sstable::TableError;

/// An error of the index of external ids.
#[derive(Debug, Error)]
pub enum ExternalIdsError {
    /// A file is missing or changed. [`reset`](super::ExternalIds::reset) the index and rebuild it
    /// from the log.
    #[error("the index of external ids is damaged: {what}")]
    Damaged {
        /// The part that was found damaged.
        what: String,
    },
    /// The index was built for another incarnation of the data directory.
    #[error("the index of external ids belongs to incarnation {found}, not to {expected}")]
    OtherIncarnation {
        /// The incarnation of the index.
        found: Incarnation,
        /// The incarnation of the data directory.
        expected: Incarnation,
    },
    /// The operating system refused an operation.
    #[error("the index of external ids could not {action}: {source}")]
    Io {
        /// The operation.
        action: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A merge was stopped, without a change.
    #[error("the merge was stopped")]
    Stopped,
}

impl ExternalIdsError {
    /// Whether the index has to be rebuilt from the log.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::OtherIncarnation { .. })
    }

    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}

impl From<TableError> for ExternalIdsError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Damaged { what } => Self::Damaged { what },
            TableError::OtherFormat { .. } => Self::damaged(error.to_string()),
            TableError::Io { action, source } => Self::Io { action, source },
        }
    }
}
