//! The deletion of a project.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use actix::ArbiterHandle;
use headcount_domain::floor::FloorMove;
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::time::Day;

use super::handle::Engine;
use crate::admission_gate::Gate;
use crate::ingest::Tracker;
use crate::registry::{Author, RegistryError};

/// What a mark takes of the admission limit.
const MARK_BYTES: usize = 64;
/// How long it may take until one is recorded and applied.
const MARK_TIMEOUT: Duration = Duration::from_secs(20);

impl Engine {
    /// Deletes a project, with its keys and tokens. When this returns, that is durable, and the project counts nowhere. What is recorded of it is removed in
    /// the background: [`Vitals::deletions_pending`](super::Vitals::deletions_pending).
    ///
    /// Waits for the disk: in async code it belongs on a thread that may block.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`] if the organization has no such project; [`RegistryError::Storage`].
    pub fn delete_project(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        by: impl Into<Author>,
    ) -> Result<(), RegistryError> {
        self.registry().delete_project(organization, project, by)?;
        // An event that is applied before this line is removed like all others.
        if !self.inner.deleted.follow(self.registry())? {
            self.inner.deleted.add(project);
        }
        self.end_what_deleted_projects_have();
        Ok(())
    }

    /// Takes notice of projects that others have deleted.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub(super) fn follow_deletions(&self) -> Result<(), RegistryError> {
        if self.inner.deleted.follow(self.registry())? {
            self.end_what_deleted_projects_have();
        }
        Ok(())
    }

    /// Whether a project is deleted whose configuration was found before. On one of several machines, another one may have removed it meanwhile, to the end.
    pub(super) fn is_deleted(&self, project: ProjectId) -> bool {
        self.inner.deleted.contains(project) || (!self.owners().is_alone() && self.registry().policy(project).is_none())
    }

    fn end_what_deleted_projects_have(&self) {
        self.remove_orphaned_webhooks();
        // Exports with its events lose their artifacts.
        self.inner.privacy.made.notify_one();
    }
}

/// Returns what writes a mark: a record of a deleted project, which therefore changes nothing, as a message of its own. Brokers remove messages in their order, and keep
/// the last one that is sealed, so that something must follow that with the project's last event.
pub(super) fn marking(arbiter: ArbiterHandle, tracker: Tracker, gate: Gate) -> impl Fn(ProjectId) -> bool + Send + Sync {
    move |project| {
        let Some(permit) = gate.take(MARK_BYTES) else { return false };
        let (done, wait) = sync_channel(1);
        let tracker = tracker.clone();
        let is_sent = arbiter.spawn(async move {
            // The floor of no event: also a machine that would apply it would drop nothing.
            let recorded = tracker.raise_floor(FloorMove { project, day: Day(i32::MIN) }, permit).await;
            let _nobody_waits = done.send(recorded.is_ok());
        });
        is_sent && wait.recv_timeout(MARK_TIMEOUT).unwrap_or(false)
    }
}
