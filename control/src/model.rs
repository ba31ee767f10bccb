//! Organizations, projects and API tokens, as stored and as shown.
//!
//! Stored types reject unknown fields: a field that an older program ignored would be lost in its
//! next snapshot. So a new field raises the version of records, and has a `serde(default)`.

use std::collections::BTreeMap;

use headcount_domain::intake::policy::{BotPolicy, Rates, SignalsPolicy};
use headcount_domain::{Currency, Instant, OrganizationId, Position, ProjectId, Quotas, RecordKey, Timezone};
use serde::{Deserialize, Serialize};

use super::{Capability, MemberId, Role, Scope, Secret, TokenId};

/// An organization, which owns projects and API tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    /// The organization's id.
    pub id: OrganizationId,
    /// The name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// The timezone of its days.
    pub timezone: Timezone,
    /// The currency of figures that span projects.
    pub currency: Currency,
    /// The value of one unit of each currency in USD. USD itself has no entry.
    pub fx_rates: Rates,
    /// The optional features that it may use, sorted.
    pub capabilities: Vec<Capability>,
    /// The number of Actions left.
    pub actions_balance: u64,
    /// The time of creation.
    pub created_at: Instant,
    /// Whether an event may have been recorded, which fixes the timezone and the currency.
    pub events_recorded: bool,
}

/// A project: a website, app or server that sends events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// The project's id.
    pub id: ProjectId,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// The currency of its figures.
    pub currency: Currency,
    /// The web origins that may send events, as browsers spell them; any if empty.
    pub allowed_origins: Vec<String>,
    /// Whether visitors without ids are distinguished by a daily hash.
    pub cookieless: bool,
    /// The treatment of bots.
    pub bots: BotPolicy,
    /// The treatment of privacy signals.
    pub signals_policy: SignalsPolicy,
    /// Whether money sent with a public key is stored with the event but not counted.
    pub server_only_revenue: bool,
    /// The number of days for which events are kept, today included: 1 to
    /// [`super::MAX_RETENTION_DAYS`]; forever if absent.
    #[serde(default)]
    pub retention_days: Option<u32>,
    /// The rate limit of its public keys together.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
    /// Its quotas.
    #[serde(default)]
    pub quotas: OwnQuotas,
    /// The hosts of its own sites. They don't count as sources.
    #[serde(default)]
    pub own_domains: Vec<String>,
    /// Other hosts that don't count as referrers.
    #[serde(default)]
    pub ignored_referrers: Vec<String>,
    /// The public keys for trackers, oldest first; never empty.
    pub public_keys: Vec<String>,
    /// The rate limits of the [`Self::public_keys`] that have one.
    #[serde(default)]
    pub key_limits: BTreeMap<String, RateLimit>,
    /// The time of creation.
    pub created_at: Instant,
    /// Whether an event may have been recorded, which fixes the currency.
    pub events_recorded: bool,
}

/// A rate limit of the events of public keys, or of the requests with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// Events or requests per second on average: 1 to [`super::MAX_RATE_LIMIT`].
    pub per_second: u32,
    /// The maximum after a pause, if different: 1 to [`super::MAX_RATE_LIMIT`]. See
    /// [`Self::burst`].
    pub burst: Option<u32>,
}

impl RateLimit {
    /// Returns the number of events that may be sent at once after a pause.
    pub fn burst(self) -> u32 {
        self.burst.unwrap_or(self.per_second)
    }
}

/// A change of a rate limit; `None` leaves a field unchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct RateLimitPatch {
    /// The new [`RateLimit::per_second`]; 0 removes the limit.
    pub per_second: Option<u32>,
    /// The new [`RateLimit::burst`].
    pub burst: Option<u32>,
}

/// An API token and its permissions. Only its holder knows its secret.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiToken {
    /// The id under which the token is listed and revoked.
    pub token_id: TokenId,
    /// The organization whose data it grants access to.
    pub organization: OrganizationId,
    /// The only project that it grants access to, if restricted to one.
    pub project: Option<ProjectId>,
    /// The name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: String,
    /// The holder's role in the organization.
    pub role: Role,
    /// The scopes of the token, sorted.
    pub scopes: Vec<Scope>,
    /// The time of creation.
    pub created_at: Instant,
    /// The time at which it expires.
    pub expires_at: Option<Instant>,
    /// The member who holds the token, if it is a member's token.
    #[serde(default)]
    pub member: Option<MemberId>,
    /// The rate limit of requests with the token.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
}

impl ApiToken {
    /// Whether the token has `scope`.
    pub fn has(&self, scope: Scope) -> bool {
        self.scopes.contains(&scope)
    }

    /// Whether the token can do everything in its organization at `now`.
    pub(super) fn manages(&self, now: Instant) -> bool {
        self.role == Role::Owner && self.project.is_none() && self.has(Scope::Admin) && !self.is_expired(now)
    }

    /// Whether the token has expired at `now`.
    pub fn is_expired(&self, now: Instant) -> bool {
        self.expires_at.is_some_and(|expires_at| now >= expires_at)
    }
}

