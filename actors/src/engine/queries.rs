//! Queries about one project, and about all projects of an organization.

use std::collections::BTreeMap;
use std::hash::Hasher as _;

use headcount_domain::ids::{KeyHasher, OrganizationId, ProjectId};
use headcount_domain::queries::{
    self, CompanyMetrics, CountOf, GroupMetrics, IdentityCounts, IdentitySelector, Listed, Profile, Projects, Query, TopCompany,
    TopUser,
};
use headcount_domain::time::Window;
use xxhash_rust::xxh3::Xxh3;

use super::handle::Engine;
use super::shard_client::{AskError, Pending};

/// The projects of an organization, queried on their shards.
struct OrganizationProjects<'e> {
    engine: &'e Engine,
    projects: Vec<ProjectId>,
    /// Groups of projects that one message asks, by index.
    together: Vec<Vec<usize>>,
}

/// Maximum number of projects that one message asks, so that a shard can do other work in between.
const TOGETHER: usize = 16;

impl<'e> OrganizationProjects<'e> {
    fn new(engine: &'e Engine, projects: Vec<ProjectId>) -> Self {
        let mut of_shard: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, project) in projects.iter().enumerate() {
            of_shard.entry(engine.inner.shards.shard_of(*project)).or_default().push(place);
        }
        let together = of_shard.values().flat_map(|places| places.chunks(TOGETHER)).map(<[usize]>::to_vec).collect();
        Self { engine, projects, together }
    }
}

impl Projects for OrganizationProjects<'_> {
    type Error = AskError;

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

    /// Returns the profile of an identity over a window. `None`: there is no such identity.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn identity_profile(
        &self,
        organization: OrganizationId,
        who: &IdentitySelector,
        window: Window,
    ) -> Result<Option<Profile>, AskError> {
        queries::profile(&self.asked(organization), organization, who, window).await
    }

    /// Returns the most frequent referrers of an identity in a window.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn identity_referrers(
        &self,
        organization: OrganizationId,
        who: &IdentitySelector,
        window: Window,
        limit: usize,
    ) -> Result<Option<IdentityCounts>, AskError> {
        queries::counts(&self.asked(organization), organization, who, CountOf::Referrers, window, limit).await
    }

    /// Returns the pages that an identity viewed most in a window.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn identity_top_pages(
        &self,
        organization: OrganizationId,
        who: &IdentitySelector,
        window: Window,
        limit: usize,
    ) -> Result<Option<IdentityCounts>, AskError> {
        queries::counts(&self.asked(organization), organization, who, CountOf::Pages, window, limit).await
    }

    /// Returns the metrics of the company of a domain over a window. `None`: there is no such company, or the text is no
    /// domain.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn company_lookup(
        &self,
        organization: OrganizationId,
        domain: &str,
        window: Window,
    ) -> Result<Option<CompanyMetrics>, AskError> {
        queries::company_by_domain(&self.asked(organization), organization, domain, window).await
    }

    /// Returns the metrics of the company with a public id over a window. `None`: there is no such company.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn company_metrics(
        &self,
        organization: OrganizationId,
        company_id: &str,
        window: Window,
    ) -> Result<Option<CompanyMetrics>, AskError> {
        queries::company_by_id(&self.asked(organization), organization, company_id, window).await
    }

    /// Returns a company's most active identified users in a window. `None`: there is no such company.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn company_top_users(
        &self,
        organization: OrganizationId,
        company_id: &str,
        window: Window,
        limit: usize,
    ) -> Result<Option<Listed<TopUser>>, AskError> {
        queries::company_top_users(&self.asked(organization), organization, company_id, window, limit).await
    }

    /// Returns the most active companies of a window.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn top_companies(
        &self,
        organization: OrganizationId,
        window: Window,
        limit: usize,
    ) -> Result<Listed<TopCompany>, AskError> {
        queries::top_companies(&self.asked(organization), organization, window, limit).await
    }

    /// Returns the metrics of a group over a window. `None`: there is no such group.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn group_metrics(
        &self,
        organization: OrganizationId,
        group_type: &str,
        group_key: &str,
        window: Window,
    ) -> Result<Option<GroupMetrics>, AskError> {
        queries::group_metrics(&self.asked(organization), group_type, group_key, window).await
    }

    /// Returns the most active groups of a type in a window.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn top_groups(
        &self,
        organization: OrganizationId,
        group_type: &str,
        window: Window,
        limit: usize,
    ) -> Result<Listed<GroupMetrics>, AskError> {
        queries::top_groups(&self.asked(organization), group_type, window, limit).await
    }

    /// Returns what changes exactly when an answer about an organization can have changed: the incarnation of the data, and a
    /// hash of the organization's projects with their versions.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn organization_version(&self, organization: OrganizationId) -> Result<(u128, u128), AskError> {
        let mut hash = Xxh3::new();
        let mut incarnation = self.incarnation();
        for project in self.asked(organization).projects {
            let (of, version) = self.version(project).await?;
            incarnation = of;
            if version == 0 {
                // A project without events is part of no answer.
                continue;
            }
            hash.write_u64(project.0);
            hash.write_u64(version);
        }
        Ok((incarnation, hash.digest128()))
    }

    fn asked(&self, organization: OrganizationId) -> OrganizationProjects<'_> {
        // An unknown organization has no projects.
        let projects = self.registry().projects(organization).unwrap_or_default();
        OrganizationProjects::new(self, projects.iter().map(|project| project.id).collect())
    }
}
