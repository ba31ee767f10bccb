//! Company profiles.

use headcount_control::{Author, CompanyProfileId, RegistryError};
use headcount_domain::ids::OrganizationId;

use super::handle::Engine;
use crate::profiles::{CompanyProfile, NewCompanyProfile, ProfilePage, ProfilePatch, ProfileQuery};

impl Engine {
    /// Applies the changes of company profiles and webhooks by other nodes up to now. Returns the
    /// numbers of the last changes. Blocking; asks the brokers.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: they can't be read, or not written here.
    pub fn follow_documents(&self) -> Result<(u64, u64), RegistryError> {
        Ok((self.inner.profiles.follow()?, self.inner.webhooks.follow()?))
    }

    /// Like [`Self::propagate_company_profiles_with`], for webhooks.
    pub fn propagate_webhooks_with(&self, propagate: impl Fn(u64) + Send + Sync + 'static) {
        self.inner.webhooks.propagate_with(propagate);
    }

    /// Makes each change of a company profile wait until `propagate` returns. `propagate` gets the
    /// number of the change, and waits until all other nodes that answer requests have applied it.
    /// Only the first call counts.
    pub fn propagate_company_profiles_with(&self, propagate: impl Fn(u64) + Send + Sync + 'static) {
        self.inner.profiles.propagate_with(propagate);
    }

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
