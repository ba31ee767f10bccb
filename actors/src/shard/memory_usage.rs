//! Bytes of records and rollups in memory: of all shards of an engine, and of a project.

use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_domain::Project;
use headcount_domain::cache::bytes::Bytes;

/// The sum over all shards. One busy project may use the memory of all shards.
#[derive(Debug, Default)]
pub(crate) struct MemoryUsage {
    resident: AtomicUsize,
    unsaved: AtomicUsize,
    stuck: AtomicUsize,
    rollups: AtomicUsize,
}

/// Bytes in memory, of one shard or of all.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Usage {
    /// Bytes of partitions whose checkpoints can be written, and the saved bytes of the others.
    pub(super) free: Bytes,
    /// Bytes that stuck partitions must keep.
    pub(super) stuck: usize,
    /// Bytes of rollups, which are part of the above.
    pub(super) rollups: usize,
}

impl MemoryUsage {
    /// Bytes of records and rollups in memory.
    pub(crate) fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed).wrapping_add(self.stuck.load(Ordering::Relaxed))
    }

    /// Replaces the last report of one shard by `now`, and returns the new sum over all shards.
    pub(super) fn replace(&self, before: Usage, now: Usage) -> Usage {
        let replace = |total: &AtomicUsize, before: usize, now: usize| {
            let rest = total.fetch_add(now.wrapping_sub(before), Ordering::Relaxed).wrapping_sub(before);
            rest.wrapping_add(now)
        };
        Usage {
            free: Bytes {
                resident: replace(&self.resident, before.free.resident, now.free.resident),
                unsaved: replace(&self.unsaved, before.free.unsaved, now.free.unsaved),
            },
            stuck: replace(&self.stuck, before.stuck, now.stuck),
            rollups: replace(&self.rollups, before.rollups, now.rollups),
        }
    }
}

/// The memory of one or all projects, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Weight {
    /// All memory.
    pub(super) all: Bytes,
    /// Rollups and versions, which are part of `all` and can't be evicted.
    pub(super) rollups: usize,
}

impl Weight {
    pub(super) fn of(project: &mut Project) -> Self {
        Self { all: project.bytes(), rollups: project.rollup_bytes() }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.all += other.all;
        self.rollups += other.rollups;
    }

    pub(super) fn subtract(&mut self, other: Self) {
        self.all.resident -= other.all.resident;
        self.all.unsaved -= other.all.unsaved;
        self.rollups -= other.rollups;
    }

    /// Whether a part of it can be evicted.
    pub(super) fn is_evictable(self) -> bool {
        self.all.resident > self.rollups + self.all.unsaved
    }
}
