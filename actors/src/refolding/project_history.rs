//! The history of one project, up to a position.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headcount_archive::base::BaseReader;
use headcount_archive::error::ArchiveError;
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use crate::history::{Bases, History, HistoryError, HistoryPiece, LatestVisitor, PartVisitor, Past, Wanted};

/// Flags that end a fold early, if one of them is set.
#[derive(Debug, Clone)]
pub(crate) struct StopFlags(pub(crate) Vec<Arc<AtomicBool>>);

impl StopFlags {
    pub(super) fn is_set(&self) -> bool {
        self.0.iter().any(|flag| flag.load(Ordering::Acquire))
    }
}

/// The base and the recorded events of a project, up to a position. Reading ends early when `stop`
/// is set.
pub(super) struct ProjectHistory {
    whole: Past,
    project: ProjectId,
    until: AtomicU64,
    stop: StopFlags,
}

impl ProjectHistory {
    pub(super) fn new(whole: Past, project: ProjectId, until: Position, stop: StopFlags) -> Self {
        Self { whole, project, until: AtomicU64::new(until), stop }
    }

    /// Makes later reads continue to this position.
    pub(super) fn read_until(&self, until: Position) {
        self.until.store(until, Ordering::Release);
    }

    fn until(&self) -> Position {
        self.until.load(Ordering::Acquire)
    }

    fn bounded(&self, wanted: &Wanted) -> Wanted {
        Wanted { project: Some(self.project), until: wanted.until.min(self.until()), ..*wanted }
    }
}

impl History for ProjectHistory {
    fn last_position(&self, _: u16) -> Position {
        self.until()
    }

    fn events_after(&self, partition: u16, position: Position) -> u64 {
        self.whole.events_after(partition, position)
    }

    fn read(&self, wanted: &[Wanted], visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>) -> Result<(), HistoryError> {
        let bounded = wanted.iter().map(|wanted| self.bounded(wanted)).filter(|wanted| wanted.after < wanted.until);
        let bounded: Vec<Wanted> = bounded.collect();
        let visit = &mut |piece: HistoryPiece| {
            if self.stop.is_set() { ControlFlow::Break(()) } else { visit(piece) }
        };
        self.whole.read(&bounded, visit)
    }

    fn bases(&self) -> Box<dyn Bases + '_> {
        Box::new(BaseOfProject { all: self.whole.bases(), project: self.project })
    }

    fn read_columns(&self, project: ProjectId, wanted: &Wanted, visit: &mut PartVisitor<'_>) -> Result<(), HistoryError> {
        self.whole.read_columns(project, &self.bounded(wanted), visit)
    }

    fn read_latest(&self, project: ProjectId, wanted: &Wanted, visitor: &mut dyn LatestVisitor) -> Result<(), HistoryError> {
        self.whole.read_latest(project, &self.bounded(wanted), visitor)
    }
}

/// The base of one project. Bases don't change meanwhile.
struct BaseOfProject<'h> {
    all: Box<dyn Bases + 'h>,
    project: ProjectId,
}

impl Bases for BaseOfProject<'_> {
    fn projects(&self, partition: u16, after: Position) -> Vec<ProjectId> {
        self.all.projects(partition, after).into_iter().filter(|project| *project == self.project).collect()
    }

    fn open(&self, project: ProjectId) -> Result<Option<BaseReader>, ArchiveError> {
        self.all.open(project)
    }

    fn erased(&self, project: ProjectId) -> Option<Arc<ErasedKeys>> {
        self.all.erased(project)
    }

    fn note(&self, project: ProjectId, name: &str, read: Result<(), ArchiveError>) -> Result<(), ArchiveError> {
        self.all.note(project, name, read)
    }
}
