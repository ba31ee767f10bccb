//! The errors of the registry, grouped by who has to act on them.

use std::time::Duration;

use headcount_common::ControlError;

/// What the registry returns.
pub type Result<T, E = RegistryError> = std::result::Result<T, E>;

/// The reason why a request to the registry failed. No variant leaves a partial change.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The item does not exist, or it belongs to another organization: the two are
    /// indistinguishable.
    #[error("no such {what}")]
    NotFound {
        /// The kind of item: `organization`, `project`, `public key`, `API token`.
        what: &'static str,
    },
    /// The request is valid, but conflicts with the current state.
    #[error("{message}")]
    Conflict {
        /// A stable code: `timezone_fixed`, `currency_fixed`, `last_public_key`, `limit_reached`,
        /// `already_initialized`.
        code: &'static str,
        /// The conflict.
        message: String,
    },
    /// A value is not allowed.
    #[error("{param}: {message}")]
    Invalid {
        /// The field, spelled as in the management API: `name`, `allowed_origins[1]`.
        param: String,
        /// The problem, and the allowed values.
        message: String,
    },
    /// The author may no longer make the change.
    #[error(transparent)]
    Refused(AuthError),
    /// A balance is too small for the request.
    #[error("{message}")]
    Exhausted {
        /// A stable code: `actions_exhausted`.
        code: &'static str,
        /// The balance, and the requested amount.
        message: String,
    },
    /// The organization has made too many changes, in a cluster, where each costs every node.
    #[error("the organization has made too many changes")]
    TooManyChanges {
        /// The time until the next change is allowed.
        retry_after: Duration,
    },
    /// The change could not be made durable, or the registry could not be opened.
    #[error(transparent)]
    Storage(#[from] ControlError),
}

impl RegistryError {
    pub(super) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        RegistryError::Conflict { code, message: message.into() }
    }

    /// Returns the error of a field whose value is not allowed.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        RegistryError::Invalid { param: param.into(), message: message.into() }
    }
}

/// The reason why a credential was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// Malformed, unknown, revoked or expired; the caller does not learn which.
    #[error("the credential is not valid")]
    Unknown,
    /// The holder's role was lowered after the request was let in.
    #[error("the role was lowered while the request was under way")]
    Lowered,
}

/// The reason why a browser was not signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// The token or code is malformed, unknown, used, revoked or expired; the caller does not learn
    /// which.
    #[error("the token or code is not valid")]
    Refused,
    /// The session could not be recorded.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}
