//! The part of the store that lies in [sorted tables](crate::sstable).
//!
//! A checkpoint writes its changes of a partition as a new table, in one pass; tables of similar size are merged in the background.
//! The manifest of a partition's tables is a small value that is kept elsewhere and changes with the checkpoint, so that all of it
//! counts at once ([`super::DiskStore`] keeps it in sled).

mod changes;
mod directory;
mod partition;

#[cfg(test)]
mod tests;

pub(super) use changes::{Prepared, TableChanges};
pub use directory::AtRest;
pub(super) use directory::{Tables, open_table_copies, scan_tables};
