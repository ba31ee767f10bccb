//! The contents of a backup of a data directory, at one moment.
//!
//! A running engine gives every file a second name in the directory `backup.tmp`, so that a slow
//! reader of the backup delays no trimming or merging. Files that only grow are bounded by their
//! length at that moment.
//!
//! The order of reading matters:
//!
//! - First the log is held, so that nothing is trimmed.
//! - Then come dead letters, journals of imports and the archive, because none of them may be ahead
//!   of the log. A dead letter of a later event would set another event aside, and a journal that
//!   is ahead would skip lines.
//! - Then the durable part of the log.
//! - The control data come last, so that they have every project of these events.

mod collector;
mod error;
mod later_erasures;
#[cfg(feature = "cluster")]
mod made_directory;
#[cfg(feature = "cluster")]
mod new_log;
mod snapshot;
mod staging;
#[cfg(test)]
mod tests;

pub use error::{BackupFailure, RestoreFailure};
pub use later_erasures::TakenErasures;
pub use later_erasures::restore;
#[cfg(feature = "cluster")]
pub(crate) use made_directory::MadeDirectory;
#[cfg(feature = "cluster")]
pub(crate) use new_log::NewLog;
pub use snapshot::BackupSnapshot;
pub(crate) use staging::remove_left_over;
