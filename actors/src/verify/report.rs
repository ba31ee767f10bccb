//! The result of a verification.

use std::collections::BTreeMap;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

/// The number of differing cells that are described; all of them are counted.
const MAX_CELLS: usize = 1_000;
/// The number of damaged files that are named.
const MAX_DAMAGED: usize = 1_000;

/// A project whose state was recomputed and compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifiedProject {
    /// The position of the last event that the stored state reflects.
    pub position: Position,
    /// The number of events that it was recomputed from.
    pub events: u64,
    /// The number of cells and records that were compared.
    pub cells: u64,
    /// The number of those cells that are of days below the floor, whose events history may no longer have.
    pub frozen: u64,
}

/// A cell, or a record, whose stored value differs from the recomputed one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferingCell {
    /// The project.
    pub project: ProjectId,
    /// The rollup, index or kind of record.
    pub rollup: String,
    /// The key. Its day comes first, if it has one.
    pub key: String,
    /// The stored value. `None`: there is none.
    pub stored: Option<String>,
    /// The recomputed value. `None`: there should be none.
    pub recomputed: Option<String>,
}

/// A file that is not what was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DamagedFile {
    /// Its path in the data directory.
    pub file: String,
    /// What was found.
    pub reason: String,
}

/// The outcome of a verification in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyStatus {
    /// Everything is as it was recomputed.
    Clean,
    /// Cells differ.
    Differs,
    /// Files are damaged. What depends on them was not recomputed.
    Damaged,
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The projects that were recomputed.
    pub projects: BTreeMap<ProjectId, VerifiedProject>,
    /// The number of differing cells.
    pub differing: u64,
    /// The first of them.
    pub cells: Vec<DifferingCell>,
    /// The damaged files.
    pub damaged: Vec<DamagedFile>,
}

impl VerifyReport {
    /// The outcome in one word.
    #[must_use]
    pub fn status(&self) -> VerifyStatus {
        match (self.damaged.is_empty(), self.differing) {
            (false, _) => VerifyStatus::Damaged,
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
            self.damaged.push(DamagedFile { file, reason: reason.to_string() });
        }
    }
}

impl VerifyStatus {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Differs => "differs",
            Self::Damaged => "damaged",
        }
    }
}
