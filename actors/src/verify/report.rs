//! The result of a verification.

use std::collections::BTreeMap;
use std::ops::Range;

use headcount_common::partition_of;
use headcount_domain::{Position, ProjectId};
use headcount_storage::log::LogError;
use serde::{Deserialize, Serialize};

/// The number of differing cells that are described. All of them are counted.
const MAX_CELLS: usize = 1_000;
/// The number of damaged files that are named.
const MAX_DAMAGED: usize = 1_000;

/// A project whose state was recomputed and compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifiedProject {
    /// The position of the last event that the stored state reflects.
    pub position: Position,
    /// The number of events that it was recomputed from.
    pub events: u64,
    /// The number of compared cells and records.
    pub cells: u64,
    /// The number of those cells with days below the floor, whose events history may no longer
    /// have.
    pub frozen: u64,
}

/// A cell, or a record, whose stored value differs from the recomputed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferingCell {
    /// The address of the node that has it; `None` on a single machine.
    pub node: Option<String>,
    /// The project.
    pub project: ProjectId,
    /// The rollup, index or kind of record.
    pub rollup: String,
    /// The key. Its day comes first, if it has one.
    pub key: String,
    /// The stored value; `None` if there is none.
    pub stored: Option<String>,
    /// The recomputed value; `None` if there should be none.
    pub recomputed: Option<String>,
}

/// A damaged file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DamagedFile {
    /// The address of the node that found it; `None` on a single machine.
    pub node: Option<String>,
    /// Its path in the data directory, or the address of an object that all nodes share.
    pub file: String,
    /// The damage.
    pub reason: String,
}

/// The outcome of a verification in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyStatus {
    /// The stored state equals the recomputed one.
    Clean,
    /// Nothing wrong was found, but some data were not checked.
    Incomplete,
    /// Cells differ.
    Differs,
    /// Files are damaged. State that depends on them was not recomputed.
    Damaged,
}

/// A partition of a cluster that was not verified completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnverifiedPartition {
    /// The address of the node that should have verified it; `None` if no node had the partition.
    pub node: Option<String>,
    /// The reason.
    pub reason: String,
}

/// The size of a report, so that later additions can be removed.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReportMark {
    differing: u64,
    cells: usize,
    damaged: usize,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// The projects that were recomputed.
    pub projects: BTreeMap<ProjectId, VerifiedProject>,
    /// The number of differing cells.
    pub differing: u64,
    /// The first differing cells.
    pub cells: Vec<DifferingCell>,
    /// The damaged files.
    pub damaged: Vec<DamagedFile>,
    /// The partitions that were not verified completely. A single machine has none: it verifies
    /// all, or reports nothing.
    pub not_verified: BTreeMap<u16, UnverifiedPartition>,
}

impl VerifyReport {
    /// The outcome in one word.
    pub fn status(&self) -> VerifyStatus {
        match (self.damaged.is_empty(), self.differing) {
            (false, _) => VerifyStatus::Damaged,
            (true, 0) if !self.not_verified.is_empty() => VerifyStatus::Incomplete,
            (true, 0) => VerifyStatus::Clean,
            (true, _) => VerifyStatus::Differs,
        }
    }

    /// Adds a differing cell. `describe` is called only if there is room for it.
    pub(super) fn differs(&mut self, describe: impl FnOnce() -> DifferingCell) {
        self.differing += 1;
        if self.cells.len() < MAX_CELLS {
            self.cells.push(describe());
        }
    }

    /// Adds a damaged file, once.
    pub fn is_damaged(&mut self, file: impl Into<String>, reason: impl ToString) {
        let file = file.into();
        if self.damaged.len() < MAX_DAMAGED && self.damaged.iter().all(|known| known.file != file) {
            self.damaged.push(DamagedFile { node: None, file, reason: reason.to_string() });
        }
    }

    /// Adds the damaged segment of a log. Returns `false` for other errors.
    pub(crate) fn take_log_damage(&mut self, error: &LogError) -> bool {
        let LogError::Damaged { segment, offset, reason } = error else { return false };
        self.is_damaged(format!("log/{segment:020}.seg"), format!("damaged at byte {offset}: {reason}"));
        true
    }

    /// Adds a partition that was not verified completely. The first reason counts.
    pub(crate) fn is_not_verified(&mut self, partition: u16, reason: impl ToString) {
        let because = || UnverifiedPartition { node: None, reason: reason.to_string() };
        self.not_verified.entry(partition).or_insert_with(because);
    }

    /// Sets the node that found all of this.
    pub(crate) fn found_by(mut self, node: Option<&str>) -> Self {
        let node = || node.map(str::to_owned);
        self.cells.iter_mut().for_each(|cell| cell.node = node());
        self.damaged.iter_mut().for_each(|damaged| damaged.node = node());
        self.not_verified.values_mut().for_each(|partition| partition.node = node());
        self
    }

    /// Adds the report of another node.
    pub(crate) fn add(&mut self, other: Self) {
        let Self { projects, differing, cells, damaged, not_verified } = other;
        self.projects.extend(projects);
        self.differing += differing;
        self.cells.extend(cells);
        self.cells.truncate(MAX_CELLS);
        self.damaged.extend(damaged);
        self.damaged.truncate(MAX_DAMAGED);
        for (partition, why) in not_verified {
            self.not_verified.entry(partition).or_insert(why);
        }
    }

    /// Returns the current size.
    pub(super) fn mark(&self) -> ReportMark {
        ReportMark { differing: self.differing, cells: self.cells.len(), damaged: self.damaged.len() }
    }

    /// Whether files were found damaged since `mark`.
    pub(super) fn has_damaged_since(&self, mark: ReportMark) -> bool {
        self.damaged.len() > mark.damaged
    }

    /// Removes the findings about partitions since `mark`.
    pub(super) fn take_back(&mut self, mark: ReportMark, partitions: &Range<u16>) {
        self.differing = mark.differing;
        self.cells.truncate(mark.cells);
        self.damaged.truncate(mark.damaged);
        self.projects.retain(|project, _| !partitions.contains(&partition_of(*project)));
    }
}

impl VerifyStatus {
    /// The outcome in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Incomplete => "incomplete",
            Self::Differs => "differs",
            Self::Damaged => "damaged",
        }
    }
}
