//! Bytes that last. This crate knows partitions, positions, keys and values; nothing of analytics.
//!
//! - [`log`]: the event log (segments, group commit, recovery).
//! - [`store`]: rollups and records, changed by checkpoints (on disk, and an in-memory twin).
//! - [`external_ids`]: the index of external ids.
//! - `sstable`: the sorted tables under both.
//! - [`backup`]: the files of a data directory, copied elsewhere and back.
//! - [`aside`]: directories that are no longer trusted.
//! - [`keyspace`]: every space of the store, and the keys in it.
//! - [`codec`]: a version byte and bincode.
//! - [`background`]: work that gives way to others; [`pace`]: of checks.
//! - [`mod@boot_time`]: a clock that nobody sets.
//! - [`starts`]: the last starts of a data directory.
//! - [`mod@format`]: what a data directory says of itself; [`lock`]: one process per directory; [`files`]: small files,
//!   written whole or not at all.

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
