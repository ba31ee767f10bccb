//! The dead letters of a partition, stored so that its next owner knows them.

use std::collections::BTreeSet;
use std::fmt::Debug;

use headcount_domain::Position;

/// The reason why it is not recorded that events were set aside. The events are not skipped then.
#[derive(Debug, thiserror::Error)]
pub enum SharedLettersError {
    /// This engine no longer owns the partition.
    #[error("partition {0} is another node's now")]
    NotOwner(u16),
    /// The partition has so many dead letters that something else must be wrong.
    #[error("partition {partition} has {count} events that were set aside; there can be no more")]
    TooMany {
        /// The partition.
        partition: u16,
        /// The number of dead letters.
        count: usize,
    },
    /// The store does not answer whether the record is durable. It may be.
    #[error("{0}")]
    Unavailable(String),
}

/// A store of the positions of dead letters that all nodes share. Its functions block, so tasks
/// must not call them.
pub trait SharedLetters: Debug + Send + Sync {
    /// Records that these events of an owned partition were set aside, in addition to earlier ones.
    /// On return, any later owner of the partition knows them.
    ///
    /// # Errors
    /// Returns a [`SharedLettersError`].
    fn set_aside(&self, partition: u16, positions: &BTreeSet<Position>) -> Result<(), SharedLettersError>;
}
