//! The deletion of a project.

use headcount_control::{Author, RegistryError};
use headcount_domain::{OrganizationId, ProjectId};

use super::handle::Engine;

impl Engine {
    /// Deletes a project with its keys and tokens. On return, the deletion is durable, and no
    /// answer includes the project. The recorded data are removed in the background:
    /// [`Vitals::deletions_pending`](super::Vitals::deletions_pending).
    ///
    /// Waits for the disk, so async code must call it on a thread that may block.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization has no such project;
    /// [`RegistryError::Storage`].
    pub fn delete_project(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        by: impl Into<Author>,
    ) -> Result<(), RegistryError> {
        self.registry().delete_project(organization, project, by)?;
        // An event applied before this line is removed like all others. The project is hidden even
        // if that can't be noted.
        self.partitions.deleted.add(project);
        self.partitions.deleted.follow(self.registry())?;
        self.partitions.end_what_deleted_projects_have();
        Ok(())
    }
}
