//! The errors of sealing.

use headcount_archive::ArchiveError;
use headcount_common::SharedArchiveError;
use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::external_ids::ExternalIdsError;

use crate::fault;
use crate::history::HistoryError;

/// The reason why events could not be sealed. They are still in the log, and sealing is retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealingError {
    /// The archive failed.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The log can't be read.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// The log can't be trimmed.
    #[error("the sealed part of the log could not be removed: {0}")]
    Trim(SharedArchiveError),
    /// The index of external ids can't be read.
    #[error(transparent)]
    Index(#[from] ExternalIdsError),
    /// The index of external ids lacks an event that a checkpoint reflects.
    #[error("the index of external ids does not have the event at position {0}")]
    UnknownId(Position),
    /// An event has a value, and the currency of its project is unknown.
    #[error("the project {0} is not known")]
    UnknownProject(ProjectId),
    /// A shard did not answer, or checkpoints could not be written in time.
    #[error("the events are in no durable checkpoint yet")]
    NoAnswer,
    /// The engine is a node of a cluster, and has no shared place for archives.
    #[error("nodes that have no place for files seal no events")]
    SharedLog,
    /// The archive could not be published for all nodes.
    #[error("the archive could not be published: {0}")]
    Shared(#[from] SharedArchiveError),
    /// There is too little space.
    #[error("the disk is nearly full")]
    DiskFull,
}

impl From<SealingError> for Fault {
    fn from(error: SealingError) -> Self {
        let message = error.to_string();
        match error {
            SealingError::Archive(error) => fault::of_archive(error),
            SealingError::History(error) => fault::of_history(error),
            SealingError::Index(error) => fault::of_index(error),
            SealingError::UnknownId(_) => Self::damaged_index(message),
            SealingError::UnknownProject(_) => Self::defect(message),
            SealingError::Trim(_)
            | SealingError::SharedLog
            | SealingError::Shared(_)
            | SealingError::NoAnswer
            | SealingError::DiskFull => Self::io(message),
        }
    }
}
