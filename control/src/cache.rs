//! The lookups of every request, precomputed: credentials by hash, projects by key and by id.
//!
//! The cache follows the state change by change. It is written only under the registry's lock for
//! changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashmap::DashMap;
use headcount_domain::hosts::HostList;
use headcount_domain::intake::policy::{Policy, Rates};
use headcount_domain::{Instant, ProjectId};
use tokio::sync::watch;

use super::secret::SecretHash;
use super::state::{State, Tenant};
use super::touched::{SessionEntry, Touched};
use super::{
    ActorKind, ApiToken, Authority, BrowserSession, Limiter, OwnQuotas, Project, RateLimit, Share, ShareHolder, ShareId,
};

/// The holder of a credential.
#[derive(Debug, Clone, PartialEq)]
pub enum Principal {
    /// The holder of a root token, which can only create organizations.
    Root(ActorKind),
    /// The holder of an API token, or of a browser session of one.
    Token(TokenHolder),
    /// A reader of a share.
    Share(ShareHolder),
}

/// The credential that a secret belongs to.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Credential {
    Root(ActorKind),
    Token(TokenHolder),
    /// A session, and the hash of its token's secret. The session has the token's current rights.
    Session(Arc<BrowserSession>, SecretHash),
    Share(ShareHolder),
}

/// The holder of an API token.
#[derive(Debug, Clone)]
pub struct TokenHolder {
    /// The token.
    pub token: Arc<ApiToken>,
    /// The kind of actor that the holder is.
    pub kind: ActorKind,
    /// The limiter of requests with the token, if it has a limit. All requests share it until the
    /// limit changes.
    pub limiter: Option<Arc<Limiter>>,
    /// The secret that the holder sent.
    pub(super) secret: SecretHash,
}

impl TokenHolder {
    /// Returns the authority of the holder's requests.
    pub fn authority(&self) -> Authority {
        Authority { secret: self.secret, role: self.token.role }
    }
}

impl PartialEq for TokenHolder {
    fn eq(&self, other: &Self) -> bool {
        self.token == other.token && self.kind == other.kind
    }
}

/// The configuration of a project for ingestion: an immutable snapshot.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectConfig {
    /// The settings that admission reads.
    pub policy: Policy,
    /// The web origins that may send events; any if empty. See [`Self::allows_origin`].
    pub allowed_origins: Vec<String>,
    /// The number of days for which events are kept; forever if absent.
    pub retention_days: Option<u32>,
    /// The project's own quotas.
    pub quotas: OwnQuotas,
    calendar_pinned: bool,
}

impl ProjectConfig {
    fn new(tenant: &Tenant, project: &Project, rates: Arc<Rates>) -> Self {
        let organization = &tenant.organization;
        let policy = Policy {
            project: project.id,
            organization: organization.id,
            currency: project.currency,
            organization_currency: organization.currency,
            rates,
            timezone: organization.timezone,
            bots: project.bots,
            signals: project.signals_policy,
            cookieless: project.cookieless,
            server_only_revenue: project.server_only_revenue,
            no_referrers: HostList::new(project.own_domains.iter().chain(&project.ignored_referrers).cloned()),
        };
        ProjectConfig {
            policy,
            allowed_origins: project.allowed_origins.clone(),
            retention_days: project.retention_days,
            quotas: project.quotas,
            // The project's flag is never set without the organization's.
            calendar_pinned: project.events_recorded,
        }
    }

    /// Whether the timezone and the currencies of this snapshot are final, so that an event may be
    /// recorded with it. If not, call [`super::Registry::pin_calendar`] first, and use the snapshot
    /// that it returns.
    pub fn is_calendar_pinned(&self) -> bool {
        self.calendar_pinned
    }

    /// Whether a browser on a page of `origin` may send events. Not called for requests without an
    /// `Origin` header.
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.allowed_origins.is_empty() || self.allowed_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
    }
}

/// The configuration of a public key for ingestion.
#[derive(Debug, Clone)]
pub struct PublicKey {
    /// The project that the key belongs to.
    pub project: Arc<ProjectConfig>,
    /// The limiter of the key's events, if it has a limit. All snapshots of the key share it until
    /// the limit changes.
    pub limiter: Option<Arc<Limiter>>,
    /// The limiter of the events of all keys of the project, if it has a limit.
    pub project_limiter: Option<Arc<Limiter>>,
    /// Shared by all snapshots of the key.
    is_removed: Arc<AtomicBool>,
}

impl PublicKey {
    /// Whether the key was removed after it was looked up.
    pub fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }
}

