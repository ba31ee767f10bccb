//! The deletion of a project.

use headcount_domain::ids::{OrganizationId, ProjectId};

use super::handle::Engine;
use crate::registry::{Author, RegistryError};

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
        self.inner.deleted.add(project);
        self.remove_orphaned_webhooks();
        // Exports with its events lose their artifacts.
        self.inner.privacy.made.notify_one();
        Ok(())
    }
}
