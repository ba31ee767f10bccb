//! The data that sealing reads.

use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headcount_archive::{Archive, ArchiveError, Catalog, CompactOptions, MAX_FILE_ROWS, SealOptions, WriterOptions};
use headcount_common::clock::Clock;
use headcount_common::{SharedArchive, partition_of};
use headcount_domain::{Position, ProjectId};
use headcount_storage::store::DiskStore;
use tokio::sync::Semaphore;

use super::ArchivePolicy;
use crate::checkpoint_writer::CheckpointWriter;
use crate::deleted_projects::DeletedProjects;
use crate::history::SealedEvents;
use crate::ingest::Ingest;
use crate::memory_budget::recomputation_bytes;
use crate::questions::Questions;
use crate::refolding::{FoldSources, StopFlags};
use crate::scans::Scans;

/// A function that is called with the name of each step.
pub(crate) type StepProbe = Option<Arc<dyn Fn(&'static str) + Send + Sync>>;

/// The configuration of the archive.
pub(crate) struct ArchiveSettings {
    pub(crate) policy: ArchivePolicy,
    /// The memory budget of the engine.
    pub(crate) memory_bytes: usize,
    pub(crate) min_free_bytes: u64,
    pub(crate) data_dir: PathBuf,
    /// The directories of the store and of the index of external ids.
    pub(crate) derived_dirs: [PathBuf; 2],
    pub(crate) clock: Arc<dyn Clock>,
    /// Called between the steps of sealing, merging and deleting. Tests that kill the process at
    /// each step set it.
    pub(crate) probe: StepProbe,
}

/// The sources that all archives of an engine share.
pub(crate) struct EngineSources {
    pub(crate) settings: ArchiveSettings,
    pub(crate) scans: Scans,
    pub(crate) ingest: Arc<Ingest>,
    pub(crate) files: Arc<dyn SharedArchive>,
    pub(crate) store: Arc<DiskStore>,
    pub(crate) writer: CheckpointWriter,
    /// Writes a record that changes nothing to the log of a project's partition, as a message of
    /// its own. Returns whether it is recorded. Blocks.
    pub(crate) mark: Box<dyn Fn(ProjectId) -> bool + Send + Sync>,
    /// Held by a backup in progress.
    pub(crate) backups: Arc<Semaphore>,
    /// The projects that are being deleted.
    pub(crate) deleted: Arc<DeletedProjects>,
    /// The position up to which all events were delivered to their shards.
    pub(crate) delivered: Arc<AtomicU64>,
    pub(crate) stop: Arc<AtomicBool>,
}

impl Deref for EngineSources {
    type Target = Questions;

    fn deref(&self) -> &Questions {
        &self.scans.questions
    }
}

/// The sources of one archive.
pub(crate) struct Sources {
    pub(crate) engine: Arc<EngineSources>,
    pub(crate) sealed: Arc<SealedEvents>,
    /// The partitions with events in the archive.
    pub(crate) partitions: Range<u16>,
    /// Set when its partition is given up.
    pub(crate) is_given_up: Arc<AtomicBool>,
}

impl Deref for Sources {
    type Target = EngineSources;

    fn deref(&self) -> &EngineSources {
        &self.engine
    }
}

/// The options of the writers of files, within a memory budget. While it is written, a row group
/// takes up to four times its size in memory.
pub(crate) fn writer_options(memory_bytes: usize, level: i32) -> WriterOptions {
    WriterOptions { level, row_group_bytes: (memory_bytes / 64).clamp(1 << 20, 8 << 20) }
}

impl EngineSources {
    /// Reports that a step is done.
    pub(super) fn done(&self, step: &'static str) {
        if let Some(probe) = &self.settings.probe {
            probe(step);
        }
    }

    /// The free bytes of the disk.
    pub(super) fn free_bytes(&self) -> u64 {
        crate::free_space::free_bytes(&self.settings.data_dir)
    }

    /// The free bytes of the disk above those that must stay free.
    pub(super) fn spare_bytes(&self) -> u64 {
        self.free_bytes().saturating_sub(self.settings.min_free_bytes)
    }

    /// Whether there is room to write files.
    pub(super) fn has_space(&self) -> bool {
        self.free_bytes() >= self.settings.min_free_bytes
    }
}

impl Sources {
    /// Whether the archive has the events of a project.
    pub(super) fn has(&self, project: ProjectId) -> bool {
        self.partitions.contains(&partition_of(project))
    }

    /// Whether the log is so full that its events should be sealed early.
    pub(super) fn needs_room(&self) -> bool {
        self.partitions.clone().any(|partition| self.files.needs_room(partition))
    }

    /// The approximate number of unsealed events.
    pub(super) fn unsealed(&self) -> u64 {
        let sealed_until = self.sealed.catalog().sealed_until();
        match self.logged.is_in_order() {
            _ if !self.files.seals() => 0,
            false => self.partitions.clone().map(|partition| self.logged.events_after(partition, sealed_until)).sum(),
            true => self.delivered.load(Ordering::Acquire).saturating_sub(sealed_until),
        }
    }

    /// The approximate number of events between two positions.
    pub(super) fn events_between(&self, after: Position, until: Position) -> u64 {
        let events_after =
            |position| -> u64 { self.partitions.clone().map(|partition| self.logged.events_after(partition, position)).sum() };
        match self.logged.is_in_order() {
            false => events_after(after).saturating_sub(events_after(until)),
            true => until.saturating_sub(after),
        }
    }

    /// The position up to which all events are in durable checkpoints; `None` if unknown now.
    pub(super) fn durable_until(&self) -> Option<Position> {
        match self.logged.is_in_order() {
            false => self.partitions.clone().map(|partition| self.shards.durable_until_of(partition)).min().flatten(),
            true => self.shards.durable_until(self.delivered.load(Ordering::Acquire)),
        }
    }

    /// The position up to which all events were acknowledged by now; `None` if unknown now.
    pub(super) fn recorded_until(&self) -> Option<Position> {
        match self.logged.is_in_order() {
            false => self.partitions.clone().map(|partition| self.shards.applied_until_of(partition)).max().flatten(),
            true => Some(self.delivered.load(Ordering::Acquire)),
        }
    }

    /// The options of new files.
    pub(super) fn seal_options(&self) -> SealOptions {
        let writer = writer_options(self.settings.memory_bytes, self.settings.policy.level);
        SealOptions { writer, file_rows: self.settings.policy.file_rows.unwrap_or(MAX_FILE_ROWS) }
    }

    pub(super) fn compact_options(&self) -> CompactOptions {
        let CompactOptions { month_files, .. } = CompactOptions::default();
        CompactOptions { month_files: self.settings.policy.month_files.unwrap_or(month_files), seal: self.seal_options() }
    }

    /// The bytes of events to collect before a project's events are written.
    pub(super) fn buffer_bytes(&self) -> usize {
        (self.settings.memory_bytes / 16).clamp(4 << 20, 64 << 20)
    }

    /// The sources for folding a project.
    pub(super) fn fold_sources(&self) -> FoldSources {
        FoldSources {
            data_dir: self.settings.data_dir.clone(),
            sealed: Arc::clone(&self.sealed),
            logged: self.logged.clone(),
            dead: Arc::clone(&self.scans.dead),
            deleted: Arc::clone(&self.deleted),
            erasures: Arc::clone(&self.erasures),
            hasher: self.hasher().clone(),
            store: Arc::clone(&self.store),
            shards: Arc::clone(&self.shards),
            record_bytes: recomputation_bytes(self.settings.memory_bytes),
            min_free_bytes: self.settings.min_free_bytes,
            stop: StopFlags(vec![Arc::clone(&self.stop), Arc::clone(&self.is_given_up)]),
            probe: self.settings.probe.clone(),
        }
    }

    /// Opens the archive of a project that has sealed events according to `catalog`; `None` if it
    /// has none.
    pub(super) fn existing_archive(&self, catalog: &Catalog, project: ProjectId) -> Option<Result<Archive, ArchiveError>> {
        catalog.last_of(project).map(|last| self.sealed.list(project, last))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire) || self.is_given_up.load(Ordering::Acquire)
    }
}
