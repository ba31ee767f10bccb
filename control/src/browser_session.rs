//! A browser session as it is stored: a browser that signed in to the page.

use headcount_domain::{Instant, OrganizationId};
use serde::{Deserialize, Serialize};

use super::ids::{SessionId, TokenId};

/// The seconds that a session lasts, unless its token ends before.
pub const SESSION_SECONDS: i64 = 14 * 24 * 60 * 60;
/// The maximum number of sessions of a token. One more ends the oldest.
pub const MAX_SESSIONS_OF_TOKEN: usize = 100;
/// The maximum number of sessions of an organization. One more ends the oldest.
pub const MAX_SESSIONS: usize = 1_000;

/// A browser that signed in with a token. Only the browser knows the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrowserSession {
    /// Its id.
    pub id: SessionId,
    /// The organization.
    pub organization: OrganizationId,
    /// The token whose rights the session has.
    pub token: TokenId,
    /// The time of the sign-in.
    pub created_at: Instant,
}

impl BrowserSession {
    /// The time at which it expires.
    pub fn expires_at(&self) -> Instant {
        self.created_at.plus_ms(SESSION_SECONDS * 1_000)
    }

    /// Whether it has expired at `now`.
    pub fn is_expired(&self, now: Instant) -> bool {
        now >= self.expires_at()
    }
}
