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
mod sled;
mod snapshot;
mod tables;

pub use contract::{MAX_KEY_BYTES, MAX_PAIR_BYTES, MAX_VALUE_BYTES, OpenCheckpoint, Store, Visit};
pub use disk::DiskStore;
pub use error::StoreError;
pub use memory::MemoryStore;
pub use snapshot::{PartitionSnapshot, SnapshotPairs, StoredPair};
pub use tables::AtRest;

/// How thoroughly to check a store when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Read every pair: checksums and digests must agree. The time is proportional to the size of
    /// the store.
    Full,
    /// Like `Full`, except for the tables of a [`DiskStore`], which are most of
    /// it. [`DiskStore::verify_until`] checks them later, and each
    /// read checks its blocks.
    Small,
    /// Read nothing beyond what opening requires.
    Quick,
}

/// How to open a [`DiskStore`].
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// sled's page cache. It takes about three times as much memory; at most 64 MiB are used.
    pub cache_bytes: u64,
    /// The extent of the check.
    pub check: Check,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20, check: Check::Full }
    }
}
