//! Questions about attribution, cohorts, identities, companies and groups. None has an answer yet.

use headcount_domain::answers::{
    AttributedRevenue, CompanyMetrics, Dimension, EntityLevel, GroupMetrics, IdentityCounts, IdentityName, Listed, LtvCohorts,
    Profile, TopCompany, TopUser, TouchModel,
};
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::time::Window;

use crate::engine::{AskError, Engine};

#[expect(clippy::unused_async, unused_variables, reason = "nothing is worked out yet")]
impl Engine {
    /// Revenue of a window by what brought the buyers.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn revenue_by_attribution(
        &self,
        project: ProjectId,
        model: TouchModel,
        level: EntityLevel,
        dimension: Dimension,
        window: Window,
        limit: usize,
    ) -> Result<AttributedRevenue, AskError> {
        Err(AskError::NoAnswer)
    }

    /// Lifetime value by month of first sight.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ltv_cohorts(&self, project: ProjectId, level: EntityLevel, limit: usize) -> Result<LtvCohorts, AskError> {
        Err(AskError::NoAnswer)
    }

    /// What an identity did.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn identity_profile(
        &self,
        organization: OrganizationId,
        who: &IdentityName,
        window: Window,
    ) -> Result<Option<Profile>, AskError> {
        Err(AskError::NoAnswer)
    }

    /// Where an identity came from.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn identity_referrers(
        &self,
        organization: OrganizationId,
        who: &IdentityName,
        window: Window,
        limit: usize,
    ) -> Result<Option<IdentityCounts>, AskError> {
        Err(AskError::NoAnswer)
    }

    /// What an identity looked at.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn identity_top_pages(
        &self,
        organization: OrganizationId,
        who: &IdentityName,
        window: Window,
        limit: usize,
    ) -> Result<Option<IdentityCounts>, AskError> {
        Err(AskError::NoAnswer)
    }

    /// What a company did, by its domain.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn company_lookup(
        &self,
        organization: OrganizationId,
        domain: &str,
        window: Window,
    ) -> Result<Option<CompanyMetrics>, AskError> {
        Err(AskError::NoAnswer)
    }

    /// What a company did.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn company_metrics(
        &self,
        organization: OrganizationId,
        company_id: &str,
        window: Window,
    ) -> Result<Option<CompanyMetrics>, AskError> {
        Err(AskError::NoAnswer)
    }

    /// A company's most active identified users.
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
        Err(AskError::NoAnswer)
    }

    /// The most active companies.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn top_companies(
        &self,
        organization: OrganizationId,
        window: Window,
        limit: usize,
    ) -> Result<Listed<TopCompany>, AskError> {
        Err(AskError::NoAnswer)
    }

    /// What a group did.
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
        Err(AskError::NoAnswer)
    }

    /// The most active groups of a type.
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
        Err(AskError::NoAnswer)
    }

    /// What changes exactly when an answer about an organization can have changed: the incarnation of the data, and a hash
    /// of its projects with their versions.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn organization_version(&self, organization: OrganizationId) -> Result<(u128, u128), AskError> {
        Err(AskError::NoAnswer)
    }
}
