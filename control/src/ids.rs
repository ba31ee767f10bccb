//! The ids of all items in the registry except organizations and projects. An id is a prefix and 16
//! random base62 characters. Ids are not secret.

use std::fmt;
use std::str::FromStr;

use headcount_common::ControlError;
use serde::{Deserialize, Serialize};

use super::secret::random_key;

/// The number of characters after the prefix.
const CHARACTERS: usize = 16;

impl TokenId {
    /// The id that represents a share where token ids are expected.
    pub(super) fn of_share(share: &ShareId) -> Self {
        Self(share.0.replacen(ShareId::PREFIX, Self::PREFIX, 1))
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal, $error:ident $message:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The prefix of every id of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Returns a new id.
            ///
            /// # Errors
            /// Returns [`ControlError::Random`].
            pub fn random() -> Result<Self, ControlError> {
                random_key(Self::PREFIX, CHARACTERS).map(Self)
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        /// The error for text that is not a valid id.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[error($message)]
        pub struct $error;

        impl TryFrom<String> for $name {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, $error> {
                let is_id = |rest: &str| rest.len() == CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
                if text.strip_prefix(Self::PREFIX).is_some_and(is_id) { Ok(Self(text)) } else { Err($error) }
            }
        }

        impl FromStr for $name {
            type Err = $error;

            fn from_str(text: &str) -> Result<Self, $error> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

ids! {
    /// The id of an API token.
    TokenId "tok_", BadTokenId "not a valid token id";
    /// The id of a member.
    MemberId "mem_", BadMemberId "not a valid member id";
    /// The id of an entry of the audit log.
    AuditId "aud_", BadAuditId "not a valid id of an audit entry";
    /// The id of a privacy request.
    PrivacyRequestId "pr_", BadPrivacyRequestId "not a valid id of a privacy request";
    /// The id of a company profile.
    CompanyProfileId "cp_", BadCompanyProfileId "not a valid id of a company profile";
    /// The id of a webhook.
    WebhookId "wh_", BadWebhookId "not a valid id of a webhook";
    /// The id of a run that builds a company profile.
    BuildRunId "run_", BadBuildRunId "not a valid id of a build run";
    /// The id of a share.
    ShareId "shr_", BadShareId "not a valid id of a share";
    /// The id of a browser session.
    SessionId "ses_", BadSessionId "not a valid id of a session";
    /// The id of an entry of the Actions ledger.
    ActionId "act_", BadActionId "not a valid id of an entry of the ledger";
}
