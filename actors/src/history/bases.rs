//! The bases in the archive, held by a replay.

use std::sync::Arc;

use headcount_archive::{ArchiveError, BaseReader};
use headcount_common::partition_of;
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::{Position, ProjectId};
use parking_lot::{ArcRwLockReadGuard, RawRwLock};

use super::sealed::SealedEvents;
use super::{Bases, PartitionArchives};
use crate::erasures::Erasures;

/// The bases of the projects in the archive. They don't change while this exists.
pub(super) struct HeldBases {
    archives: Vec<HeldArchive>,
    erasures: Arc<Erasures>,
}

struct HeldArchive {
    /// The partition; `None` for all partitions without their own archive.
    partition: Option<u16>,
    sealed: Arc<SealedEvents>,
    _unchanged: ArcRwLockReadGuard<RawRwLock, ()>,
}

impl HeldBases {
    pub(super) fn of(archives: &PartitionArchives, erasures: &Arc<Erasures>) -> Self {
        let held =
            |(partition, sealed): (_, Arc<SealedEvents>)| HeldArchive { partition, _unchanged: sealed.keep_bases(), sealed };
        Self { archives: archives.all().into_iter().map(held).collect(), erasures: Arc::clone(erasures) }
    }

    fn sealed(&self, partition: u16) -> Option<&SealedEvents> {
        // The last archive is that of all other partitions.
        let mut archives = self.archives.iter();
        archives.find(|held| held.partition.is_none_or(|of| of == partition)).map(|held| &*held.sealed)
    }
}

impl Bases for HeldBases {
    fn projects(&self, partition: u16, after: Position) -> Vec<ProjectId> {
        let Some(sealed) = self.sealed(partition) else { return Vec::new() };
        let catalog = sealed.catalog();
        if after >= catalog.sealed_until_of(|project| partition_of(project) == partition) {
            return Vec::new();
        }
        let is_read = |(project, last): &(ProjectId, Position)| partition_of(*project) == partition && *last > after;
        let read = catalog.projects().filter(is_read).map(|(project, _)| project);
        read.filter(|project| !sealed.is_deleted(*project)).collect()
    }

    fn open(&self, project: ProjectId) -> Result<Option<BaseReader>, ArchiveError> {
        let Some(sealed) = self.sealed(partition_of(project)) else { return Ok(None) };
        let Some(last) = sealed.catalog().last_of(project) else { return Ok(None) };
        let archive = sealed.list(project, last)?;
        match archive.manifest().base() {
            Some(base) => sealed.note(project, &base.name(), archive.base()),
            None => Ok(None),
        }
    }

    fn erased(&self, project: ProjectId) -> Option<Arc<ErasedKeys>> {
        self.erasures.keys(project)
    }

    fn note(&self, project: ProjectId, name: &str, read: Result<(), ArchiveError>) -> Result<(), ArchiveError> {
        match self.sealed(partition_of(project)) {
            Some(sealed) => sealed.note(project, name, read),
            None => read,
        }
    }
}
