//! Why an installation did not move in.

use headcount_actors::MovingError;
use headcount_actors::domain::ids::ProjectId;
use headcount_common::{ControlError, DocumentsError, SharedArchiveError};

use crate::files::FilesError;
use crate::log::LogError;

/// Why an installation did not move in.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// It can't be read, or has what a cluster can't take.
    #[error(transparent)]
    Source(#[from] MovingError),
    /// The events of a partition need too large a part of its stream.
    #[error(
        "the events of partition {partition} need {needed} bytes, and a stream is to be at most half full at the beginning: use --max-bytes {wanted}MiB, which each broker reserves 64 times"
    )]
    NoRoom {
        /// The partition.
        partition: u16,
        /// What its events need.
        needed: u64,
        /// The `--max-bytes` that would do, in MiB.
        wanted: u64,
    },
    /// A project moves with files, and there is no place for these.
    #[error(
        "events of {0} were removed by its retention, and their figures are in files, which all nodes need: name a place for files (--files), and the same one for all nodes"
    )]
    NoFiles(ProjectId),
    /// Files can't be published.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// An archive can't be published.
    #[error(transparent)]
    Archive(#[from] SharedArchiveError),
    /// An earlier attempt was with something else.
    #[error(
        "an earlier attempt moved something else into these brokers: go on with the same backup, or delete the streams (`nats stream rm HC_CTL`, EV_000 to EV_063, KV_hc, KV_hc_hooks, and those that begin with HC_DOC_)"
    )]
    OtherSource,
    /// A stream has what this attempt would not have written.
    #[error("the stream {0} has something else than what moves in: delete it (`nats stream rm {0}`), if nobody needs it")]
    OtherContent(String),
    /// A stream can't be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The control log can't be read or written.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A document can't be written.
    #[error("the document {key} of {stream} can't be written: {source}")]
    Document {
        /// Its stream.
        stream: &'static str,
        /// Its key.
        key: String,
        /// Why.
        source: DocumentsError,
    },
    /// The caller ended the attempt. It can be made again.
    #[error("stopped; the same command goes on with it")]
    Stopped,
}
