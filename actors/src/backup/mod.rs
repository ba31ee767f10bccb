//! What a backup of a data directory consists of, at one moment.
//!
//! A running engine gives every file a second name in the directory `backup.tmp`, so that a slow reader of the backup keeps nothing from
//! being trimmed or merged. Files that only grow are bounded by their length at that moment.
//!
//! The order decides what a backup holds. First the log is held. What may be behind the log comes before the position is taken: dead
//! letters (one of a later event would set aside another event), journals of imports (one that is ahead would skip lines), and the
//! archive. Then the log up to what is durable, and at last the control data, which has every project of these events.

mod collector;
mod error;
mod later_erasures;
mod made_directory;
mod new_log;
mod restoring;
mod snapshot;
mod staging;
#[cfg(test)]
mod tests;

pub use error::{BackupFailure, RestoreFailure};
pub use later_erasures::TakenErasures;
pub(crate) use made_directory::MadeDirectory;
pub(crate) use new_log::NewLog;
pub use restoring::restore;
pub use snapshot::BackupSnapshot;
pub(crate) use staging::remove_left_over;
