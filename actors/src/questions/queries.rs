//! Queries about one project, and about all projects of an organization.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use headcount_domain::queries::{Projects, Query, Travels};
use headcount_domain::{KeyHasher, OrganizationId, Position, ProjectId};
use xxhash_rust::xxh3::Xxh3;

use super::Questions;
use super::asking::ByNode;
use crate::shard::{AskError, Pending};

/// The projects of an organization. Queries go to their shards, and to the nodes that own them.
#[derive(Debug)]
pub struct OrganizationProjects<'e> {
    questions: &'e Questions,
    organization: OrganizationId,
    projects: Vec<ProjectId>,
    /// Groups of projects asked with one message, by index.
    together: Vec<Vec<usize>>,
    /// The projects on other nodes.
    elsewhere: Result<ByNode, AskError>,
}

/// The maximum number of projects asked with one message, so that a shard can do other work in
/// between.
const TOGETHER: usize = 16;

impl<'e> OrganizationProjects<'e> {
    fn new(questions: &'e Questions, organization: OrganizationId, projects: Vec<ProjectId>) -> Self {
        let (together, elsewhere) = match questions.places(&projects).known() {
            Ok(places) => (questions.group_by_shard(&projects, places.here.into_iter()), Ok(places.there)),
            Err(error) => (Vec::new(), Err(error)),
        };
        Self { questions, organization, projects, together, elsewhere }
    }
}

impl Projects for OrganizationProjects<'_> {
    type Error = AskError;

    fn organization(&self) -> OrganizationId {
        self.organization
    }

    fn count(&self) -> usize {
        self.projects.len()
    }

    fn hasher(&self) -> &KeyHasher {
        self.questions.hasher()
    }

    async fn scatter<Q: Travels>(&self, question: Q) -> Result<Vec<Q::Partial>, AskError> {
        let there = self.elsewhere.as_ref().map_err(AskError::clone)?;
        let asked = self.questions.ask_elsewhere((Q::TAG, question.clone()), self.organization, &self.projects, there);
        let here = self.questions.ask_grouped(&self.projects, &self.together, &question);
        let (mut parts, others) = tokio::try_join!(here, asked)?;
        parts.extend(others);
        Ok(in_order(parts))
    }
}

/// Returns parts by the places of their projects in the order of these places.
pub(crate) fn in_order<P>(mut parts: Vec<(usize, P)>) -> Vec<P> {
    parts.sort_unstable_by_key(|(place, _)| *place);
    parts.into_iter().map(|(_, part)| part).collect()
}

impl Questions {
    /// Groups projects that one message asks, by their places in the list.
    pub(crate) fn group_by_shard(&self, projects: &[ProjectId], places: impl Iterator<Item = usize>) -> Vec<Vec<usize>> {
        let mut of_shard: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for place in places {
            of_shard.entry(self.shards.shard_of(projects[place])).or_default().push(place);
        }
        of_shard.values().flat_map(|places| places.chunks(TOGETHER)).map(<[usize]>::to_vec).collect()
    }

    /// Asks projects on this node, each group with one message. The parts come with the indexes of
    /// their projects, in any order.
    pub(crate) async fn ask_grouped<Q: Travels>(
        &self,
        projects: &[ProjectId],
        together: &[Vec<usize>],
        question: &Q,
    ) -> Result<Vec<(usize, Q::Partial)>, AskError> {
        let of = |places: &Vec<usize>| places.iter().map(|place| projects[*place]).collect();
        // Sends all messages before waiting for the first answer.
        let asked: Vec<_> = together.iter().map(|places| self.send_query(of(places), question.clone())).collect();
        let mut parts: Vec<(usize, Q::Partial)> = Vec::with_capacity(projects.len());
        for (places, answer) in together.iter().zip(asked) {
            parts.extend(places.iter().copied().zip(answer?.wait().await?));
        }
        Ok(parts)
    }

    /// Sends a query to several projects of one shard. Partial answers come in the order of the
    /// projects.
    fn send_query<Q: Query + Sync>(&self, projects: Vec<ProjectId>, query: Q) -> Result<Pending<Vec<Q::Partial>>, AskError> {
        let Some(first) = projects.first().copied() else { return Err(AskError::NoAnswer) };
        self.send_to_shard(first, move |shard| projects.iter().map(|project| shard.answer(*project, &query)).collect())
    }

    /// Answers a query about one project, on its shard's thread.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask<Q: Query + Sync>(&self, project: ProjectId, query: Q) -> Result<Q::Partial, AskError> {
        self.ask_shard(project, move |shard| shard.answer(project, &query)).await
    }

    /// Returns a value that changes exactly when an answer about an organization may have changed:
    /// a hash of the organization's projects with their incarnations and versions.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn organization_version(&self, organization: OrganizationId) -> Result<u128, AskError> {
        let projects = self.projects_of(organization);
        let mut hash = Xxh3::new();
        let mut add = |project: ProjectId, of: u128, version: Position| {
            // A project without events is part of no answer.
            if version > 0 {
                hash.write_u64(project.0);
                hash.write_u128(of);
                hash.write_u64(version);
            }
        };
        for (project, version) in projects.iter().zip(self.versions_of(organization, &projects).await?) {
            add(*project, version.incarnation, version.position);
        }
        Ok(hash.digest128())
    }

    /// The projects of an organization, for queries about it:
    /// `top_companies(&engine.organization(id), …)`. An unknown organization has none.
    pub fn organization(&self, organization: OrganizationId) -> OrganizationProjects<'_> {
        OrganizationProjects::new(self, organization, self.projects_of(organization))
    }

    pub(crate) fn projects_of(&self, organization: OrganizationId) -> Vec<ProjectId> {
        self.registry.projects(organization).unwrap_or_default().iter().map(|project| project.id).collect()
    }
}
