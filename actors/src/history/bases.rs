//! The bases in the archive, held by a replay.

use std::sync::Arc;

use headcount_archive::base::BaseReader;
use headcount_archive::error::ArchiveError;
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use parking_lot::RwLockReadGuard;

use super::Bases;
use super::sealed::SealedEvents;
use crate::erasures::Erasures;
use crate::partitions::partition_of;

/// The bases of the projects in the archive, which stay as they are while this exists.
pub(super) struct HeldBases<'s> {
    sealed: &'s SealedEvents,
    erasures: &'s Erasures,
    _unchanged: RwLockReadGuard<'s, ()>,
}

impl<'s> HeldBases<'s> {
    pub(super) fn of(sealed: &'s SealedEvents, erasures: &'s Erasures) -> Self {
        Self { sealed, erasures, _unchanged: sealed.keep_bases() }
    }
}

impl Bases for HeldBases<'_> {
    fn projects(&self, partition: u16, after: Position) -> Vec<ProjectId> {
        let catalog = self.sealed.catalog();
        if after >= catalog.sealed_until_of(|project| partition_of(project) == partition) {
            return Vec::new();
        }
        let is_read = |(project, last): &(ProjectId, Position)| partition_of(*project) == partition && *last > after;
        let read = catalog.projects().filter(is_read).map(|(project, _)| project);
        read.filter(|project| !self.sealed.is_deleted(*project)).collect()
    }

    fn open(&self, project: ProjectId) -> Result<Option<BaseReader>, ArchiveError> {
        let Some(last) = self.sealed.catalog().last_of(project) else { return Ok(None) };
        let archive = self.sealed.list(project, last)?;
        match archive.manifest().base() {
            Some(base) => self.sealed.note(project, &base.name(), archive.base()),
            None => Ok(None),
        }
    }

    fn erased(&self, project: ProjectId) -> Option<Arc<ErasedKeys>> {
        self.erasures.keys(project)
    }

    fn note(&self, project: ProjectId, name: &str, read: Result<(), ArchiveError>) -> Result<(), ArchiveError> {
        self.sealed.note(project, name, read)
    }
}
