//! The part of the store in [sorted tables](crate::sstable).
//!
//! A checkpoint writes its changes of a partition as a new table, in one pass. Tables of similar
//! size are merged in the background. The manifest of a partition's tables is a small value that is
//! stored elsewhere and committed with the checkpoint, so everything takes effect together
//! ([`super::DiskStore`] keeps it in sled).

mod changes;
mod directory;
mod partition;

#[cfg(test)]
mod tests;

pub(super) use changes::{Prepared, TableChanges};
pub use directory::AtRest;
pub(super) use directory::{Tables, open_table_copies, scan_tables};
