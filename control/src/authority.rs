//! What a request was let in with. A credential may be revoked, or lose its role, while the request is under way.

use super::names::Role;
use super::secret::SecretHash;

/// The credential of a request, and its role when the request was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub(super) secret: SecretHash,
    pub(super) role: Role,
}