/// The maps. A read locks one of many shards for a single lookup, and allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Cache {
    credentials: DashMap<SecretHash, Credential>,
    shares: DashMap<ShareId, Arc<Share>>,
    by_key: DashMap<Box<str>, PublicKey>,
    by_project: DashMap<ProjectId, Arc<ProjectConfig>>,
    changed: watch::Sender<()>,
}

impl Cache {
    /// Builds the cache of all of `state`.
    pub(super) fn of(state: &State) -> Self {
        let cache = Cache::default();
        for hash in &state.root_tokens {
            cache.put_root_token(*hash, ActorKind::Root);
        }
        for tenant in state.tenants.values() {
            cache.put_tenant(tenant);
        }
        cache
    }

    fn credential(&self, hash: &SecretHash) -> Option<Credential> {
        self.credentials.get(hash).map(|found| found.value().clone())
    }

    /// Returns the principal of a secret that is valid at `now`.
    pub(super) fn principal(&self, hash: &SecretHash, now: Instant) -> Option<Principal> {
        match self.credential(hash)? {
            Credential::Root(kind) => Some(Principal::Root(kind)),
            Credential::Token(holder) => Some(holder).filter(|holder| !holder.token.is_expired(now)).map(Principal::Token),
            Credential::Share(holder) => Some(holder).filter(|holder| !holder.share.is_expired(now)).map(Principal::Share),
            Credential::Session(session, token) if !session.is_expired(now) => match self.credential(&token)? {
                Credential::Token(holder) if !holder.token.is_expired(now) => {
                    Some(Principal::Token(TokenHolder { secret: *hash, ..holder }))
                }
                _ => None,
            },
            Credential::Session(..) => None,
        }
    }

    /// Returns the session of a secret, if it is valid at `now`.
    pub(super) fn session(&self, hash: &SecretHash, now: Instant) -> Option<Arc<BrowserSession>> {
        self.principal(hash, now)?;
        match self.credential(hash)? {
            Credential::Session(session, _) => Some(session),
            _ => None,
        }
    }

    /// Returns the share of this id.
    pub(super) fn share(&self, id: &ShareId) -> Option<Arc<Share>> {
        self.shares.get(id).map(|found| Arc::clone(found.value()))
    }

    pub(super) fn by_key(&self, key: &str) -> Option<PublicKey> {
        self.by_key.get(key).map(|found| found.value().clone())
    }

    pub(super) fn by_project(&self, project: ProjectId) -> Option<Arc<ProjectConfig>> {
        self.by_project.get(&project).map(|found| Arc::clone(found.value()))
    }

    /// Returns a receiver of the changes of the maps.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Inserts an organization's projects, keys, tokens, shares and sessions.
    fn put_tenant(&self, tenant: &Tenant) {
        self.put_projects(tenant);
        for (token, hash) in tenant.tokens.values() {
            self.put_token(&tenant.effective(token), *hash);
        }
        tenant.shares.values().for_each(|(share, hash)| self.put_share(share, *hash));
        tenant.session_entries().for_each(|entry| self.put_session(entry));
    }

    /// Rebuilds all projects of an organization.
    fn put_projects(&self, tenant: &Tenant) {
        let rates = Arc::new(tenant.organization.fx_rates.clone());
        for project in tenant.projects.values() {
            self.put(tenant, project, &rates);
        }
    }

    /// Rebuilds one project, reusing the rates of its snapshot if they have not changed.
    fn put_project(&self, tenant: &Tenant, project: &Project) {
        let kept = self.by_project(project.id).map(|former| Arc::clone(&former.policy.rates));
        let rates = kept
            .filter(|rates| **rates == tenant.organization.fx_rates)
            .unwrap_or_else(|| Arc::new(tenant.organization.fx_rates.clone()));
        self.put(tenant, project, &rates);
    }

    fn put(&self, tenant: &Tenant, project: &Project, rates: &Arc<Rates>) {
        let config = Arc::new(ProjectConfig::new(tenant, project, Arc::clone(rates)));
        self.by_project.insert(project.id, Arc::clone(&config));
        // Any remaining key has the limiter that all keys share.
        let former = project.public_keys.iter().find_map(|key| self.by_key(key)?.project_limiter);
        let project_limiter = project.rate_limit.map(|limit| limiter(former, limit));
        for key in &project.public_keys {
            let (former, is_removed) = self.by_key(key).map_or_else(Default::default, |key| (key.limiter, key.is_removed));
            let limiter = project.key_limits.get(key).map(|limit| limiter(former, *limit));
            let (project, project_limiter) = (Arc::clone(&config), project_limiter.clone());
            self.by_key.insert(key.as_str().into(), PublicKey { project, limiter, project_limiter, is_removed });
        }
    }

    pub(super) fn put_root_token(&self, hash: SecretHash, kind: ActorKind) {
        self.credentials.insert(hash, Credential::Root(kind));
    }

