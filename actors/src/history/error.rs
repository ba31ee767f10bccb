//! The errors of reading recorded events.

use headcount_archive::ArchiveError;
use headcount_domain::{Position, ProjectId};
use headcount_storage::codec::CodecError;
use headcount_storage::log::LogError;

/// Recorded events can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HistoryError {
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A record of the log can't be decoded although its checksum is right: another version wrote
    /// it.
    #[error("an event in the log can't be decoded: {0}")]
    Decode(#[from] CodecError),
    /// The archive can't be read.
    #[error("{error}")]
    Archive {
        /// The partition of the project.
        partition: u16,
        /// The cause.
        error: ArchiveError,
    },
    /// The project was deleted while its events were read.
    #[error("the project {project} was deleted meanwhile")]
    Deleted {
        /// The project.
        project: ProjectId,
    },
    /// Neither the archive nor the log has these events.
    #[error("the events from position {from} to {to} are neither in the archive nor in the log")]
    Missing {
        /// The first position.
        from: Position,
        /// The last position.
        to: Position,
    },
}
