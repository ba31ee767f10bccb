//! What sealing reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use headcount_archive::archive::Archive;
use headcount_archive::catalog::Catalog;
use headcount_archive::compact::CompactOptions;
use headcount_archive::error::ArchiveError;
use headcount_archive::file::WriterOptions;
use headcount_archive::seal::{MAX_FILE_ROWS, SealOptions};
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_domain::intake::event::Position;
use headcount_storage::external_ids::ExternalIdsView;
use headcount_storage::log::LogTrimmer;

use super::ArchivePolicy;
use crate::clock::Clock;
use crate::dead_letters::DeadLetters;
use crate::history::{LoggedEvents, SealedEvents};
use crate::registry::Registry;

/// The shards, as far as sealing asks them. Calls block.
pub(crate) trait ShardBarrier: Send {
    /// Returns the position up to which everything is in durable checkpoints, if everything up to `delivered` has been delivered to
    /// the shards. `None`: not known now.
    fn durable_until(&self, delivered: Position) -> Option<Position>;

    /// Has checkpoints of everything taken soon.
    fn want_checkpoints(&self);

    /// Returns a view of the durable external ids of a partition. `None`: it does not answer.
    fn known_ids(&self, partition: u16) -> Option<ExternalIdsView>;
}

/// A function that is called with the name of each step.
pub(crate) type StepProbe = Option<Arc<dyn Fn(&'static str) + Send + Sync>>;

/// See the module.
pub(crate) struct Sources {
    pub(crate) policy: ArchivePolicy,
    /// The memory budget of the engine.
    pub(crate) memory_bytes: usize,
    pub(crate) min_free_bytes: u64,
    pub(crate) data_dir: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sealed: Arc<SealedEvents>,
    pub(crate) logged: LoggedEvents,
    pub(crate) trimmer: LogTrimmer,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) hasher: KeyHasher,
    pub(crate) registry: Arc<Registry>,
    pub(crate) shards: Box<dyn ShardBarrier>,
    /// The last position that was delivered to its shard, with all before it.
    pub(crate) delivered: Arc<AtomicU64>,
    pub(crate) stop: Arc<AtomicBool>,
    /// Called between the steps of sealing and merging: for tests of a kill at each of them.
    pub(crate) probe: StepProbe,
}

impl Sources {
    /// The options of new files. A row group takes up to four times its size in memory while it is written.
    pub(super) fn seal_options(&self) -> SealOptions {
        let row_group_bytes = (self.memory_bytes / 64).clamp(1 << 20, 8 << 20);
        let writer = WriterOptions { level: self.policy.level, row_group_bytes };
        SealOptions { writer, file_rows: self.policy.file_rows.unwrap_or(MAX_FILE_ROWS) }
    }

    pub(super) fn compact_options(&self) -> CompactOptions {
        let CompactOptions { month_files, .. } = CompactOptions::default();
        CompactOptions { month_files: self.policy.month_files.unwrap_or(month_files), seal: self.seal_options() }
    }

    /// How many bytes of events are collected before those of a project are written.
    pub(super) fn buffer_bytes(&self) -> usize {
        (self.memory_bytes / 16).clamp(4 << 20, 64 << 20)
    }

    /// Opens the archive of a project that has sealed events according to `catalog`. `None`: it has none.
    pub(super) fn existing_archive(&self, catalog: &Catalog, project: ProjectId) -> Option<Result<Archive, ArchiveError>> {
        catalog.last_of(project).map(|last| self.sealed.list(project, last))
    }

    /// Reports that a step is done.
    pub(super) fn done(&self, step: &'static str) {
        if let Some(probe) = &self.probe {
            probe(step);
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Acquire)
    }

    /// Whether there is room to write files.
    pub(super) fn has_space(&self) -> bool {
        crate::free_space::free_bytes(&self.data_dir) >= self.min_free_bytes
    }
}
