//! Rollups and records: an ordered map from keys to values, changed by *checkpoints*.
//!
//! A partition (the first two bytes of every key) is the unit of change: one checkpoint at a time
//! per partition, and partitions are independent. A checkpoint becomes visible and durable as a
//! whole at [`OpenCheckpoint::commit`] or not at all, so a record and its log position are written
//! together. The store can always be rebuilt from the log, so it reports damage
//! ([`StoreError::Damaged`]) and never guesses.
//!
//! There are two stores: [`DiskStore`] (sled and sorted tables) and [`MemoryStore`] for tests and
//! trials. One conformance suite (`tests/store_conformance.rs`) runs on both.

mod contract;
mod disk;
mod error;
#[cfg(test)]
mod fault_tests;
mod memory;
mod options;
mod sled;
mod snapshot;
mod tables;

pub use contract::{MAX_KEY_BYTES, MAX_PAIR_BYTES, MAX_VALUE_BYTES, OpenCheckpoint, Store, Visit};
pub use disk::DiskStore;
pub use error::StoreError;
pub use memory::MemoryStore;
pub use options::{Check, StoreOptions};
pub use snapshot::{PartitionSnapshot, SnapshotPairs, StoredPair};
pub use tables::AtRest;