/// The credentials of a new organization: the project `default`, its public key, and a token with
/// the role owner and every scope, shown only here.
#[derive(Debug)]
pub struct OrganizationKeys {
    /// The organization.
    pub organization_id: OrganizationId,
    /// Its first project.
    pub project_id: ProjectId,
    /// The public key for the project's trackers.
    pub public_key: String,
    /// The token for the management and analytics API.
    pub api_token: Secret,
}

/// The credentials created by the first start.
#[derive(Debug)]
pub struct Initial {
    /// The organization.
    pub organization_id: OrganizationId,
    /// Its first project.
    pub project_id: ProjectId,
    /// The public key for the project's trackers.
    pub public_key: String,
    /// The token for the management and analytics API.
    pub api_token: Secret,
    /// The root token, for creating further organizations.
    pub root_token: Secret,
}

/// A change of an organization; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct OrganizationPatch {
    /// The new name.
    pub name: Option<String>,
    /// The new timezone; only before the first event.
    pub timezone: Option<Timezone>,
    /// The new currency; only before the first event.
    pub currency: Option<Currency>,
    /// Replaces the whole table.
    pub fx_rates: Option<Rates>,
    /// Replaces the whole list.
    pub capabilities: Option<Vec<Capability>>,
    /// The new balance of Actions.
    pub actions_balance: Option<u64>,
}

/// The settings of a new organization; `None` stands for the default.
#[derive(Debug, Clone, Default)]
pub struct NewOrganization {
    /// The name. Default `default`.
    pub name: Option<String>,
    /// The timezone. Default UTC.
    pub timezone: Option<Timezone>,
    /// The currency of the organization and of its first project. Default USD.
    pub currency: Option<Currency>,
}

/// The settings of a new project; `None` stands for the default.
#[derive(Debug, Clone, Default)]
pub struct NewProject {
    /// The name.
    pub name: String,
    /// The currency. Default USD.
    pub currency: Option<Currency>,
    /// The origins that may send events. Default none, which allows any origin.
    pub allowed_origins: Option<Vec<String>>,
    /// Whether visitors without ids are distinguished. Default true.
    pub cookieless: Option<bool>,
    /// The treatment of bots. Default [`BotPolicy::Drop`].
    pub bots: Option<BotPolicy>,
    /// The treatment of privacy signals. Default [`SignalsPolicy::Record`].
    pub signals_policy: Option<SignalsPolicy>,
    /// Whether only servers may send money. Default false.
    pub server_only_revenue: Option<bool>,
    /// The number of days for which events are kept. Default forever.
    pub retention_days: Option<u32>,
    /// The hosts of its own sites. Default none.
    pub own_domains: Option<Vec<String>>,
    /// Other hosts that don't count as referrers. Default none.
    pub ignored_referrers: Option<Vec<String>>,
}

/// A change of a project; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct ProjectPatch {
    /// The new name.
    pub name: Option<String>,
    /// The new currency; only before the project's first event.
    pub currency: Option<Currency>,
    /// Replaces the whole list.
    pub allowed_origins: Option<Vec<String>>,
    /// Whether visitors without ids are distinguished.
    pub cookieless: Option<bool>,
    /// The treatment of bots.
    pub bots: Option<BotPolicy>,
    /// The treatment of privacy signals.
    pub signals_policy: Option<SignalsPolicy>,
    /// Whether only servers may send money.
    pub server_only_revenue: Option<bool>,
    /// The number of days for which events are kept; `Some(None)` for forever.
    pub retention_days: Option<Option<u32>>,
    /// The rate limit of its public keys together.
    pub rate_limit: RateLimitPatch,
    /// The quotas to change.
    pub quotas: OwnQuotas,
    /// Replaces the whole list of its own hosts.
    pub own_domains: Option<Vec<String>>,
    /// Replaces the whole list of hosts that don't count as referrers.
    pub ignored_referrers: Option<Vec<String>>,
}

/// The quotas of a project. The server's quota applies where one is absent. Each is 1 to
/// [`super::MAX_QUOTA`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnQuotas {
    /// The quota of groups.
    pub groups: Option<u32>,
    /// The quota of companies.
    pub companies: Option<u32>,
    /// The quota of sources, mediums, campaigns and referrers together.
    pub sources: Option<u32>,
    /// The quota of pages.
    pub pages: Option<u32>,
}

impl OwnQuotas {
    /// Returns each quota with its name.
    pub fn named(&mut self) -> [(&'static str, &mut Option<u32>); 4] {
        let Self { groups, companies, sources, pages } = self;
        [("groups", groups), ("companies", companies), ("sources", sources), ("pages", pages)]
    }

    /// Returns the effective quotas. `others` has those of the server.
    pub fn over(self, others: Quotas) -> Quotas {
        let own = |own: Option<u32>, other| own.map_or(other, |own| usize::try_from(own).unwrap_or(usize::MAX));
        Quotas {
            groups: own(self.groups, others.groups),
            companies: own(self.companies, others.companies),
            sources: own(self.sources, others.sources),
            pages: own(self.pages, others.pages),
        }
    }
}

/// A change of an API token; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct TokenPatch {
    /// The new name.
    pub name: Option<String>,
    /// The change of the rate limit of requests with it.
    pub rate_limit: RateLimitPatch,
}

