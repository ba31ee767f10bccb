//! Organizations, projects and API tokens, as they are stored and shown.
//!
//! What is stored refuses unknown fields: a field that an older program ignored would be gone after its next snapshot.
//! So a new field raises the version of records and snapshots, and has a `serde(default)` for those before it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::policy::{BotPolicy, Rates, SignalsPolicy};
use headcount_domain::money::Currency;
use headcount_domain::time::{Instant, Timezone};
use serde::{Deserialize, Serialize};

use super::error::ControlError;
use super::names::{Capability, Role, Scope};
use super::secret::{Secret, random_key};

/// Owns projects and API tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    /// Its id.
    pub id: OrganizationId,
    /// Its name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// In which its days are counted.
    pub timezone: Timezone,
    /// In which figures over several projects are counted.
    pub currency: Currency,
    /// The worth of one unit of each currency in USD; USD itself has no entry.
    pub fx_rates: Rates,
    /// What it may use beyond the basics, sorted.
    pub capabilities: Vec<Capability>,
    /// How many Actions it has left.
    pub actions_balance: u64,
    /// When it was made.
    pub created_at: Instant,
    /// Whether an event may have been recorded: from then on timezone and currency stay.
    pub events_recorded: bool,
}

/// Something that sends events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// Whose it is.
    pub organization: OrganizationId,
    /// Its name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// In which its figures are counted.
    pub currency: Currency,
    /// Which web origins may send events, as browsers spell them; empty: any.
    pub allowed_origins: Vec<String>,
    /// Whether visitors without ids are told apart by a daily hash.
    pub cookieless: bool,
    /// About bots.
    pub bots: BotPolicy,
    /// About privacy signals.
    pub signals_policy: SignalsPolicy,
    /// Whether money sent with a public key is kept on the event and not counted.
    pub server_only_revenue: bool,
    /// The keys that trackers may use, oldest first; never none.
    pub public_keys: Vec<String>,
    /// How much may be sent with a key, for those of [`Self::public_keys`] that have a limit. Since version 2.
    #[serde(default)]
    pub key_limits: BTreeMap<String, RateLimit>,
    /// When it was made.
    pub created_at: Instant,
    /// Whether an event may have been recorded: from then on the currency stays.
    pub events_recorded: bool,
}

/// How many events may be sent with a public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// How many a second, over time: 1 to [`super::MAX_RATE_LIMIT`].
    pub per_second: u32,
    /// How many at once after a pause, where that is not the same: 1 to [`super::MAX_RATE_LIMIT`]. See [`Self::burst`].
    pub burst: Option<u32>,
}

impl RateLimit {
    /// How many may be sent at once after a pause.
    #[must_use]
    pub fn burst(self) -> u32 {
        self.burst.unwrap_or(self.per_second)
    }
}

/// A change of a public key's limit: what is `None` stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct RateLimitPatch {
    /// Another [`RateLimit::per_second`]; 0 takes the limit away.
    pub per_second: Option<u32>,
    /// Another [`RateLimit::burst`].
    pub burst: Option<u32>,
}

/// What an API token may do. Its secret is known to its holder only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiToken {
    /// Names the token where it is listed or revoked.
    pub token_id: TokenId,
    /// For whose data it is.
    pub organization: OrganizationId,
    /// The one project that it is for, if it is.
    pub project: Option<ProjectId>,
    /// Its name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// What its holder is in the organization.
    pub role: Role,
    /// What it may be used for, sorted.
    pub scopes: Vec<Scope>,
    /// When it was made.
    pub created_at: Instant,
    /// From when on it is refused.
    pub expires_at: Option<Instant>,
}

impl ApiToken {
    /// Whether the token was given `scope`.
    #[must_use]
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether the token can do everything in its organization at `now`, making other tokens included.
    pub(super) fn manages(&self, now: Instant) -> bool {
        self.role == Role::Owner && self.project.is_none() && self.has(Scope::Admin) && !self.is_expired(now)
    }

    /// Whether the token is refused at `now`.
    #[must_use]
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|expires_at| now >= expires_at)
    }
}

/// The id of an API token: `tok_` and 16 base62 characters. It is no secret.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId(String);

impl TokenId {
    /// What every token id begins with.
    pub const PREFIX: &'static str = "tok_";
    const CHARACTERS: usize = 16;

