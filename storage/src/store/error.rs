use std::io;

use thiserror::Error;

use crate::keyspace::PartitionId;
use crate::sstable::TableError;

/// An error of a [`Store`](super::Store).
#[derive(Debug, Error)]
pub enum StoreError {
    /// The stored data is inconsistent: a checksum, a digest, a missing part. The store must be
    /// rebuilt from the log; [`DiskStore::move_aside`](super::DiskStore::move_aside) makes room for
    /// it.
    #[error("the store is damaged: {what}")]
    Damaged {
        /// The damage and its place.
        what: String,
    },
    /// Another version of the program wrote the store. It must be rebuilt from the log.
    #[error("{what}")]
    OtherFormat {
        /// The difference of the format.
        what: String,
    },
    /// The operating system returned an error.
    #[error("the store could not {action}: {source}")]
    Io {
        /// The operation.
        action: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A key outside of the partition, too short to contain one, or longer than
    /// [`MAX_KEY_BYTES`](super::MAX_KEY_BYTES).
    #[error("invalid key: {reason}")]
    Key {
        /// The problem.
        reason: String,
    },
    /// A value longer than [`MAX_VALUE_BYTES`](super::MAX_VALUE_BYTES).
    #[error("a value of {len} bytes is too large")]
    TooLarge {
        /// The length of the value.
        len: usize,
    },
    /// Another checkpoint of the partition is open.
    #[error("a checkpoint of partition {partition} is already open")]
    Busy {
        /// The partition.
        partition: PartitionId,
    },
    /// A change of this checkpoint failed, so it can't be committed. A new checkpoint may begin.
    #[error("a change of this checkpoint of partition {partition} failed; begin a new checkpoint")]
    Stopped {
        /// The partition.
        partition: PartitionId,
    },
}

impl StoreError {
    /// Whether only a rebuild from the log helps.
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
