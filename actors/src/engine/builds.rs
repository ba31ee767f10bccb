//! Builds of company profiles: asked for, and looked at.

use headcount_control::{Author, BuildRun, BuildRunId, RegistryError};
use headcount_domain::ids::OrganizationId;

use super::handle::Engine;
use crate::profiles::{BuildRequest, ProfileBuild};

impl Engine {
    /// Begins to build a company profile from a website, and returns the run. It goes on by itself, also after a restart.
    ///
    /// The profile is the named one, else the one with this website, else the organization's own, which is made if it is missing. If a run for it is under
    /// way, that one is returned. It costs one Action, or none if the organization has no profile.
    ///
    /// # Errors
    /// [`RegistryError::Invalid`] `website`; [`RegistryError::NotFound`] without the profile; [`RegistryError::Conflict`] `website_mismatch` if the profile has
    /// another website, `website_taken`, `limit_reached`; [`RegistryError::Exhausted`] `actions_exhausted`; [`RegistryError::Storage`].
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

    /// A run, and the profile that it filled. Runs are kept for 30 days after their end.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`], also if it is another organization's; [`RegistryError::Storage`].
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
