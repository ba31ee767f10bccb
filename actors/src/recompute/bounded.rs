//! History up to the positions that a state reflects.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_archive::{ArchiveError, BaseReader};
use headcount_common::partition_of;
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::{Position, ProjectId};
use parking_lot::RwLock;

use crate::history::{Bases, History, HistoryError, HistoryPiece, LatestVisitor, PartVisitor, Past, Wanted};

/// The positions up to which a partition is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bound {
    /// The position up to which all projects are read.
    pub(crate) all: Position,
    /// The positions of the projects that are read further.
    pub(crate) projects: BTreeMap<ProjectId, Position>,
}

impl Bound {
    fn last(&self) -> Position {
        self.projects.values().copied().max().unwrap_or(0).max(self.all)
    }

    /// Whether the event of a project at a position is read.
    pub(crate) fn has(&self, project: ProjectId, position: Position) -> bool {
        position <= self.all || self.projects.get(&project).is_some_and(|last| position <= *last)
    }
}

/// A check whether to end early.
pub(crate) type StopCheck = Arc<dyn Fn() -> bool + Send + Sync>;

/// The recorded events up to a bound for each partition, of all projects or a single one. Reading
/// ends early when `is_stopped`.
pub(crate) struct BoundedHistory {
    whole: Arc<dyn History>,
    bounds: RwLock<BTreeMap<u16, Bound>>,
    project: Option<ProjectId>,
    is_stopped: StopCheck,
}

impl BoundedHistory {
    pub(crate) fn new(whole: Arc<dyn History>, bounds: BTreeMap<u16, Bound>, is_stopped: StopCheck) -> Self {
        Self { whole, bounds: RwLock::new(bounds), project: None, is_stopped }
    }

    /// Takes the base and the events of one project, up to a position.
    pub(crate) fn of_project(whole: Past, project: ProjectId, until: Position, is_stopped: StopCheck) -> Self {
        let history = Self { project: Some(project), ..Self::new(Arc::new(whole), BTreeMap::new(), is_stopped) };
        history.read_until(partition_of(project), until);
        history
    }

    /// Makes later reads of a partition continue to this position.
    pub(crate) fn read_until(&self, partition: u16, until: Position) {
        self.bounds.write().insert(partition, Bound { all: until, projects: BTreeMap::new() });
    }

    fn bound(&self, partition: u16) -> Bound {
        self.bounds.read().get(&partition).cloned().unwrap_or_default()
    }

    fn bounded(&self, project: ProjectId, wanted: &Wanted) -> Wanted {
        let bound = self.bound(wanted.partition);
        let last = bound.projects.get(&project).map_or(bound.all, |last| bound.all.max(*last));
        Wanted { until: wanted.until.min(last), ..*wanted }
    }
}

impl History for BoundedHistory {
    fn last_position(&self, partition: u16) -> Position {
        self.bound(partition).last()
    }

    fn events_after(&self, partition: u16, position: Position) -> u64 {
        self.whole.events_after(partition, position)
    }

    fn read(&self, wanted: &[Wanted], visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>) -> Result<(), HistoryError> {
        let bounds: BTreeMap<u16, Bound> = wanted.iter().map(|one| (one.partition, self.bound(one.partition))).collect();
        let bounded = |one: &Wanted| {
            let last = bounds.get(&one.partition).map_or(0, Bound::last);
            Wanted { until: one.until.min(last), project: one.project.or(self.project), ..*one }
        };
        let bounded: Vec<Wanted> = wanted.iter().map(bounded).filter(|one| one.after < one.until).collect();
        let visit = &mut |mut piece: HistoryPiece| {
            if (self.is_stopped)() {
                return ControlFlow::Break(());
            }
            if let Some(bound) = bounds.get(&piece.partition) {
                piece.events.retain(|(position, event)| bound.has(event.project, *position));
                piece.floor = piece.floor.filter(|(position, floor)| bound.has(floor.project, *position));
            }
            visit(piece)
        };
        self.whole.read(&bounded, visit)
    }

    fn bases(&self) -> Box<dyn Bases + '_> {
        match self.project {
            Some(project) => Box::new(BaseOfProject { all: self.whole.bases(), project }),
            None => self.whole.bases(),
        }
    }

    fn read_columns(&self, project: ProjectId, wanted: &Wanted, visit: &mut PartVisitor<'_>) -> Result<(), HistoryError> {
        self.whole.read_columns(project, &self.bounded(project, wanted), visit)
    }

    fn read_latest(&self, project: ProjectId, wanted: &Wanted, visitor: &mut dyn LatestVisitor) -> Result<(), HistoryError> {
        self.whole.read_latest(project, &self.bounded(project, wanted), visitor)
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
