//! The credential that admitted a request. The credential may be revoked, or lose its role, while
//! the request is in progress.

use super::names::Role;
use super::secret::SecretHash;

/// The credential of a request, and its role when the request was admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    pub(super) secret: SecretHash,
    pub(super) role: Role,
}
