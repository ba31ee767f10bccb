use std::io;

use thiserror::Error;

use crate::format::Incarnation;

/// What can go wrong in an index of fingerprints.
#[derive(Debug, Error)]
pub enum ExternalIdsError {
    /// A file is missing or not what was written. [`reset`](super::ExternalIds::reset) the index and rebuild it from
    /// the log.
    #[error("the index of external ids is damaged: {what}")]
    Damaged {
        /// What was found, and where.
        what: String,
    },
    /// The index was built in another life of the data directory.
    #[error("the index of external ids belongs to incarnation {found}, not to {expected}")]
    OtherIncarnation {
        /// Whose it is.
        found: Incarnation,
        /// Whose it should be.
        expected: Incarnation,
    },
    /// The operating system refused.
    #[error("the index of external ids could not {action}: {source}")]
    Io {
        /// What was being done.
        action: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
    /// A merge was asked to stop, and left everything as it was.
    #[error("the merge was stopped")]
    Stopped,
}

impl ExternalIdsError {
    /// Whether only a rebuild from the log helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::OtherIncarnation { .. })
    }

    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    /// For reads of files that are known to be complete: ending early is damage.
    pub(super) fn reading(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::NotFound => Self::damaged(format!("{action}: {source}")),
            _ => Self::Io { action, source },
        }
    }

    pub(super) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}
