//! The index of external ids: the first position of each. Kept forever.
//!
//! An id is represented by a 128-bit keyed hash, its fingerprint. New ones go to a table in memory (the memtable). Before a checkpoint it is
//! [frozen](ExternalIds::freeze), written as a [sorted table](crate::sstable) by another thread, and then replaced by it. Tables
//! of similar size are [merged](ExternalIds::merge), so that their number grows with the logarithm of the entries. An entry takes about 1.7 bytes
//! of memory and at most 24 on disk.
//!
//! Two rules tie the index to the log and the checkpoints:
//! - It may be *ahead* of the checkpoint: at a replay an event finds its own position, and so is the first again.
//! - It must not be *behind*: before a checkpoint commits, the memtable with its positions is frozen and written. The owner stores
//!   with the checkpoint how many different ids its events have: an index with fewer [entries](ExternalIds::entries) is behind.
//!
//! ```text
//! owner's thread                     another thread
//! freeze() ── Frozen ──────────────▶ write(): table synced, manifest replaced
//! adopt()  ◀───────────── Written ──
//! merge()  ── Merge ───────────────▶ write(): tables merged, manifest replaced, old files removed
//! adopt()  ◀───────────── Written ──
//! ```

mod error;
mod index;
mod jobs;
mod manifest;
mod memtable;
mod view;

#[cfg(test)]
mod tests;

pub use error::ExternalIdsError;
pub use index::{ExternalIds, ExternalIdsOptions, Freeze};
pub use jobs::{Frozen, Merge, Purge, Written};
pub use view::{ExternalIdEntries, ExternalIdsView};
