//! Operations on API tokens.

use std::sync::Arc;

use headcount_domain::{Instant, OrganizationId};

use super::members::check_owner_is_left;
use super::record::{ControlRecord, StoredToken};
use super::secret::SecretHash;
use super::{
    ActorKind, ApiToken, Author, NewToken, ROOT_TOKEN_PREFIX, Registry, RegistryError, Result, Role, Scope, Secret, TOKEN_PREFIX,
    TokenId, TokenPatch, validate,
};

const TOKEN_NOT_FOUND: RegistryError = RegistryError::NotFound { what: "API token" };

impl Registry {
    /// Creates an API token. Its secret is in the return value, and can't be retrieved again.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist,
    /// [`RegistryError::Invalid`] (for `project_id` and `member_id`, if the organization has no
    /// such project or member), [`RegistryError::Storage`], or [`RegistryError::Conflict`]
    /// `limit_reached` at [`super::MAX_TOKENS`].
    pub fn create_token(&self, organization: OrganizationId, new: NewToken, by: impl Into<Author>) -> Result<(ApiToken, Secret)> {
        let author = by.into();
        self.change(Some(&author), |change| {
            {
                let tenant = self.tenant(organization)?;
                validate::room(tenant.tokens.len(), validate::MAX_TOKENS, "API tokens")?;
                if new.project.is_some_and(|project| !tenant.projects.contains_key(&project)) {
                    return Err(RegistryError::invalid("project_id", "must be a project of the organization"));
                }
                if new.member.as_ref().is_some_and(|member| !tenant.members.contains_key(member)) {
                    return Err(RegistryError::invalid("member_id", "must be a member of the organization"));
                }
            }
            let (stored, secret) = new.clone().build(organization, author.at)?;
            let token = stored.token.clone();
            change.commit(ControlRecord::TokenCreated(stored), &author)?;
            Ok((token, secret))
        })
    }

    /// Issues a token with the role owner and every scope, which exists only in memory and ends
    /// with the process. Commands use it on a data directory that no server has open.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist,
    /// [`RegistryError::Storage`] if there is no randomness.
    pub fn temporary_token(&self, organization: OrganizationId, now: Instant) -> Result<Secret> {
        // No change of the organization may come between the check and the cache.
        self.change(None, |_change| {
            drop(self.tenant(organization)?);
            let new = NewToken {
                name: "command line".into(),
                role: Role::Owner,
                scopes: Scope::ALL.to_vec(),
                project: None,
                expires_at: None,
                member: None,
            };
            let (StoredToken { token, hash }, secret) = new.build(organization, now)?;
            self.cache.put_command_token(&Arc::new(token), hash);
            Ok(secret)
        })
    }

    /// Issues a root token, which exists only in memory and ends with the process.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] if there is no randomness.
    pub fn temporary_root_token(&self) -> Result<Secret> {
        let secret = Secret::random(ROOT_TOKEN_PREFIX)?;
        self.cache.put_root_token(SecretHash::of(secret.expose()), ActorKind::Cli);
        Ok(secret)
    }

    /// Returns the tokens of an organization, oldest first, including expired ones.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if there is no such organization.
    pub fn tokens(&self, organization: OrganizationId) -> Result<Vec<Arc<ApiToken>>> {
        let tenant = self.tenant(organization)?;
        let mut tokens: Vec<_> = tenant.tokens.values().map(|(token, _)| Arc::clone(token)).collect();
        tokens.sort_by(|a, b| (a.created_at, &a.token_id).cmp(&(b.created_at, &b.token_id)));
        Ok(tokens)
    }

    /// Changes the name and the rate limit of a token, and returns its new state. A token whose
    /// limit changed may be used for a whole burst at once.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], also if another organization owns the token;
    /// [`RegistryError::Invalid`] `name`, `rate_limit` and `burst`; [`RegistryError::Storage`].
    pub fn update_token(
        &self,
        organization: OrganizationId,
        token_id: &TokenId,
        patch: TokenPatch,
        by: impl Into<Author>,
    ) -> Result<Arc<ApiToken>> {
        let author = by.into();
        self.change(Some(&author), |change| {
            let current = self.token(organization, token_id)?;
            let mut changed = ApiToken::clone(&current);
            if let Some(name) = &patch.name {
                changed.name = validate::name(name)?;
            }
            changed.rate_limit = validate::rate_limit(current.rate_limit, patch.rate_limit)?;
            if *current == changed {
                return Ok(current);
            }
            change.commit(ControlRecord::TokenChanged(changed), &author)?;
            self.token(organization, token_id)
        })
    }

    fn token(&self, organization: OrganizationId, id: &TokenId) -> Result<Arc<ApiToken>> {
        let state = self.state();
        let token = state.tenants.get(&organization).and_then(|tenant| tenant.tokens.get(id));
        token.map(|(token, _)| Arc::clone(token)).ok_or(TOKEN_NOT_FOUND)
    }

    /// Revokes a token permanently. It is refused from the next request on, and no longer listed.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`], also if another organization owns the token or if it is
    /// already revoked; [`RegistryError::Conflict`] `last_owner` if no other valid token could
    /// manage the organization; [`RegistryError::Storage`].
    pub fn revoke_token(&self, organization: OrganizationId, token_id: &TokenId, by: impl Into<Author>) -> Result<()> {
        let author = by.into();
        self.change(Some(&author), |change| {
            {
                let tenant = self.tenant(organization)?;
                if !tenant.tokens.contains_key(token_id) {
                    return Err(TOKEN_NOT_FOUND);
                }
                check_owner_is_left(&tenant, author.at, |token| token.token_id == *token_id)?;
            }
            change.commit(ControlRecord::TokenRevoked { organization, token_id: token_id.clone() }, &author)
        })
    }
}

impl NewToken {
    /// Builds the token to store, and its secret.
    pub(super) fn build(self, organization: OrganizationId, now: Instant) -> Result<(StoredToken, Secret)> {
        validate::expiry(self.expires_at, now)?;
        let secret = Secret::random(TOKEN_PREFIX)?;
        let token = ApiToken {
            token_id: TokenId::random()?,
            organization,
            project: self.project,
            name: validate::name(&self.name)?,
            role: self.role,
            scopes: validate::scopes(self.scopes)?,
            created_at: now,
            expires_at: self.expires_at,
            member: self.member,
            rate_limit: None,
        };
        Ok((StoredToken { token, hash: SecretHash::of(secret.expose()) }, secret))
    }
}
