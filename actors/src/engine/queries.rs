//! Queries about one project, and about all projects of an organization.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use headcount_domain::ids::{KeyHasher, OrganizationId, ProjectId};
use headcount_domain::queries::{Projects, Query};
use headcount_domain::versions::Depends;
use xxhash_rust::xxh3::Xxh3;

use super::handle::Engine;
use super::shard_client::{AskError, Pending};

/// The projects of an organization, queried on their shards.
#[derive(Debug)]
pub struct OrganizationProjects<'e> {
    engine: &'e Engine,
    organization: OrganizationId,
    projects: Vec<ProjectId>,
    /// Groups of projects that one message asks, by index.
    together: Vec<Vec<usize>>,
}

/// Maximum number of projects that one message asks, so that a shard can do other work in between.
const TOGETHER: usize = 16;

impl<'e> OrganizationProjects<'e> {
    fn new(engine: &'e Engine, organization: OrganizationId, projects: Vec<ProjectId>) -> Self {
        let mut of_shard: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, project) in projects.iter().enumerate() {
            of_shard.entry(engine.inner.shards.shard_of(*project)).or_default().push(place);
        }
        let together = of_shard.values().flat_map(|places| places.chunks(TOGETHER)).map(<[usize]>::to_vec).collect();
        Self { engine, organization, projects, together }
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
        self.engine.hasher()
    }

    async fn scatter<Q: Query + Sync>(&self, question: Q) -> Result<Vec<Q::Partial>, AskError> {
        let of = |places: &Vec<usize>| places.iter().map(|place| self.projects[*place]).collect();
        // Send all messages before waiting for the first answer.
        let asked: Vec<_> = self.together.iter().map(|places| self.engine.send_query(of(places), question.clone())).collect();
        let mut parts: Vec<(usize, Q::Partial)> = Vec::with_capacity(self.projects.len());
        for (places, answer) in self.together.iter().zip(asked) {
            parts.extend(places.iter().copied().zip(answer?.wait().await?));
        }
        parts.sort_unstable_by_key(|(place, _)| *place);
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }
}

impl Engine {
    /// Sends a query to several projects of one shard. Partial answers come in the order of the projects.
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

    /// Returns what changes exactly when an answer about an organization can have changed: the incarnation of the data, and a
    /// hash of the organization's projects with their versions.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn organization_version(&self, organization: OrganizationId) -> Result<(u128, u128), AskError> {
        let mut hash = Xxh3::new();
        let incarnation = self.incarnation();
        for project in self.organization(organization).projects {
            let (of, version) = self.version(project, &Depends::Everything).await?;
            if version == 0 {
                // A project without events is part of no answer.
                continue;
            }
            hash.write_u64(project.0);
            hash.write_u128(of);
            hash.write_u64(version);
        }
        Ok((incarnation, hash.digest128()))
    }

    /// The projects of an organization, which queries about it are asked of: `top_companies(&engine.organization(id), …)`.
    /// An unknown organization has none.
    #[must_use]
    pub fn organization(&self, organization: OrganizationId) -> OrganizationProjects<'_> {
        OrganizationProjects::new(self, organization, self.projects_of(organization))
    }

    pub(super) fn projects_of(&self, organization: OrganizationId) -> Vec<ProjectId> {
        self.registry().projects(organization).unwrap_or_default().iter().map(|project| project.id).collect()
    }
}
