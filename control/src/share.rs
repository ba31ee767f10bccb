//! A share: a link that shows the figures of one project to any reader who has it.

use std::sync::Arc;

use headcount_domain::{Instant, OrganizationId, ProjectId};
use serde::{Deserialize, Serialize};

use super::secret::SecretHash;
use super::{ApiToken, Authority, Limiter, RateLimit, Role, Scope, ShareId, TokenId};

/// The maximum number of shares of a project.
pub const MAX_SHARES_OF_PROJECT: usize = 100;
/// The maximum number of shares of an organization.
pub const MAX_SHARES: usize = 1_000;
/// The maximum number of origins that may embed a share. A header lists all of them.
pub const MAX_EMBED_ORIGINS: usize = 20;
/// The limit for the requests of all readers of a share together. It bounds the load that strangers
/// can cause.
pub(super) const SHARE_LIMIT: RateLimit = RateLimit { per_second: 100, burst: Some(500) };

/// A share. Only its maker knows its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// The id under which the share is listed and revoked.
    pub id: ShareId,
    /// The organization.
    pub organization: OrganizationId,
    /// The project that it shows.
    pub project: ProjectId,
    /// The name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// Whether it shows money.
    pub revenue: bool,
    /// The web origins whose pages may embed it, as browsers spell them.
    pub embed_origins: Vec<String>,
    /// The time of creation.
    pub created_at: Instant,
    /// The time at which it expires.
    pub expires_at: Option<Instant>,
}

impl Share {
    /// Whether the share has expired at `now`.
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|expires_at| now >= expires_at)
    }

    /// The rights of the share's readers, as a token. No real token has this id.
    fn rights(&self) -> ApiToken {
        // Only owners and admins may see money.
        let role = if self.revenue { Role::Admin } else { Role::Member };
        let scopes = [Scope::AnalyticsRead].into_iter().chain(self.revenue.then_some(Scope::RevenueRead)).collect();
        ApiToken {
            token_id: TokenId::of_share(&self.id),
            organization: self.organization,
            project: Some(self.project),
            name: self.name.clone(),
            role,
            scopes,
            created_at: self.created_at,
            expires_at: self.expires_at,
            member: None,
            rate_limit: None,
        }
    }
}

/// The settings of a new share.
#[derive(Debug, Clone, Default)]
pub struct NewShare {
    /// The name.
    pub name: String,
    /// The time at which it expires, in the future.
    pub expires_at: Option<Instant>,
    /// Whether it shows money.
    pub revenue: bool,
    /// The web origins whose pages may embed it, at most [`MAX_EMBED_ORIGINS`].
    pub embed_origins: Vec<String>,
}

/// A reader of a share.
#[derive(Debug, Clone)]
pub struct ShareHolder {
    /// The share.
    pub share: Arc<Share>,
    /// The rights of the reader: to read figures of the project.
    pub rights: Arc<ApiToken>,
    /// The limiter of the requests of all its readers.
    pub limiter: Arc<Limiter>,
    secret: SecretHash,
}

impl ShareHolder {
    pub(super) fn new(share: &Arc<Share>, secret: SecretHash) -> Self {
        let (rights, limiter) = (Arc::new(share.rights()), Arc::new(Limiter::new(SHARE_LIMIT)));
        Self { share: Arc::clone(share), rights, limiter, secret }
    }

    /// Returns the authority of the reader's requests.
    pub fn authority(&self) -> Authority {
        Authority { secret: self.secret, role: self.rights.role }
    }
}

impl PartialEq for ShareHolder {
    fn eq(&self, other: &Self) -> bool {
        self.share == other.share
    }
}
