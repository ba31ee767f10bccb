//! How a running engine is doing, in figures.

use std::time::Duration;

use headcount_domain::intake::event::Position;
use headcount_domain::quota::Quota;

use super::handle::Engine;
use super::open::last_position;

/// Figures about a running engine.
#[derive(Debug, Clone, Copy)]
pub struct Vitals {
    /// The position of the last durable event.
    pub log_position: Position,
    /// Bytes of events under way.
    pub admitted_bytes: usize,
    /// The limit of these.
    pub admission_limit_bytes: usize,
    /// Events that were set aside.
    pub dead_letters: usize,
    /// Whether a part of the store or of the index of external ids was found damaged. The next start rebuilds them.
    pub damage_found: bool,
    /// Free space on the data directory's disk.
    pub free_disk_bytes: u64,
    /// Bytes of records and rollups in memory, as each shard last estimated them.
    pub record_bytes: usize,
    /// How many of these are kept before some are let go of.
    pub record_limit_bytes: usize,
    /// How many partitions have a checkpoint that could not be written yet. It is tried again by itself.
    pub checkpoints_failing: usize,
    /// How many of these take no more events until it can.
    pub partitions_refusing: usize,
    /// For how long some event that counts has been in no durable checkpoint: what was recorded since then is replayed at
    /// the next start. Zero: nothing would be.
    pub unsaved_for: Duration,
    /// How many projects have reached a quota, of those that were used since the start.
    pub projects_at_quota: usize,
    /// How many events each quota refused since the start.
    pub quota_refusals: [(Quota, u64); Quota::ALL.len()],
}

impl Engine {
    /// Figures for `/metrics`.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let progress = &self.inner.admission.checkpoints;
        Vitals {
            checkpoints_failing: progress.failing(),
            partitions_refusing: progress.full(),
            unsaved_for: progress.longest_unsaved().unwrap_or_default(),
            projects_at_quota: self.inner.quotas.count(),
            quota_refusals: self.inner.quotas.refusals(),
            log_position: last_position(&*self.inner.history),
            admitted_bytes: self.inner.admission.gate.used(),
            admission_limit_bytes: self.inner.admission.gate.limit(),
            dead_letters: self.inner.dead.count(),
            damage_found: self.inner.damage.found(),
            free_disk_bytes: self.inner.admission.disk.free_bytes(),
            record_bytes: self.inner.memory.resident(),
            record_limit_bytes: self.inner.config.record_bytes(),
        }
    }
}
