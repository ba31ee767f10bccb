//! The deletion of a project.

use headcount_control::{Author, RegistryError};
use headcount_domain::ids::{OrganizationId, ProjectId};

use super::handle::Engine;

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
