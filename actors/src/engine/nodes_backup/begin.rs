//! Begins a backup of a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use headcount_common::partition_of;
use headcount_control::{BackedUpLog, ControlMoment};
use headcount_domain::{Position, ProjectId};
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::error::NodesBackupError;
use super::hold::FirstBasesHold;
use super::questions::{PartitionEnd, PartitionEndQuestion};
use crate::backup::{BackupFailure, MadeDirectory};
use crate::engine::handle::Engine;
use crate::engine::subjects::asked_patiently;
use crate::feature::MovedDocuments;

/// The number of partitions asked for their ends at once. A partition that moves takes a while, and
/// an owner answers one question after the other.
const ASKED_AT_ONCE: usize = 4;

/// A backup of a cluster that has begun. Its contents are fixed.
#[derive(Debug)]
pub struct NodesBackup {
    pub(super) engine: Engine,
    /// The control data of the moment before which all events of the backup were recorded.
    pub(super) moment: ControlMoment,
    pub(super) projects: BTreeSet<ProjectId>,
    /// The projects whose files are copied unchanged, because some of their events may have been
    /// removed.
    pub(super) copied: BTreeSet<ProjectId>,
    /// The end of each partition with projects.
    pub(super) ends: BTreeMap<u16, Position>,
    /// The documents of features.
    pub(super) documents: Vec<Box<dyn MovedDocuments>>,
    pub(super) directory: MadeDirectory,
    /// Keeps events of the projects that are read from being removed.
    _held: FirstBasesHold,
    _permit: OwnedSemaphorePermit,
}

impl NodesBackup {
    /// Returns the control data of a later moment, for one machine with these files whose log ends
    /// at `last`.
    pub(super) fn control_records(
        &self,
        later: &ControlMoment,
        last: Position,
        copied: &BTreeMap<ProjectId, Position>,
    ) -> Result<Vec<Vec<u8>>, NodesBackupError> {
        let log = BackedUpLog { moment: &self.moment, projects: &self.projects, last, copied };
        Ok(self.engine.registry().records_for(later, &log)?)
    }
}

impl Engine {
    /// Begins a backup of all machines. It will have all events that any of them acknowledged
    /// before the call. Recording continues meanwhile.
    ///
    /// Blocking: asks the owner of each partition, which may take some seconds while partitions
    /// move. Call it inside a runtime.
    ///
    /// # Errors
    /// Returns a [`NodesBackupError`]; [`BackupFailure::Running`] while this machine makes another
    /// backup.
    pub fn begin_nodes_backup(&self) -> Result<NodesBackup, NodesBackupError> {
        let permit = Arc::clone(&self.inner.backups).try_acquire_owned().map_err(|_| BackupFailure::Running)?;
        self.partitions.follow()?;
        let before = self.registry().moment()?;
        let mut projects = before.projects();
        let directory = MadeDirectory::create(self.data_dir())?;
        // Read before the ends are known, so that notifications sent by now are before the ends.
        let documents = self.features().iter().map(|feature| feature.for_backup(&|project| projects.contains(&project)));
        let documents = documents.collect::<Result<_, _>>()?;
        let partitions: BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
        let held = self.hold_bases_of(partitions.clone());
        let ends = self.partition_ends(partitions, before.applied, &|| self.is_closing())?;
        let with_bases = ends.values().flat_map(|end| end.with_bases.iter().copied());
        let mut copied: BTreeSet<ProjectId> = with_bases.collect();
        if self.partitions.archiver.shared().is_some() {
            // Their events may be removed at any time.
            copied.extend(self.registry().retentions().into_iter().map(|(project, _)| project));
        }
        let ends = ends.into_iter().map(|(partition, end)| (partition, end.last)).collect();
        let moment = self.registry().moment()?;
        let left = moment.projects();
        projects.retain(|project| left.contains(project));
        copied.retain(|project| projects.contains(project));
        let (engine, _permit, _held) = (self.clone(), permit, held);
        let backup = NodesBackup { engine, moment, projects, copied, ends, documents, directory, _held, _permit };
        // Finds data that can't be expressed before events are written.
        backup.control_records(&backup.moment, 0, &BTreeMap::new())?;
        Ok(backup)
    }

    /// Asks the owners of partitions for their ends.
    fn partition_ends(
        &self,
        partitions: BTreeSet<u16>,
        applied: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<BTreeMap<u16, PartitionEnd>, NodesBackupError> {
        let ask = async |partition| Ok((partition, self.end_of_partition(partition, applied, is_over).await?));
        Handle::current().block_on(stream::iter(partitions).map(ask).buffer_unordered(ASKED_AT_ONCE).try_collect())
    }

    /// Asks the owner of a partition for its end.
    pub(super) async fn end_of_partition(
        &self,
        partition: u16,
        applied: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<PartitionEnd, NodesBackupError> {
        let question = PartitionEndQuestion { partition, applied };
        let asked = asked_patiently(is_over, || self.ask_about_partition(question.clone())).await;
        asked.map_err(|error| if is_over() { NodesBackupError::Stopped } else { error.into() })
    }
}
