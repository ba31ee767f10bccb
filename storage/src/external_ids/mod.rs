//! The index of external ids, with the first position of each. It is kept forever.
//!
//! An id is represented by a 128-bit keyed hash, its fingerprint. New ones go to a table in memory
//! (the memtable). Before a checkpoint the memtable is [frozen](ExternalIds::freeze), another
//! thread writes it as a [sorted table](crate::sstable), and then the table replaces it. Tables of
//! similar size are [merged](ExternalIds::merge), so their number grows with the logarithm of the
//! entries. An entry takes about 1.7 bytes of memory and at most 24 on disk.
//!
//! Two rules connect the index with the log and the checkpoints:
//! - It may be *ahead* of the checkpoint: in a replay an event finds its own position, and so is
//!   the first again.
//! - It must not be *behind*: before a checkpoint commits, the memtable with its positions is
//!   frozen and written. The owner stores the number of distinct ids with the checkpoint. An index
//!   with fewer [entries](ExternalIds::entries) is behind.
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
