//! The versions and floors of projects on all nodes.

use headcount_common::answers_version;
use headcount_domain::{Day, Depends, OrganizationId, Position, ProjectId};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::Questions;
use crate::shard::AskError;

/// The tag of the question for [`ProjectVersion`]s.
pub(crate) const VERSIONS: u16 = 1000;

/// The version of the data behind answers about a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProjectVersion {
    /// The incarnation of its data, with the version of the answering program: if answers of two
    /// program versions are merged, the result differs from an answer of one version.
    pub(crate) incarnation: u128,
    /// The position of its last event.
    pub(crate) position: Position,
    /// The first day whose figures still change; `None` if it has no floor.
    pub(crate) floor: Option<Day>,
}

impl Questions {
    /// Returns the version of a project of this node.
    pub(crate) async fn project_version(&self, project: ProjectId) -> Result<ProjectVersion, AskError> {
        let (incarnation, position) = self.version(project, &Depends::Everything).await?;
        let incarnation = incarnation ^ xxh3_128(answers_version().as_bytes());
        Ok(ProjectVersion { incarnation, position, floor: self.floor(project).await? })
    }

    /// Returns the versions of projects of an organization, on whichever nodes they are.
    pub(crate) async fn versions_of(
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

#[cfg(test)]
mod tests {
    use headcount_domain::OrganizationId;

    use super::*;
    use headcount_common::{nodes::NodeRequest, nodes::decode_answer, nodes::encode_answer};

    /// Nodes of other program versions read these bytes.
    #[test]
    fn the_bytes_of_versions_stay() {
        let request = NodeRequest { organization: OrganizationId(1), projects: vec![ProjectId(2)], question: () };
        assert_eq!(request.encode(VERSIONS).unwrap(), [0xe8, 3, 1, 1, 1, 2]);
        let versions = vec![ProjectVersion { incarnation: 1 << 100, position: 300, floor: Some(Day(-1)) }];
        let bytes = encode_answer(VERSIONS, &versions).unwrap();
        let incarnation = (1_u128 << 100).to_le_bytes();
        assert_eq!(bytes, [&[0xe8, 3, 1, 1, 254][..], &incarnation, &[251, 44, 1, 1, 1]].concat());
        assert_eq!(decode_answer::<Vec<ProjectVersion>>(VERSIONS, &bytes), Ok(versions));
    }
}