    fn put_token(&self, token: &Arc<ApiToken>, hash: SecretHash) {
        self.put_holder(token, hash, ActorKind::Token);
    }

    fn put_holder(&self, token: &Arc<ApiToken>, hash: SecretHash, kind: ActorKind) {
        let former = match self.credential(&hash) {
            Some(Credential::Token(former)) => former.limiter,
            _ => None,
        };
        let limiter = token.rate_limit.map(|limit| limiter(former, limit));
        self.credentials.insert(hash, Credential::Token(TokenHolder { token: Arc::clone(token), kind, limiter, secret: hash }));
    }

    fn put_share(&self, share: &Arc<Share>, hash: SecretHash) {
        self.credentials.insert(hash, Credential::Share(ShareHolder::new(share, hash)));
        self.shares.insert(share.id.clone(), Arc::clone(share));
    }

    fn put_session(&self, SessionEntry { session, hash, token }: SessionEntry) {
        self.credentials.insert(hash, Credential::Session(session, token));
    }

    /// Inserts the token of a command on the data directory of a stopped server.
    pub(super) fn put_command_token(&self, token: &Arc<ApiToken>, hash: SecretHash) {
        self.put_holder(token, hash, ActorKind::Cli);
    }

    fn remove_keys(&self, keys: &[String]) {
        for (_, key) in keys.iter().filter_map(|key| self.by_key.remove(key.as_str())) {
            key.is_removed.store(true, Ordering::Release);
        }
    }

    fn remove_secrets(&self, secrets: &[SecretHash]) {
        for hash in secrets {
            if let Some((_, Credential::Share(holder))) = self.credentials.remove(hash) {
                self.shares.remove(&holder.share.id);
            }
        }
    }

    /// Updates the cache to `state` after the change of `touched`.
    pub(super) fn follow(&self, state: &State, touched: Touched) {
        match touched {
            Touched::NewOrganization(organization, root_token) => {
                root_token.into_iter().for_each(|hash| self.put_root_token(hash, ActorKind::Root));
                if let Some(tenant) = state.tenants.get(&organization) {
                    self.put_tenant(tenant);
                }
            }
            Touched::Organization(organization) => {
                if let Some(tenant) = state.tenants.get(&organization) {
                    self.put_projects(tenant);
                }
            }
            Touched::Project(organization, project, removed_keys) => {
                if let Some(tenant) = state.tenants.get(&organization)
                    && let Some(project) = tenant.projects.get(&project)
                {
                    self.put_project(tenant, project);
                }
                self.remove_keys(&removed_keys);
            }
            Touched::Tokens(tokens) => tokens.iter().for_each(|(token, hash)| self.put_token(token, *hash)),
            Touched::Share(share, hash) => self.put_share(&share, hash),
            Touched::Session(entry, ended) => {
                self.remove_secrets(&ended);
                self.put_session(entry);
            }
            Touched::RemovedSecrets(secrets) => self.remove_secrets(&secrets),
            Touched::RemovedProject(project, secrets) => {
                self.remove_keys(&project.public_keys);
                self.remove_secrets(&secrets);
                self.by_project.remove(&project.id);
            }
            Touched::Definitions => {}
            Touched::Deletions | Touched::Erasures | Touched::Nothing => return,
        }
        self.changed.send_replace(());
    }
}

/// Returns a limiter: the former one, unless the limit changed.
fn limiter(former: Option<Arc<Limiter>>, limit: RateLimit) -> Arc<Limiter> {
    former.filter(|limiter| limiter.limit == limit).unwrap_or_else(|| Arc::new(Limiter::new(limit)))
}

/// All contents of a cache, sorted for comparison.
#[cfg(test)]
pub(super) type Listing =
    (Vec<(SecretHash, Credential)>, Vec<(String, ProjectConfig, Option<RateLimit>)>, Vec<(ProjectId, ProjectConfig)>);

#[cfg(test)]
impl Cache {
    pub(super) fn listing(&self) -> Listing {
        let mut credentials: Vec<_> = self.credentials.iter().map(|e| (*e.key(), e.value().clone())).collect();
        let limited = |key: &PublicKey| key.limiter.as_ref().map(|limiter| limiter.limit);
        let mut by_key: Vec<_> =
            self.by_key.iter().map(|e| (e.key().to_string(), ProjectConfig::clone(&e.project), limited(e.value()))).collect();
        let mut by_project: Vec<_> = self.by_project.iter().map(|e| (*e.key(), ProjectConfig::clone(e.value()))).collect();
        credentials.sort_by_key(|(hash, _)| *hash);
        by_key.sort_by(|a, b| a.0.cmp(&b.0));
        by_project.sort_by_key(|(id, _)| *id);
        (credentials, by_key, by_project)
    }
}
