//! What all scans share.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use actix::System;
use headcount_domain::ProjectId;

use super::error::{Result, check};
use super::helpers::ScanHelpers;
use super::record_sort::RecordSorter;
use super::spill_dir::SpillDir;
use super::turns::{NodeScans, ScanTurns};
use super::views::start_views;
use super::views::{ViewFigures, Views};
use crate::admission_gate::Gate;
use crate::dead_letters::DeadLetters;
use crate::erasures::Erasures;
use crate::history::History;
use crate::memory_budget::MemoryShares;
use crate::questions::Questions;
use crate::shard::AskError;

/// How many scans run at once; each keeps a core busy, and may have helpers.
pub(super) const MAX_SCANS: usize = 2;
/// How many exports run at once, each of which may wait for a slow reader. One organization has at
/// most two.
const MAX_EXPORTS: usize = 12;

/// Passes over the recorded events of projects. Clones share turns and kept answers.
#[derive(Clone)]
pub struct Scans {
    pub(crate) questions: Arc<Questions>,
    pub(crate) history: Arc<dyn History>,
    pub(crate) dead: Arc<DeadLetters>,
    pub(super) erasures: Arc<Erasures>,
    /// Set when the engine is about to stop.
    closing: Arc<AtomicBool>,
    pub(super) turns: ScanTurns,
    /// Of scans for other nodes, which wait for no other node: two nodes that ask each other would
    /// else wait for each other's turns.
    pub(super) node_turns: NodeScans,
    pub(super) exports: Gate,
    /// Where temporary files of scans are.
    pub(crate) scratch: SpillDir,
    pub(super) views: Arc<Views>,
    /// The memory of each table and sort of a scan, in bytes.
    pub(super) sort_bytes: usize,
    /// The most identities that are listed in one answer for another node.
    pub(super) max_active: usize,
}

/// How much scans may take.
pub(crate) struct ScanSettings<'s> {
    /// Where temporary files are.
    pub(crate) data_dir: &'s Path,
    pub(crate) memory_bytes: usize,
    /// The most bytes of kept answers; 0 to keep none.
    pub(crate) view_bytes: usize,
    /// The most identities that are listed in one answer for another node.
    pub(crate) max_active: usize,
}

impl std::fmt::Debug for Scans {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scans").field("scratch", &self.scratch).finish_non_exhaustive()
    }
}

impl Scans {
    /// Creates those of an engine that stops when `closing` is set. Idle answers are removed for as
    /// long as `system` runs.
    pub(crate) fn new(
        questions: Arc<Questions>,
        (history, dead): (Arc<dyn History>, Arc<DeadLetters>),
        closing: Arc<AtomicBool>,
        settings: &ScanSettings<'_>,
        system: &System,
    ) -> Self {
        Self {
            history,
            dead,
            closing,
            erasures: Arc::clone(&questions.erasures),
            turns: ScanTurns::new(MAX_SCANS, ScanHelpers::new(settings.memory_bytes)),
            node_turns: NodeScans::default(),
            exports: Gate::new(MAX_EXPORTS),
            scratch: SpillDir::new(settings.data_dir),
            views: start_views(settings.view_bytes, system, &questions.registry),
            sort_bytes: MemoryShares::of(settings.memory_bytes).scan_sort,
            max_active: settings.max_active,
            questions,
        }
    }

    /// Where temporary files of scans are.
    #[must_use]
    pub fn scratch(&self) -> &SpillDir {
        &self.scratch
    }

    /// Returns a sorter that keeps a part of a scan's memory, and the rest in temporary files.
    #[must_use]
    pub fn sorter(&self, part: usize) -> RecordSorter {
        RecordSorter::new(&self.scratch, self.sort_bytes / part)
    }

    /// Returns the figures about kept answers.
    pub(crate) fn view_figures(&self) -> ViewFigures {
        self.views.figures()
    }

    /// Waits for an answer for as long as a question may take.
    pub(super) async fn in_time<R>(&self, asked: impl Future<Output = Result<R, AskError>>) -> Result<R, AskError> {
        let most = self.questions.timeout;
        tokio::time::timeout(most, asked).await.unwrap_or(Err(AskError::TimedOut(most)))
    }

    /// Checks that a scan goes on.
    pub(super) fn check_goes_on(&self, cancelled: &AtomicBool) -> Result<()> {
        check(cancelled)?;
        if self.is_closing() { Err(AskError::NoAnswer.into()) } else { Ok(()) }
    }

    /// Whether the engine is about to stop.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Removes the kept answers about a project.
    pub(crate) fn forget(&self, project: ProjectId) {
        self.views.forget(project);
    }
}
