//! The versions and floors of projects on several nodes.

use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Day;
use headcount_domain::versions::Depends;
use serde::{Deserialize, Serialize};

use super::handle::Engine;
use super::shard_client::AskError;

/// The tag of the question for [`ProjectVersion`]s.
pub(super) const VERSIONS: u16 = 1000;

/// What answers about a project depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProjectVersion {
    /// The incarnation of its data.
    pub(super) incarnation: u128,
    /// The position of its last event.
    pub(super) position: Position,
    /// The first day whose figures still change; `None` if it has no floor.
    pub(super) floor: Option<Day>,
}

impl Engine {
    /// Returns the version of a project of this node.
    pub(super) async fn project_version(&self, project: ProjectId) -> Result<ProjectVersion, AskError> {
        let (incarnation, position) = self.version(project, &Depends::Everything).await?;
        Ok(ProjectVersion { incarnation, position, floor: self.floor(project).await? })
    }

    /// Returns the versions of projects of an organization, on whichever nodes they are.
    pub(super) async fn versions_everywhere(
        &self,
        organization: OrganizationId,
        projects: &[ProjectId],
    ) -> Result<Vec<ProjectVersion>, AskError> {
        let places = self.places(projects).known()?;
        let mut versions = self.ask_elsewhere((VERSIONS, ()), organization, projects, &places.there).await?;
        for place in places.here {
            versions.push((place, self.project_version(projects[place]).await?));
        }
        versions.sort_unstable_by_key(|(place, _)| *place);
        Ok(versions.into_iter().map(|(_, version)| version).collect())
    }
}
