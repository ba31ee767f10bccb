//! The bases of projects: the saved states from which a replay goes on, since earlier events may have been removed.

use headcount_archive::base::BaseReader;
use headcount_archive::error::ArchiveError;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use parking_lot::RwLockReadGuard;

use super::sealed::SealedEvents;
use crate::partitions::partition_of;

/// The bases of all projects. While it exists, no base is replaced, and no event is removed from the archive.
pub(crate) struct Bases<'s> {
    sealed: &'s SealedEvents,
    _unchanged: RwLockReadGuard<'s, ()>,
}

impl<'s> Bases<'s> {
    /// Keeps the bases in `sealed` as they are.
    pub(super) fn of(sealed: &'s SealedEvents) -> Self {
        Self { sealed, _unchanged: sealed.keep_bases() }
    }

    /// The projects of a partition of which a replay after the position `after` reads sealed events.
    pub(crate) fn projects(&self, partition: u16, after: Position) -> Vec<ProjectId> {
        let catalog = self.sealed.catalog();
        if after >= catalog.sealed_until_of(|project| partition_of(project) == partition) {
            return Vec::new();
        }
        let is_read = |(project, last): &(ProjectId, Position)| partition_of(*project) == partition && *last > after;
        let read = catalog.projects().filter(is_read).map(|(project, _)| project);
        read.filter(|project| !self.sealed.is_deleted(*project)).collect()
    }

    /// Opens the base of a project, if it has one.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::Io`].
    pub(crate) fn open(&self, project: ProjectId) -> Result<Option<BaseReader>, ArchiveError> {
        let Some(last) = self.sealed.catalog().last_of(project) else { return Ok(None) };
        let archive = self.sealed.list(project, last)?;
        match archive.manifest().base() {
            Some(base) => self.sealed.note(project, &base.name(), archive.base()),
            None => Ok(None),
        }
    }

    /// Records whether a base could be read.
    pub(crate) fn note<T>(&self, project: ProjectId, name: &str, read: Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        self.sealed.note(project, name, read)
    }
}
