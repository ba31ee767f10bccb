//! Reads the archive, then the log.

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_archive::{ArchiveError, Catalog};
use headcount_common::partition_of;
use headcount_domain::{Position, ProjectId};
use headcount_storage::log::LogMark;

use super::bases::HeldBases;
use super::log::LoggedEvents;
use super::sealed::SealedEvents;
use super::{
    Bases, History, HistoryError, HistoryPart, HistoryPiece, LatestVisitor, PartVisitor, PartitionArchives, PieceOrigin, Wanted,
};
use crate::erasures::Erasures;

/// All recorded events: the sealed ones, then those of the log.
pub(crate) struct Past {
    archives: Arc<PartitionArchives>,
    logged: LoggedEvents,
    erasures: Arc<Erasures>,
}

impl Past {
    /// Creates a history without the events of identities in erasure, wherever they still are.
    pub(crate) fn new(archives: Arc<PartitionArchives>, logged: LoggedEvents, erasures: Arc<Erasures>) -> Self {
        Self { archives, logged, erasures }
    }

    /// Reads the wanted events of one archive, and of the log.
    fn read_part(
        &self,
        sealed: &SealedEvents,
        wanted: &[Wanted],
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        let hold = sealed.hold();
        if read_sealed(sealed, wanted, &hold.catalog, visit)?.is_break() {
            return Ok(());
        }
        self.read_logged(wanted, &hold.catalog, visit)
    }
}

