//! Durable data. This crate knows partitions, positions, keys and values, but nothing about
//! analytics.
//!
//! - [`log`]: the event log (segments, group commit, recovery).
//! - [`store`]: rollups and records, changed by checkpoints (on disk, and in memory for tests).
//! - [`external_ids`]: the index of external ids.
//! - `sstable`: the sorted tables under both.
//! - [`backup`]: backup and restore of a data directory.
//! - [`aside`]: damaged directories.
//! - [`keyspace`]: every space of the store, and its keys.
//! - [`codec`]: a version byte and bincode.
//! - [`background`]: work that gives way to others; [`pace`]: of checks.
//! - [`mod@boot_time`]: a clock that can't be set.
//! - [`starts`]: the last starts of a data directory.
//! - [`mod@format`]: the description of a data directory; [`lock`]: one process per directory;
//!   [`files`]: file operations.

pub mod aside;
pub mod background;
pub mod backup;
pub mod boot_time;
pub mod codec;
#[cfg(test)]
mod copied_states_tests;
pub mod external_ids;
pub mod files;
pub mod format;
pub mod keyspace;
pub mod lock;
pub mod log;
pub mod pace;
mod parallel;
pub mod private;
mod random;
mod sstable;
pub mod starts;
pub mod store;

pub use sstable::{DamagedTable, PairVisitor, TableError, TableFile, TableFileReader, UncheckedTables};
pub use store::{DiskStore, MemoryStore, OpenCheckpoint, Store, StoreError};
