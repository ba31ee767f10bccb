//! The errors of moving an installation into a cluster.

use headcount_actors::MovingError;
use headcount_actors::domain::ids::ProjectId;
use headcount_common::{ControlError, DocumentsError, SharedArchiveError};

use crate::files::FilesError;
use crate::log::LogError;

/// The reason why an installation could not be moved in.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The installation can't be read, or has data that a cluster can't take.
    #[error(transparent)]
    Source(#[from] MovingError),
    /// The events of a partition need too much room in its stream.
    #[error(
        "the events of partition {partition} need {needed} bytes, and a stream is to be at most half full at the beginning: use --max-bytes {wanted}MiB, which each broker reserves 64 times"
    )]
    NoRoom {
        /// The partition.
        partition: u16,
        /// The bytes that its events need.
        needed: u64,
        /// The `--max-bytes` that would suffice, in MiB.
        wanted: u64,
    },
    /// A project has files, and there is no place for them.
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
    /// An earlier attempt moved other data.
    #[error(
        "an earlier attempt moved something else into these brokers: go on with the same backup, or delete the streams (`nats stream rm HC_CTL`, EV_000 to EV_063, KV_hc, KV_hc_hooks, KV_hc_intake, and those that begin with HC_DOC_)"
    )]
    OtherSource,
    /// A stream has events that this attempt would not have written.
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
        /// The error.
        source: DocumentsError,
    },
    /// The caller ended the attempt. It can be repeated.
    #[error("stopped; the same command goes on with it")]
    Stopped,
}
