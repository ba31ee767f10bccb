//! Which events were set aside, where several engines keep that so that the next owner of a partition knows it.

use std::collections::BTreeSet;
use std::fmt::Debug;

use headcount_domain::intake::event::Position;

/// Why it is not recorded that events were set aside. They are not passed over then.
#[derive(Debug, thiserror::Error)]
pub enum SharedLettersError {
    /// The partition is no longer this engine's.
    #[error("partition {0} is another node's now")]
    NotOwner(u16),
    /// So many were set aside that something else is wrong.
    #[error("partition {partition} has {count} events that were set aside; there can be no more")]
    TooMany {
        /// The partition.
        partition: u16,
        /// How many there are.
        count: usize,
    },
    /// Nobody says that it is durable. It may be.
    #[error("{0}")]
    Unavailable(String),
}

/// Where members keep the positions of events that were set aside. Its functions block, and must not be called by tasks.
pub trait SharedLetters: Debug + Send + Sync {
    /// Records that these events of a partition of this engine were set aside, besides those of before. When this returns, whoever takes the partition over knows it.
    ///
    /// # Errors
    /// [`SharedLettersError`].
    fn set_aside(&self, partition: u16, positions: &BTreeSet<Position>) -> Result<(), SharedLettersError>;
}
