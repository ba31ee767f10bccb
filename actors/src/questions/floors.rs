//! The first days of projects whose figures still change.

use headcount_domain::{Day, OrganizationId, ProjectId, Window};

use super::Questions;
use crate::shard::AskError;

impl Questions {
    /// Returns the first day of a project whose figures still change; `None` if it has no floor.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn floor(&self, project: ProjectId) -> Result<Option<Day>, AskError> {
        match self.known_floor(project) {
            None if !self.versions.contains_key(&project) => self.ask_shard(project, move |shard| shard.floor(project)).await,
            known => Ok(known),
        }
    }

    /// Returns the floors of projects of an organization, on whichever nodes they are.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn floors(&self, organization: OrganizationId, projects: &[ProjectId]) -> Result<Vec<Option<Day>>, AskError> {
        let versions = self.versions_of(organization, projects).await?;
        Ok(versions.into_iter().map(|version| version.floor).collect())
    }

    /// The floor of a project that is loaded.
    pub(crate) fn known_floor(&self, project: ProjectId) -> Option<Day> {
        self.floors.get(project)
    }

    /// Returns the latest floor of an organization's projects after the start of a window. Answers
    /// about the window are complete from that day on; `None` if they are complete. The projects
    /// have been asked about the window.
    ///
    /// # Errors
    /// Another node with some of the projects gives no answer.
    pub async fn complete_from(&self, organization: OrganizationId, window: Window) -> Result<Option<Day>, AskError> {
        let projects = self.projects_of(organization);
        let versions = self.versions_of(organization, &projects).await?;
        Ok(versions.iter().filter_map(|version| version.floor).filter(|floor| *floor > window.start).max())
    }
}