/// The settings of a new API token.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// The name.
    pub name: String,
    /// The holder's role in the organization.
    pub role: Role,
    /// The scopes; at least one.
    pub scopes: Vec<Scope>,
    /// The only project that it grants access to, if restricted to one.
    pub project: Option<ProjectId>,
    /// The time at which it expires, in the future.
    pub expires_at: Option<Instant>,
    /// The member who holds it.
    pub member: Option<MemberId>,
}

/// A member of an organization: a person who holds API tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The member's id.
    pub id: MemberId,
    /// The organization.
    pub organization: OrganizationId,
    /// The e-mail address, in lower case. Unique in the organization.
    pub email: String,
    /// The name, 1 to [`super::MAX_NAME_CHARACTERS`] characters.
    pub name: Option<String>,
    /// The role. A token of the member has the lower of this and its own.
    pub role: Role,
    /// The time of creation.
    pub created_at: Instant,
}

/// The settings of a new member.
#[derive(Debug, Clone)]
pub struct NewMember {
    /// The e-mail address.
    pub email: String,
    /// The name; empty for none.
    pub name: Option<String>,
    /// The role.
    pub role: Role,
}

/// A change of a member; `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct MemberPatch {
    /// The new e-mail address.
    pub email: Option<String>,
    /// The new name; empty removes it.
    pub name: Option<String>,
    /// The new role.
    pub role: Option<Role>,
}

/// The erasure of an identity. It holds keyed hashes of the identity's ids, and no ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erasure {
    /// Its number in the organization; 0 for a new one.
    pub number: u64,
    /// The organization.
    pub organization: OrganizationId,
    /// The keys of its users.
    pub users: Vec<RecordKey>,
    /// The keys of its anonymous ids, with their projects.
    pub others: Vec<(ProjectId, RecordKey)>,
    /// The keys of the e-mail addresses in the request. An identity that reports one of them is the
    /// same person.
    #[serde(default)]
    pub emails: Vec<RecordKey>,
    /// The ends of the identity in the projects that know it. Until it begins, it has none, and
    /// only suppresses its ids.
    pub ends: Vec<ErasureEnd>,
    /// Whether it is done: no data of the identity are left.
    pub is_done: bool,
    /// Whether it was lifted: later events of its ids are recorded again.
    pub is_lifted: bool,
}

/// The end of an erased identity in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasureEnd {
    /// The project.
    pub project: ProjectId,
    /// The last position that an event of the identity can have in it.
    pub until: Position,
    /// The stage of the erasure.
    pub stage: ErasureStage,
}

/// The data of an erased identity that are left in one project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErasureStage {
    /// Possibly all data.
    Begun,
    /// Only its events in the log, which readers skip.
    Logged,
    /// No data.
    Gone,
}

impl ErasureEnd {
    /// Returns the end of an identity whose events in a project have at most the position `until`.
    pub fn at(until: Position, project: ProjectId) -> Self {
        Self { project, until, stage: ErasureStage::Begun }
    }
}

impl Erasure {
    /// Whether its events are being erased. Before that, its ids are only suppressed.
    pub fn has_begun(&self) -> bool {
        !self.ends.is_empty()
    }

    /// The projects that know the identity.
    pub fn projects(&self) -> impl Iterator<Item = ProjectId> {
        self.ends.iter().map(|end| end.project)
    }

    /// Returns its end in a project; `None` if the project doesn't know the identity.
    pub fn end_in(&self, project: ProjectId) -> Option<&ErasureEnd> {
        self.ends.iter().find(|end| end.project == project)
    }

    /// Whether it only suppresses its ids. It will begin, or be given up.
    pub fn only_suppresses(&self) -> bool {
        !self.is_done && !self.has_begun()
    }

    /// Whether it was given up before it began.
    pub(super) fn is_given_up(&self) -> bool {
        !self.has_begun() && self.is_done && self.is_lifted && self.ids() == 0
    }

    /// The number of its keys.
    pub fn ids(&self) -> usize {
        self.users.len() + self.others.len() + self.emails.len()
    }

    /// The last position that its events can have in a project.
    pub fn until_in(&self, project: ProjectId) -> Position {
        self.end_in(project).map_or(0, |end| end.until)
    }

    /// Returns its stage in a project.
    pub fn stage_in(&self, project: ProjectId) -> ErasureStage {
        self.end_in(project).filter(|_| !self.is_done).map_or(ErasureStage::Gone, |end| end.stage)
    }

    /// Records its stage in a project, which never goes back. The erasure is done when all projects
    /// are at the last stage.
    pub(super) fn reach(&mut self, project: ProjectId, stage: ErasureStage) {
        for end in self.ends.iter_mut().filter(|end| end.project == project) {
            end.stage = end.stage.max(stage);
        }
        self.is_done |= self.has_begun() && self.ends.iter().all(|end| end.stage == ErasureStage::Gone);
    }
}
