use std::io;

use thiserror::Error;

use crate::keyspace::PartitionId;
use crate::sstable::TableError;

/// What can go wrong in a [`Store`](super::Store).
#[derive(Debug, Error)]
pub enum StoreError {
    /// What is stored contradicts itself: a checksum, a digest, a missing part. The store has to be rebuilt from the
    /// log; [`DiskStore::move_aside`](super::DiskStore::move_aside) makes the room for it.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// What was found, and where.
        what: String,
    },
    /// Another version of the program wrote the store. It has to be rebuilt from the log.
    #[error("{what}")]
    OtherFormat {
        /// How the format differs.
        what: String,
    },
    /// The operating system refused.
    #[error("the store could not {action}: {source}")]
    Io {
        /// What was being done.
        action: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// A key outside the partition, too short to name one, or longer than [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES).
    #[error("not a key for this place: {reason}")]
    Key {
        /// What is wrong with it.
        reason: String,
    },
    /// A value longer than [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES).
    #[error("a value of {len} bytes is too large")]
    TooLarge {
        /// The length of the value.
        len: usize,
    },
    /// Another checkpoint of the partition is open.
    #[error("a checkpoint of partition {partition} is open already")]
    Busy {
        /// The partition.
        partition: PartitionId,
    },
    /// A change of this checkpoint failed, so it can't be committed. Another one may begin.
    #[error("a change of this checkpoint of partition {partition} failed; begin another one")]
    Stopped {
        /// The partition.
        partition: PartitionId,
    },
}

impl StoreError {
    /// Whether only a rebuild from the log helps.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. })
    }

    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action: action.into(), source }
    }
}

impl From<TableError> for StoreError {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Damaged { what } => Self::Damaged { what },
            TableError::OtherFormat { .. } => Self::OtherFormat { what: error.to_string() },
            TableError::Io { action, source } => Self::Io { action: action.into(), source },
        }
    }
}
