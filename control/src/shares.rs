//! Operations on shares.

use std::sync::Arc;

use headcount_domain::{OrganizationId, ProjectId};

use super::record::{ControlRecord, StoredShare};
use super::secret::SecretHash;
use super::{
    Author, MAX_EMBED_ORIGINS, MAX_SHARES, MAX_SHARES_OF_PROJECT, NewShare, PROJECT_NOT_FOUND, Registry, RegistryError, Result,
    SHARE_PREFIX, Secret, Share, ShareId, validate,
};

const SHARE_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "share" };

impl Registry {
    /// Creates a share of a project. Its secret is in the return value, and can't be retrieved
    /// again.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] without such a project, [`RegistryError::Invalid`],
    /// [`RegistryError::Storage`], or [`RegistryError::Conflict`] `limit_reached` at
    /// [`MAX_SHARES_OF_PROJECT`] or [`MAX_SHARES`].
    pub fn create_share(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        new: NewShare,
        by: impl Into<Author>,
    ) -> Result<(Share, Secret)> {
        let author = by.into();
        self.change(Some(&author), |change| {
            {
                let tenant = self.tenant(organization)?;
                tenant.projects.get(&project).ok_or(PROJECT_NOT_FOUND)?;
                validate::room(tenant.shares.len(), MAX_SHARES, "shares of the organization")?;
                let of_project = tenant.shares.values().filter(|(share, _)| share.project == project).count();
                validate::room(of_project, MAX_SHARES_OF_PROJECT, "shares of the project")?;
            }
            validate::expiry(new.expires_at, author.at)?;
            let secret = Secret::random(SHARE_PREFIX)?;
            let share = Share {
                id: ShareId::random()?,
                organization,
                project,
                name: validate::name(&new.name)?,
                revenue: new.revenue,
                embed_origins: embed_origins(&new.embed_origins)?,
                created_at: author.at,
                expires_at: new.expires_at,
            };
            let stored = StoredShare { share: share.clone(), hash: SecretHash::of(secret.expose()) };
            change.commit(ControlRecord::ShareCreated(stored), &author)?;
            Ok((share, secret))
        })
    }

    /// Returns the shares of a project, oldest first, including expired ones.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] without such a project.
    pub fn shares(&self, organization: OrganizationId, project: ProjectId) -> Result<Vec<Arc<Share>>> {
        let tenant = self.tenant(organization)?;
        tenant.projects.get(&project).ok_or(PROJECT_NOT_FOUND)?;
        let of_project = tenant.shares.values().filter(|(share, _)| share.project == project);
        let mut shares: Vec<_> = of_project.map(|(share, _)| Arc::clone(share)).collect();
        shares.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        Ok(shares)
    }

    /// Revokes a share permanently. Its readers are refused from the next request on, and their
    /// streams end.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], also if the share is another project's;
    /// [`RegistryError::Storage`].
    pub fn revoke_share(
        &self,
        organization: OrganizationId,
        project: ProjectId,
        id: &ShareId,
        by: impl Into<Author>,
    ) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let is_there = {
                let state = change.state();
                let share = state.tenants.get(&organization).and_then(|tenant| tenant.shares.get(id));
                share.is_some_and(|(share, _)| share.project == project)
            };
            if !is_there {
                return Err(SHARE_NOT_FOUND);
            }
            change.commit(ControlRecord::ShareRevoked { organization, share: id.clone() }, &author)
        })
    }

    /// Returns the share with this id, of any organization. It has the origins that may embed the
    /// share, which are not secret.
    pub fn share(&self, id: &ShareId) -> Option<Arc<Share>> {
        self.cache.share(id)
    }
}

/// Normalizes the origins of pages, which browsers load over http and https.
fn embed_origins(list: &[String]) -> Result<Vec<String>> {
    let origins = validate::origins("embed_origins", MAX_EMBED_ORIGINS, list)?;
    let is_of_page = |origin: &String| origin.starts_with("https://") || origin.starts_with("http://");
    match origins.iter().find(|origin| !is_of_page(origin)) {
        Some(other) => Err(RegistryError::invalid("embed_origins", format!("must begin with https:// or http://, not {other}"))),
        None => Ok(origins),
    }
}
