//! The deletion of a project.

use headcount_control::{Author, RegistryError};
use headcount_domain::ids::{OrganizationId, ProjectId};

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
        self.inner.deleted.add(project);
        self.inner.deleted.follow(self.registry())?;
        self.end_what_deleted_projects_have();
        Ok(())
    }

    /// Handles projects that other machines have deleted.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(super) fn follow_deletions(&self) -> Result<(), RegistryError> {
        if self.inner.deleted.follow(self.registry())? {
            self.end_what_deleted_projects_have();
        }
        Ok(())
    }

    /// Whether a project is deleted whose configuration was found before. All of its data may
    /// already be removed.
    pub(super) fn is_deleted(&self, project: ProjectId) -> bool {
        self.inner.deleted.contains(project) || self.registry().policy(project).is_none()
    }

    fn end_what_deleted_projects_have(&self) {
        self.features().iter().for_each(|feature| feature.projects_deleted());
    }
}
