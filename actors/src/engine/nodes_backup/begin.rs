//! How a backup of several machines begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use tokio::runtime::Handle;
use tokio::sync::OwnedSemaphorePermit;

use super::error::NodesBackupError;
use super::questions::{PartitionEnd, PartitionEndQuestion};
use crate::backup::{BackupFailure, MadeDirectory};
use crate::engine::exporting::asked_patiently;
use crate::engine::handle::Engine;
use crate::partitions::partition_of;
use crate::registry::{BackedUpLog, ControlMoment};
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
    /// Where each partition with projects ends.
    pub(super) ends: BTreeMap<u16, Position>,
    pub(super) webhooks: Vec<MovedWebhook>,
    pub(super) directory: MadeDirectory,
    _permit: OwnedSemaphorePermit,
}

impl NodesBackup {
    /// The control data of a later moment, for one machine whose log ends at `last`.
    pub(super) fn control_records(&self, later: &ControlMoment, last: Position) -> Result<Vec<Vec<u8>>, NodesBackupError> {
        let log = BackedUpLog { moment: &self.moment, projects: &self.projects, last };
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
        let ends = self.partition_ends(&projects, before.applied, &|| self.inner.admission.is_closing())?;
        let moment = self.registry().moment()?;
        let left = moment.projects();
        projects.retain(|project| left.contains(project));
        let backup = NodesBackup { engine: self.clone(), moment, projects, ends, webhooks, directory, _permit: permit };
        // So that what can't be expressed is found before events are passed on.
        backup.control_records(&backup.moment, 0)?;
        Ok(backup)
    }

    /// Asks the owners of these projects where their partitions end. Refuses projects of which events may have been removed.
    pub(super) fn partition_ends(
        &self,
        projects: &BTreeSet<ProjectId>,
        applied: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<BTreeMap<u16, Position>, NodesBackupError> {
        let partitions: BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
        let ask = async |partition: u16| {
            let question = PartitionEndQuestion { partition, applied };
            let end = asked_patiently(is_over, || self.ask_about_partition(question.clone())).await?;
            let PartitionEnd { last, with_bases } = end;
            match with_bases.into_iter().find(|project| projects.contains(project)) {
                Some(project) => Err(NodesBackupError::Removed(project)),
                None => Ok((partition, last)),
            }
        };
        let asked = stream::iter(partitions).map(ask).buffer_unordered(ASKED_AT_ONCE).try_collect();
        Handle::current().block_on(asked).map_err(|error| if is_over() { NodesBackupError::Stopped } else { error })
    }
}
