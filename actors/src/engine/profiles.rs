//! Company profiles, and the builds that fill them.

use headcount_control::{Author, BuildRun, BuildRunId, CompanyProfileId, RegistryError};
use headcount_domain::ids::OrganizationId;

use super::handle::Engine;
use crate::profiles::{BuildRequest, CompanyProfile, NewCompanyProfile, ProfileBuild, ProfilePage, ProfilePatch, ProfileQuery};

impl Engine {
    /// Creates a profile of a target account. The caller checks the capability.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`]; [`RegistryError::Conflict`] `limit_reached` at
    /// [`MAX_COMPANY_PROFILES`](crate::profiles::MAX_COMPANY_PROFILES), `website_taken`;
    /// [`RegistryError::Storage`].
    pub fn create_company_profile(
        &self,
        organization: OrganizationId,
        new: NewCompanyProfile,
        by: impl Into<Author>,
    ) -> Result<CompanyProfile, RegistryError> {
        self.inner.profiles.create(self.registry(), organization, new, &by.into())
    }

    /// Returns a company profile from its file.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't have the profile;
    /// [`RegistryError::Storage`].
    pub fn company_profile(&self, organization: OrganizationId, id: &CompanyProfileId) -> Result<CompanyProfile, RegistryError> {
        self.inner.profiles.get(organization, id)
    }

    /// Returns company profiles of an organization, newest first.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `starting_after` if that profile doesn't exist;
    /// [`RegistryError::Storage`].
    pub fn company_profiles(&self, organization: OrganizationId, query: &ProfileQuery) -> Result<ProfilePage, RegistryError> {
        self.inner.profiles.page(organization, query)
    }

    /// Changes a company profile: all fields of the patch, or none.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`]; [`RegistryError::Conflict`]
    /// `website_taken`; [`RegistryError::Storage`].
    pub fn change_company_profile(
        &self,
        organization: OrganizationId,
        id: &CompanyProfileId,
        patch: ProfilePatch,
        by: impl Into<Author>,
    ) -> Result<CompanyProfile, RegistryError> {
        self.inner.profiles.change(self.registry(), organization, id, &patch, &by.into())
    }

    /// Removes a company profile.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], [`RegistryError::Storage`].
    pub fn remove_company_profile(
        &self,
        organization: OrganizationId,
        id: &CompanyProfileId,
        by: impl Into<Author>,
    ) -> Result<(), RegistryError> {
        self.inner.profiles.remove(self.registry(), organization, id, &by.into())
    }
}

impl Engine {
    /// Begins to build a company profile from a website, and returns the run. The run continues by
    /// itself, even after a restart.
    ///
    /// It fills the named profile, or else the one with this website, or else the organization's
    /// own, which is created if it is missing. If a run for that profile is in progress, that run
    /// is returned. A run costs one Action, or none if the organization has no profile.
    ///
    /// # Errors
    /// Returns [`RegistryError::Invalid`] `website`; [`RegistryError::NotFound`] if the profile
    /// doesn't exist; [`RegistryError::Conflict`] `website_mismatch` if the profile has another
    /// website, `website_taken`, `limit_reached`; [`RegistryError::Exhausted`] `actions_exhausted`;
    /// [`RegistryError::Storage`].
    pub fn build_company_profile(
        &self,
        organization: OrganizationId,
        request: &BuildRequest,
        by: impl Into<Author>,
    ) -> Result<BuildRun, RegistryError> {
        if self.inner.config.research.is_none() {
            return Err(RegistryError::invalid("website", "can't be read: this engine reads no websites"));
        }
        let run = self.inner.profiles.begin_build(self.registry(), organization, request, &by.into())?;
        self.inner.profiles.builds.work.notify_one();
        Ok(run)
    }

    /// Returns a run, and the profile that it filled. Runs are kept for 30 days after their end.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't have the run;
    /// [`RegistryError::Storage`].
    pub fn company_profile_build(&self, organization: OrganizationId, id: &BuildRunId) -> Result<ProfileBuild, RegistryError> {
        let run = self.registry().kept_build(organization, id, self.clock().now())?;
        let filled = run.outcome.as_ref().and_then(|outcome| outcome.result.as_ref().ok());
        let profile = match filled.map(|id| self.company_profile(organization, id)) {
            None | Some(Err(RegistryError::NotFound { .. })) => None,
            Some(profile) => Some(profile?),
        };
        Ok(ProfileBuild { is_running: self.inner.profiles.builds.is_running(id), run, profile })
    }
}
