//! How a backup of several machines begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use tokio::sync::OwnedSemaphorePermit;

use super::error::NodesBackupError;
use super::questions::{PartitionEnd, PartitionEndQuestion};
use crate::backup::{BackupFailure, MadeDirectory};
use crate::engine::exporting::ask_patiently;
use crate::engine::handle::Engine;
use crate::partitions::partition_of;
use crate::privacy::PrivacyRequest;
use crate::registry::{ControlMoment, Erasure, Registry};
use crate::webhooks::MovedWebhook;

/// A backup of several machines that has begun: it is known what it will have.
#[derive(Debug)]
pub struct NodesBackup {
    pub(super) engine: Engine,
    pub(super) moment: ControlMoment,
    pub(super) projects: BTreeSet<ProjectId>,
    /// Where each partition with projects ends.
    pub(super) ends: BTreeMap<u16, Position>,
    pub(super) webhooks: Vec<MovedWebhook>,
    pub(super) requests: Vec<PrivacyRequest>,
    /// The control data are in it.
    pub(super) directory: MadeDirectory,
    _permit: OwnedSemaphorePermit,
}

impl Engine {
    /// Begins a backup of all machines: all events that any of them acknowledged before the call will be in it, and none of projects that are made later. Events are recorded meanwhile.
    ///
    /// Blocking: asks the owner of each partition, which may take some seconds while partitions move. Call it where a runtime is.
    ///
    /// # Errors
    /// [`NodesBackupError`]; [`BackupFailure::Running`] while another backup is made on this machine.
    pub fn begin_nodes_backup(&self) -> Result<NodesBackup, NodesBackupError> {
        let permit = Arc::clone(&self.inner.backups).try_acquire_owned().map_err(|_| BackupFailure::Running)?;
        self.follow()?;
        let moment = self.registry().moment()?;
        if moment.erasures().any(Erasure::only_suppresses) {
            return Err(NodesBackupError::Beginning);
        }
        let directory = MadeDirectory::create(self.data_dir())?;
        drop(Registry::create_from(directory.path(), &self.registry().records_of(&moment)?)?);
        let projects = moment.projects();
        // Before the ends are known: what a webhook has sent by now is before them.
        let webhooks = self.inner.webhooks.for_backup(|project| projects.contains(&project))?;
        let erasures: Vec<Erasure> = moment.erasures().cloned().collect();
        let mut requests = self.inner.privacy.for_backup(&erasures)?;
        requests.retain(|request| moment.has_organization(request.organization));
        self.inner.profiles.follow()?;
        let ends = self.partition_ends(&projects, moment.applied, &|| self.inner.admission.is_closing())?;
        Ok(NodesBackup { engine: self.clone(), moment, projects, ends, webhooks, requests, directory, _permit: permit })
    }

    /// Asks the owners of these projects where their partitions end. Refuses projects of which events may have been removed.
    pub(super) fn partition_ends(
        &self,
        projects: &BTreeSet<ProjectId>,
        applied: u64,
        is_over: &dyn Fn() -> bool,
    ) -> Result<BTreeMap<u16, Position>, NodesBackupError> {
        let partitions: BTreeSet<u16> = projects.iter().map(|project| partition_of(*project)).collect();
        let mut ends = BTreeMap::new();
        for partition in partitions {
            if is_over() {
                return Err(NodesBackupError::Stopped);
            }
            let question = PartitionEndQuestion { partition, applied };
            let end = ask_patiently(is_over, || self.ask_about_partition(question.clone()))?;
            let PartitionEnd { last, with_bases } = end;
            if let Some(project) = with_bases.into_iter().find(|project| projects.contains(project)) {
                return Err(NodesBackupError::Removed(project));
            }
            ends.insert(partition, last);
        }
        Ok(ends)
    }
}
