//! The memory of projects.

use headcount_domain::cache::bytes::Bytes;
use headcount_domain::project::Project;

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
