//! How a backup of several machines begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use headcount_common::partition_of;
use headcount_control::{BackedUpLog, ControlMoment};
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::error::NodesBackupError;
use super::hold::FirstBasesHold;
use super::questions::{PartitionEnd, PartitionEndQuestion};
use crate::backup::{BackupFailure, MadeDirectory};
use crate::engine::exporting::asked_patiently;
use crate::engine::handle::Engine;
use crate::webhooks::MovedWebhook;

/// How many partitions are asked for their ends at once. Each may take a while, if it moves; an owner answers one after the other.
const ASKED_AT_ONCE: usize = 4;

/// A backup of several machines that has begun: it is known what it will have.
#[derive(Debug)]
pub struct NodesBackup {
    pub(super) engine: Engine,
    /// All events of the backup were recorded before it.
    pub(super) moment: ControlMoment,
    pub(super) projects: BTreeSet<ProjectId>,
    /// The projects among them whose files are copied as they are: events of them may have been removed.
    pub(super) copied: BTreeSet<ProjectId>,
    /// Where each partition with projects ends.
    pub(super) ends: BTreeMap<u16, Position>,
    pub(super) webhooks: Vec<MovedWebhook>,
    pub(super) directory: MadeDirectory,
    /// No event of projects that are read is removed.
    _held: FirstBasesHold,
    _permit: OwnedSemaphorePermit,
}

impl NodesBackup {
    /// The control data of a later moment, for one machine whose log ends at `last`, and that has these files.
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
    /// Begins a backup of all machines: all events that any of them acknowledged before the call will be in it. Events are recorded meanwhile.
    ///
    /// Blocking: asks the owner of each partition, which may take some seconds while partitions move. Call it where a runtime is.
    ///
    /// # Errors
    /// [`NodesBackupError`]; [`BackupFailure::Running`] while another backup is made on this machine.
    pub fn begin_nodes_backup(&self) -> Result<NodesBackup, NodesBackupError> {
        let permit = Arc::clone(&self.inner.backups).try_acquire_owned().map_err(|_| BackupFailure::Running)?;
        self.follow()?;
        let before = self.registry().moment()?;
        let mut projects = before.projects();
        let directory = MadeDirectory::create(self.data_dir())?;
        // Before the ends are known: what a webhook has sent by now is before them.
        let webhooks = self.inner.webhooks.for_backup(|project| projects.contains(&project))?;
        let partitions: BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
        let held = self.hold_bases_of(partitions.clone());
        let ends = self.partition_ends(partitions, before.applied, &|| self.inner.admission.is_closing())?;
        let with_bases = ends.values().flat_map(|end| end.with_bases.iter().copied());
        let mut copied: BTreeSet<ProjectId> = with_bases.collect();
        if self.inner.archiver.shared().is_some() {
            // Their events may be removed at any time.
            copied.extend(self.registry().retentions().into_iter().map(|(project, _)| project));
        }
        let ends = ends.into_iter().map(|(partition, end)| (partition, end.last)).collect();
        let moment = self.registry().moment()?;
        let left = moment.projects();
        projects.retain(|project| left.contains(project));
        copied.retain(|project| projects.contains(project));
        let (engine, _permit, _held) = (self.clone(), permit, held);
        let backup = NodesBackup { engine, moment, projects, copied, ends, webhooks, directory, _held, _permit };
        // So that what can't be expressed is found before events are passed on.
        backup.control_records(&backup.moment, 0, &BTreeMap::new())?;
        Ok(backup)
    }

    /// Asks the owners of partitions where these end.
    fn partition_ends(
        &self,
        partitions: BTreeSet<u16>,
        applied: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<BTreeMap<u16, PartitionEnd>, NodesBackupError> {
        let ask = async |partition| Ok((partition, self.end_of_partition(partition, applied, is_over).await?));
        Handle::current().block_on(stream::iter(partitions).map(ask).buffer_unordered(ASKED_AT_ONCE).try_collect())
    }

    /// Asks the owner of a partition where it ends.
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
