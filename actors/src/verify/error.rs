//! The errors of a verification.

use headcount_domain::Fault;

/// The reason why a data directory could not be verified. There is no result then.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// Another verification is in progress.
    #[error("another verification is under way")]
    Running,
    /// The client has left, or the engine is closing.
    #[error("the verification was stopped")]
    Stopped,
    /// There is too little room on the disk for the recomputation.
    #[error("the disk is nearly full: the recomputed state needs room beside the data directory's files")]
    DiskFull,
    /// The state could not be saved, so there is no current state to compare.
    #[error("the current state can't be saved: its checkpoints take too long")]
    NotSaved,
    /// A partition is being rebuilt.
    #[error("the figures of partition {0} are being rebuilt")]
    Rebuilding(u16),
    /// The data directory can't be used.
    #[error("{0}")]
    Directory(String),
    /// Some data could not be read, or a temporary file could not be written.
    #[error("{0}")]
    Failed(#[from] Fault),
}

impl VerifyError {
    /// Wraps an error of the data directory.
    pub(crate) fn directory(error: impl std::fmt::Display) -> Self {
        Self::Directory(error.to_string())
    }
}