fn read_sealed(
    sealed: &SealedEvents,
    wanted: &[Wanted],
    catalog: &Catalog,
    visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, HistoryError> {
    for wanted in wanted.iter().filter(|wanted| wanted.after < sealed_until(catalog, wanted)) {
        let until = wanted.until.min(sealed_until(catalog, wanted));
        let part = Wanted { until, ..*wanted };
        let is_wanted = |(project, last): &(ProjectId, Position)| *last > wanted.after && concerns(wanted, *project);
        for (project, last) in catalog.projects().filter(is_wanted) {
            // A read of a whole partition leaves out deleted projects. A scan of a deleted project
            // gets an error.
            if sealed.is_deleted(project) && wanted.project.is_none() {
                continue;
            }
            let read = match sealed.read(project, last, &part, visit) {
                Err(_) if sealed.is_deleted(project) => match wanted.project {
                    None => continue,
                    Some(project) => return Err(HistoryError::Deleted { project }),
                },
                read => read.map_err(|error| HistoryError::Archive { partition: wanted.partition, error })?,
            };
            if read.is_break() {
                return Ok(read);
            }
        }
        let end = HistoryPiece {
            partition: wanted.partition,
            events: Vec::new(),
            floor: None,
            bytes: 0,
            origin: PieceOrigin::EndOfArchive(until),
        };
        if visit(end).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Whether events of `project` are among the wanted ones.
fn concerns(wanted: &Wanted, project: ProjectId) -> bool {
    wanted.project.map_or_else(|| partition_of(project) == wanted.partition, |one| one == project)
}

/// The position up to which the archive has the wanted events. Later ones are read from the log.
fn sealed_until(catalog: &Catalog, wanted: &Wanted) -> Position {
    catalog.sealed_until_of(|project| concerns(wanted, project))
}

impl History for Past {
    fn last_position(&self, partition: u16) -> Position {
        self.logged.last_position(partition)
    }

    fn events_after(&self, partition: u16, position: Position) -> u64 {
        self.logged.events_after(partition, position)
    }

    fn mark(&self, partition: u16, position: Position) -> Option<LogMark> {
        self.logged.mark(partition, position)
    }

    fn read(&self, wanted: &[Wanted], visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>) -> Result<(), HistoryError> {
        let mut flow = ControlFlow::Continue(());
        for (sealed, wanted) in self.archives.divide(wanted) {
            let visit = &mut |mut piece: HistoryPiece| {
                self.erasures.filter(&mut piece.events);
                flow = visit(piece);
                flow
            };
            self.read_part(&sealed, &wanted, visit)?;
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn bases(&self) -> Box<dyn Bases + '_> {
        Box::new(HeldBases::of(&self.archives, &self.erasures))
    }

    fn read_columns(&self, project: ProjectId, wanted: &Wanted, visit: &mut PartVisitor<'_>) -> Result<(), HistoryError> {
        let sealed = self.archives.of(wanted.partition);
        let hold = sealed.hold();
        let read = &mut |last, part: &Wanted| sealed.read_columns(project, last, part, visit);
        if sealed_parts(&sealed, project, wanted, &hold.catalog, read)?.is_break() {
            return Ok(());
        }
        self.logged_parts(wanted, &hold.catalog, visit).map(drop)
    }

    fn read_latest(&self, project: ProjectId, wanted: &Wanted, visitor: &mut dyn LatestVisitor) -> Result<(), HistoryError> {
        let sealed = self.archives.of(wanted.partition);
        let hold = sealed.hold();
        if self.logged_parts(wanted, &hold.catalog, &mut |part| visitor.visit(part))?.is_break() {
            return Ok(());
        }
        let read = &mut |last, part: &Wanted| sealed.read_latest(project, last, part, visitor);
        sealed_parts(&sealed, project, wanted, &hold.catalog, read).map(drop)
    }
}

/// Reads sealed events up to the position of the last one of the project.
type SealedReading<'r> = dyn FnMut(Position, &Wanted) -> Result<ControlFlow<()>, ArchiveError> + 'r;

/// Passes the sealed part of one project's wanted events to `read`, if there is any.
fn sealed_parts(
    sealed: &SealedEvents,
    project: ProjectId,
    wanted: &Wanted,
    catalog: &Catalog,
    read: &mut SealedReading<'_>,
) -> Result<ControlFlow<()>, HistoryError> {
    let Some(last) = catalog.last_of(project).filter(|last| *last > wanted.after) else {
        return Ok(ControlFlow::Continue(()));
    };
    // The project's list may have more files by now, whose events are also in the log.
    let part = Wanted { until: wanted.until.min(sealed_until(catalog, wanted)), ..*wanted };
    read(last, &part).map_err(|error| match sealed.is_deleted(project) {
        true => HistoryError::Deleted { project },
        false => HistoryError::Archive { partition: wanted.partition, error },
    })
}

impl Past {
    /// Passes the unsealed part of one project's wanted events to `visit`.
    fn logged_parts(
        &self,
        wanted: &Wanted,
        catalog: &Catalog,
        visit: &mut PartVisitor<'_>,
    ) -> Result<ControlFlow<()>, HistoryError> {
        let mut outcome = Ok(ControlFlow::Continue(()));
        let events = &mut |piece: HistoryPiece| {
            outcome = visit(HistoryPart::Events(piece));
            *outcome.as_ref().unwrap_or(&ControlFlow::Break(()))
        };
        self.read_logged(&[*wanted], catalog, events)?;
        outcome.map_err(|error| HistoryError::Archive { partition: wanted.partition, error })
    }

    /// Passes the unsealed part of the wanted events to `visit`.
    fn read_logged(
        &self,
        wanted: &[Wanted],
        catalog: &Catalog,
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        let logged_after = |wanted: &Wanted| wanted.after.max(sealed_until(catalog, wanted));
        let rest = wanted.iter().map(|wanted| Wanted { after: logged_after(wanted), ..*wanted });
        let rest: Vec<Wanted> = rest.filter(|wanted| wanted.after < wanted.until).collect();
        if rest.is_empty() {
            return Ok(());
        }
        for Wanted { partition, after, .. } in &rest {
            let (from, first) = (after + 1, self.logged.first_position(*partition));
            if first > from {
                return Err(HistoryError::Missing { from, to: first - 1 });
            }
        }
        self.logged.read(&rest, visit)
    }
}
