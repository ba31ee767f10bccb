//! Seals events into the archive, merges its files, and removes what is sealed from the log.
//!
//! A thread of its own does it, beside the checkpoint writer. Events are sealed behind the durable checkpoints, so that the index of
//! external ids knows which of them are duplicates. What is sealed becomes visible with the archive's catalog; only then the log is trimmed. The same
//! thread removes what is recorded of deleted projects.

mod bases;
mod damage;
mod deletions;
mod due;
mod erasures;
mod error;
mod figures;
mod file_cache;
mod file_rewriting;
mod marks;
mod merges;
mod old_logged_events;
mod pass;
mod resting;
mod retention;
mod sealing;
mod shared_erasures;
mod sources;
mod thread;
mod work;

use std::time::Duration;

use headcount_domain::time::Day;

pub(crate) use deletions::remove_small_files;
pub(crate) use file_cache::archive_dir;
pub use sealing::Sealed;
pub(crate) use sources::{ArchiveSettings, EngineSources, RemovalSources, StepProbe, Trimming, writer_options};
pub(crate) use thread::Archiver;

/// When events are sealed, and how.
#[derive(Debug, Clone, Copy)]
pub struct ArchivePolicy {
    /// The age at which events are sealed.
    pub seal_after: Duration,
    /// The number of unsealed events in durable checkpoints at which they are sealed.
    pub seal_events: u64,
    /// The most bytes of files that a member keeps on its disk, besides those that only it has: it fetches others when they are read.
    pub cache_bytes: u64,
    /// How long a partition has not changed when its tables are merged to one.
    #[doc(hidden)]
    pub rest: Duration,
    /// The compression level of zstd.
    pub level: i32,
    /// The most rows of a file: for tests of merging.
    #[doc(hidden)]
    pub file_rows: Option<u64>,
    /// The number of files of the current month above which they are merged: for tests of merging.
    #[doc(hidden)]
    pub month_files: Option<usize>,
    /// The day before which the events of all projects are removed from the archive, whatever their floor: for tests of their removal.
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
