//! Figures about a running engine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use headcount_domain::{Position, Quota};

use super::handle::Engine;
use super::open::last_position;
use crate::scans::ViewFigures;

/// Figures about a running engine.
#[derive(Debug, Clone, Copy)]
pub struct Vitals {
    /// The position of the last durable event.
    pub log_position: Position,
    /// Bytes of events in flight.
    pub admitted_bytes: usize,
    /// Maximum bytes of events in flight.
    pub admission_limit_bytes: usize,
    /// Number of dead letters.
    pub dead_letters: usize,
    /// Whether damage was found in the store or the index of external ids. The next start rebuilds
    /// them.
    pub damage_found: bool,
    /// Free space on the data directory's disk in bytes.
    pub free_disk_bytes: u64,
    /// Bytes of records and rollups in memory, as each shard last reported them.
    pub record_bytes: usize,
    /// Budget for records and rollups in bytes.
    pub record_limit_bytes: usize,
    /// Number of partitions whose last checkpoint could not be written yet. It is retried.
    pub checkpoints_failing: usize,
    /// Number of partitions that refuse events until their checkpoints can be written.
    pub partitions_refusing: usize,
    /// Age of the oldest change that is in no durable checkpoint. The next start replays all events
    /// since then. Zero if there is none.
    pub unsaved_for: Duration,
    /// Number of files of the archive.
    pub archive_files: u64,
    /// Bytes of these files.
    pub archive_bytes: u64,
    /// Number of archive files that were found damaged.
    pub archive_damaged_files: usize,
    /// Number of projects whose events can't be sealed, because their list of files can't be used.
    pub seal_waiting_projects: u64,
    /// Number of projects that may have events of days beyond their retention.
    pub retention_pending: u64,
    /// How far the clock is ahead of the known time, if it is not believed.
    pub clock_ahead: Duration,
    /// Number of projects whose floors wait for a confirmation of the clock.
    pub floors_held: usize,
    /// Age of the oldest unsealed event; zero if all are sealed.
    pub seal_lag: Duration,
    /// Bytes that scans have written to temporary files since the start.
    pub scan_spilled_bytes: u64,
    /// Figures about kept answers.
    pub views: ViewFigures,
    /// Number of deleted projects whose data is not yet removed.
    pub deletions_pending: usize,
    /// Number of projects that have reached a quota, among those used since the start.
    pub projects_at_quota: usize,
    /// Number of events that each quota refused since the start.
    pub quota_refusals: [(Quota, u64); Quota::ALL.len()],
}

impl Engine {
    /// Returns the figures for `/metrics`.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let progress = &self.admission.checkpoints;
        let archive = &self.partitions.archiver.figures;
        Vitals {
            checkpoints_failing: progress.failing(),
            partitions_refusing: progress.full(),
            unsaved_for: progress.longest_unsaved().unwrap_or_default(),
            archive_files: archive.files.load(Ordering::Relaxed),
            archive_bytes: archive.bytes.load(Ordering::Relaxed),
            archive_damaged_files: self.partitions.archives.common.damaged_files(),
            deletions_pending: self.partitions.deleted.count(),
            seal_waiting_projects: archive.waiting_projects.load(Ordering::Relaxed),
            retention_pending: archive.retention_pending.load(Ordering::Relaxed),
            clock_ahead: self.clock_ahead().unwrap_or_default(),
            floors_held: self.held_floors(),
            seal_lag: Duration::from_millis(archive.lag_ms.load(Ordering::Relaxed)),
            scan_spilled_bytes: self.scans.scratch.written(),
            views: self.scans.view_figures(),
            projects_at_quota: self.ingest.quotas.count(),
            quota_refusals: self.ingest.quotas.refusals(),
            log_position: last_position(&*self.scans.history),
            admitted_bytes: self.admission.gate.used(),
            admission_limit_bytes: self.admission.gate.limit(),
            dead_letters: self.partitions.dead.count(),
            damage_found: self.partitions.damage.found(),
            free_disk_bytes: self.admission.disk.free_bytes(),
            record_bytes: self.inner.memory.resident(),
            record_limit_bytes: self.inner.config.record_bytes(),
        }
    }
}
