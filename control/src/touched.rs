//! The parts of the state that a record changed.

use std::sync::Arc;

use headcount_domain::{OrganizationId, ProjectId};

use super::secret::SecretHash;
use super::{ApiToken, BrowserSession, Project, Share};

/// The parts of the state that a record changed, so that derived data can follow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Touched {
    /// A new organization, and possibly a root token.
    NewOrganization(OrganizationId, Option<SecretHash>),
    /// The organization's own fields.
    Organization(OrganizationId),
    /// A project, and the public keys that were removed from it.
    Project(OrganizationId, ProjectId, Vec<String>),
    /// New or changed tokens, as [`Tenant::effective`] shows them.
    Tokens(Vec<(Arc<ApiToken>, SecretHash)>),
    /// A new share.
    Share(Arc<Share>, SecretHash),
    /// A new session, and the sessions that ended for it.
    Session(SessionEntry, Vec<SecretHash>),
    /// Revoked tokens with their sessions, a revoked share, or an ended session.
    RemovedSecrets(Vec<SecretHash>),
    /// A deleted project, and the secrets that ended with it.
    RemovedProject(Arc<Project>, Vec<SecretHash>),
    /// The list of deletions. Nothing is derived from it.
    Deletions,
    /// The list of erasures. Nothing is derived from it here.
    Erasures,
    /// A definition. Nothing is derived from it here.
    Definitions,
    /// Nothing.
    Nothing,
}

/// A session, with the hashes of its secret and of its token's secret.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SessionEntry {
    pub(super) session: Arc<BrowserSession>,
    pub(super) hash: SecretHash,
    pub(super) token: SecretHash,
}
