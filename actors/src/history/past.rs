//! The archive, then the log.

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_archive::catalog::Catalog;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use super::log::LoggedEvents;
use super::sealed::SealedEvents;
use super::{Bases, History, HistoryError, HistoryPart, HistoryPiece, PartVisitor, PieceOrigin, Wanted};
use crate::partitions::partition_of;

/// All recorded events: the sealed ones, then those of the log.
pub(crate) struct Past {
    sealed: Arc<SealedEvents>,
    logged: LoggedEvents,
}

impl Past {
    pub(crate) fn new(sealed: Arc<SealedEvents>, logged: LoggedEvents) -> Self {
        Self { sealed, logged }
    }

    fn read_sealed(
        &self,
        wanted: &[Wanted],
        catalog: &Catalog,
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, HistoryError> {
        for wanted in wanted.iter().filter(|wanted| wanted.after < sealed_until(catalog, wanted)) {
            let until = wanted.until.min(sealed_until(catalog, wanted));
            let part = Wanted { until, ..*wanted };
            let is_wanted = |(project, last): &(ProjectId, Position)| *last > wanted.after && concerns(wanted, *project);
            for (project, last) in catalog.projects().filter(is_wanted) {
                // Of a whole partition, those that are deleted are no part. A scan of one hears of it.
                if self.sealed.is_deleted(project) && wanted.project.is_none() {
                    continue;
                }
                let read = match self.sealed.read(project, last, &part, visit) {
                    Err(_) if self.sealed.is_deleted(project) => match wanted.project {
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
                bytes: 0,
                origin: PieceOrigin::EndOfArchive(until),
            };
            if visit(end).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Whether events of `project` are among the wanted ones.
fn concerns(wanted: &Wanted, project: ProjectId) -> bool {
    wanted.project.map_or_else(|| partition_of(project) == wanted.partition, |one| one == project)
}

/// The position up to which the wanted events are in the archive. Those after it are read from the log.
fn sealed_until(catalog: &Catalog, wanted: &Wanted) -> Position {
    catalog.sealed_until_of(|project| concerns(wanted, project))
}

impl History for Past {
    fn last_position(&self, _: u16) -> Position {
        self.logged.last_position()
    }

    fn read(&self, wanted: &[Wanted], visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>) -> Result<(), HistoryError> {
        let hold = self.sealed.hold();
        if self.read_sealed(wanted, &hold.catalog, visit)?.is_break() {
            return Ok(());
        }
        self.read_logged(wanted, &hold.catalog, visit)
    }

    fn bases(&self) -> Bases<'_> {
        self.sealed.bases()
    }

    fn read_columns(&self, project: ProjectId, wanted: &Wanted, visit: &mut PartVisitor<'_>) -> Result<(), HistoryError> {
        let hold = self.sealed.hold();
        if let Some(last) = hold.catalog.last_of(project).filter(|last| *last > wanted.after) {
            // The project's list may have more files by now, whose events the log has too.
            let part = Wanted { until: wanted.until.min(sealed_until(&hold.catalog, wanted)), ..*wanted };
            match self.sealed.read_columns(project, last, &part, visit) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(_) if self.sealed.is_deleted(project) => return Err(HistoryError::Deleted { project }),
                Err(error) => return Err(HistoryError::Archive { partition: wanted.partition, error }),
            }
        }
        let mut failed = Ok(());
        let events = &mut |piece: HistoryPiece| match visit(HistoryPart::Events(piece)) {
            Ok(flow) => flow,
            Err(error) => {
                failed = Err(HistoryError::Archive { partition: wanted.partition, error });
                ControlFlow::Break(())
            }
        };
        self.read_logged(&[*wanted], &hold.catalog, events)?;
        failed
    }
}

impl Past {
    /// Passes the wanted events that are not sealed to `visit`.
    fn read_logged(
        &self,
        wanted: &[Wanted],
        catalog: &Catalog,
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        let logged_after = |wanted: &Wanted| wanted.after.max(sealed_until(catalog, wanted));
        let rest = wanted.iter().map(|wanted| Wanted { after: logged_after(wanted), ..*wanted });
        let rest: Vec<Wanted> = rest.filter(|wanted| wanted.after < wanted.until).collect();
        let Some(from) = rest.iter().map(|wanted| wanted.after + 1).min() else { return Ok(()) };
        let first = self.logged.first_position();
        if first > from {
            return Err(HistoryError::Missing { from, to: first - 1 });
        }
        self.logged.read(&rest, visit)
    }
}
