//! The log of a partition: the messages of its stream, in order.
//!
//! # Invariants
//! - A message follows the one before: its sequence is one more, and its [chain](Chain) covers all
//!   messages before it.
//! - Each append names the message that must be the last one. If two writers have read the same
//!   messages, only one of their appends succeeds.
//! - An owner begins with a message of its [epoch](Content::Epoch). It has read all messages before
//!   it, and a former owner can't append anything after it. Only this append proves where the log
//!   ends: an answer about a stream may come from a deposed leader.
//! - A message whose sequence [`LogWriter::append`] has returned is on the disks of a majority of
//!   brokers, exactly once.

mod append;
mod audit;
mod commit;
mod cursor;
mod message;
mod position;
mod read;
mod reader;
mod waiting;
mod writer;

pub(crate) use append::Appender;
pub use audit::AuditTiming;
pub use commit::StreamCommit;
pub use message::{Chain, Content, Entry, MAX_EVENTS, Message, MessageError};
pub(crate) use position::{first_of, last_of, sequence_of};
pub use read::StreamLog;
pub use reader::LogReader;
pub use writer::LogWriter;

use headcount_storage::log::{LogMark, RemoteFailure};
use serde::{Deserialize, Serialize};

/// The end of a log as far as it was read: the last message, with a digest of all messages before
/// it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogEnd {
    /// The sequence of the message in its stream; 0 before the first message.
    pub sequence: u64,
    /// The chain of the message.
    pub chain: Chain,
    /// The latest epoch.
    pub epoch: u64,
}

/// A message, with a digest of all messages before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) sequence: u64,
    pub(crate) chain: Chain,
}

impl From<LogMark> for Link {
    fn from(LogMark { position, digest, .. }: LogMark) -> Self {
        Self { sequence: sequence_of(position), chain: Chain(digest) }
    }
}

impl From<LogEnd> for Link {
    fn from(LogEnd { sequence, chain, .. }: LogEnd) -> Self {
        Self { sequence, chain }
    }
}

/// The reason why a log can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Another owner has taken the partition over.
    #[error("epoch {by} has begun")]
    Fenced {
        /// The epoch of that owner.
        by: u64,
    },
    /// The message does not follow the one before: the brokers lost messages that they confirmed,
    /// or another process writes to the stream.
    #[error("message {sequence} of {stream}: {reason}")]
    Broken {
        /// The stream.
        stream: String,
        /// The sequence of the message.
        sequence: u64,
        /// The error.
        reason: MessageError,
    },
    /// The brokers lack a message that they must have.
    #[error("message {wanted} of {stream} is missing")]
    Missing {
        /// The stream.
        stream: String,
        /// The sequence of the message.
        wanted: u64,
    },
    /// The files have events of later messages than the brokers have.
    #[error(
        "message {wanted} of {stream} is missing, and the files have events of messages up to {sealed}: \
         put the brokers and the files back from copies of one time"
    )]
    BehindFiles {
        /// The stream.
        stream: String,
        /// The sequence of the first missing message.
        wanted: u64,
        /// The sequence of the last message with sealed events.
        sealed: u64,
    },
    /// The stream is full. Nothing was recorded.
    #[error("the stream {0} is full")]
    Full(String),
    /// The events don't fit into a message. Nothing was recorded.
    #[error(transparent)]
    Refused(#[from] MessageError),
    /// The message may have more bytes than the brokers accept. Nothing was recorded.
    #[error("a message of {bytes} bytes is larger than the {limit} bytes that the brokers accept")]
    TooLarge {
        /// The size of the message.
        bytes: usize,
        /// The limit of the brokers.
        limit: usize,
    },
    /// The brokers will not accept the message. Nothing was recorded.
    #[error("the brokers refuse the message: {0}")]
    Rejected(String),
    /// The brokers don't answer, or give an unexpected answer.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
}

impl From<LogError> for headcount_storage::log::LogError {
    fn from(error: LogError) -> Self {
        let kind = match &error {
            LogError::Refused(MessageError::Empty) => return Self::Empty,
            LogError::Full(_) => RemoteFailure::Full,
            LogError::Broken { .. } | LogError::Missing { .. } | LogError::BehindFiles { .. } => RemoteFailure::Damaged,
            LogError::Refused(_) | LogError::TooLarge { .. } => RemoteFailure::TooLarge,
            LogError::Fenced { .. } | LogError::Rejected(_) | LogError::Unavailable(_) => RemoteFailure::Unavailable,
        };
        Self::Remote { kind, source: error.into() }
    }
}

impl LogError {
    pub(crate) fn unavailable(error: impl std::fmt::Display) -> Self {
        Self::Unavailable(error.to_string())
    }
}