    pub(super) fn random() -> Result<Self, ControlError> {
        random_key(Self::PREFIX, Self::CHARACTERS).map(TokenId)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Text that is no token id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid token id")]
pub struct BadTokenId;

impl TryFrom<String> for TokenId {
    type Error = BadTokenId;

    fn try_from(text: String) -> Result<Self, BadTokenId> {
        let is_id = |rest: &str| rest.len() == Self::CHARACTERS && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if text.strip_prefix(Self::PREFIX).is_some_and(is_id) { Ok(TokenId(text)) } else { Err(BadTokenId) }
    }
}

impl FromStr for TokenId {
    type Err = BadTokenId;

    fn from_str(text: &str) -> Result<Self, BadTokenId> {
        text.to_owned().try_into()
    }
}

impl From<TokenId> for String {
    fn from(id: TokenId) -> String {
        id.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a new organization comes with: the project `default`, its public key, and a token of role owner with every
/// scope, shown here once.
#[derive(Debug)]
pub struct OrganizationKeys {
    /// The organization.
    pub organization_id: OrganizationId,
    /// Its first project.
    pub project_id: ProjectId,
    /// For the project's trackers.
    pub public_key: String,
    /// For the management and analytics API.
    pub api_token: Secret,
}

/// What the first start makes.
#[derive(Debug)]
pub struct Initial {
    /// The organization.
    pub organization_id: OrganizationId,
    /// Its first project.
    pub project_id: ProjectId,
    /// For the project's trackers.
    pub public_key: String,
    /// For the management and analytics API.
    pub api_token: Secret,
    /// For making more organizations.
    pub root_token: Secret,
}

/// A change of an organization: what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct OrganizationPatch {
    /// Another name.
    pub name: Option<String>,
    /// Another timezone, as long as no event was recorded.
    pub timezone: Option<Timezone>,
    /// Another currency, as long as no event was recorded.
    pub currency: Option<Currency>,
    /// Takes the place of the whole table.
    pub fx_rates: Option<Rates>,
    /// Takes the place of the whole list.
    pub capabilities: Option<Vec<Capability>>,
    /// Another balance of Actions.
    pub actions_balance: Option<u64>,
}

/// An organization to be made: what is `None` gets its default.
#[derive(Debug, Clone, Default)]
pub struct NewOrganization {
    /// Its name. Default `default`.
    pub name: Option<String>,
    /// Default UTC.
    pub timezone: Option<Timezone>,
    /// Its currency, and that of its first project. Default USD.
    pub currency: Option<Currency>,
}

/// A project to be made: what is `None` gets its default.
#[derive(Debug, Clone, Default)]
pub struct NewProject {
    /// Its name.
    pub name: String,
    /// Default USD.
    pub currency: Option<Currency>,
    /// Default none: any origin may send events.
    pub allowed_origins: Option<Vec<String>>,
    /// Default true.
    pub cookieless: Option<bool>,
    /// Default [`BotPolicy::Drop`].
    pub bots: Option<BotPolicy>,
    /// Default [`SignalsPolicy::Record`].
    pub signals_policy: Option<SignalsPolicy>,
    /// Default false.
    pub server_only_revenue: Option<bool>,
}

/// A change of a project: what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct ProjectPatch {
    /// Another name.
    pub name: Option<String>,
    /// Another currency, as long as the project has recorded no event.
    pub currency: Option<Currency>,
    /// Takes the place of the whole list.
    pub allowed_origins: Option<Vec<String>>,
    /// Whether visitors without ids are told apart.
    pub cookieless: Option<bool>,
    /// About bots.
    pub bots: Option<BotPolicy>,
    /// About privacy signals.
    pub signals_policy: Option<SignalsPolicy>,
    /// Whether money sent with a public key counts.
    pub server_only_revenue: Option<bool>,
}

/// An API token to be made.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Its name.
    pub name: String,
    /// What its holder is in the organization.
    pub role: Role,
    /// What it may be used for; at least one.
    pub scopes: Vec<Scope>,
    /// The one project that it is for, if it is to be so.
    pub project: Option<ProjectId>,
    /// From when on it is refused; in the future.
    pub expires_at: Option<Instant>,
}
