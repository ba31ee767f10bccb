//! Seals events into the archive, merges its files, and removes sealed events from the log.
//!
//! The archiver has its own thread, beside the checkpoint writer. It seals only events in durable
//! checkpoints, so that the index of external ids knows the duplicates. Sealed events become
//! visible with the archive's catalog, and only then the log is trimmed. The same thread removes
//! the data of deleted projects.

mod bases;
mod cleaning;
mod damage;
mod deletions;
mod erasures;
mod error;
mod figures;
mod file_cache;
mod file_rewriting;
mod log_removal;
mod merges;
mod old_logged_events;
mod pass;
mod resting;
mod retention;
mod sealing;
mod sources;
mod thread;
mod work;

use std::time::Duration;

use headcount_domain::Day;

pub(crate) use deletions::remove_small_files;
pub(crate) use file_cache::archive_dir;
pub use sealing::Sealed;
pub(crate) use sources::{ArchiveSettings, EngineSources, StepProbe, writer_options};
pub(crate) use thread::Archiver;

/// The times and options of sealing.
#[derive(Debug, Clone, Copy)]
pub struct ArchivePolicy {
    /// The age at which events are sealed.
    pub seal_after: Duration,
    /// The number of unsealed events in durable checkpoints at which they are sealed.
    pub seal_events: u64,
    /// The maximum bytes of files that a node keeps on its disk, besides unpublished files. It
    /// fetches other files when they are read.
    pub cache_bytes: u64,
    /// How long a partition must be unchanged before its tables are merged into one.
    #[doc(hidden)]
    pub rest: Duration,
    /// The compression level of zstd.
    pub level: i32,
    /// The maximum number of rows of a file. Tests of merging set it.
    #[doc(hidden)]
    pub file_rows: Option<u64>,
    /// The number of files of the current month above which they are merged. Tests of merging set
    /// it.
    #[doc(hidden)]
    pub month_files: Option<usize>,
    /// The day before which the events of all projects are removed from the archive, whatever their
    /// floor. Tests of the removal set it.
    #[doc(hidden)]
    pub keep_from: Option<Day>,
}

impl Default for ArchivePolicy {
    fn default() -> Self {
        Self {
            seal_after: Duration::from_secs(24 * 60 * 60),
            seal_events: 1 << 18,
            cache_bytes: 10 << 30,
            rest: Duration::from_secs(60),
            level: 3,
            file_rows: None,
            month_files: None,
            keep_from: None,
        }
    }
}
