//! The control data in memory, as built from the control log. Pure: no files, no locks, no clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use headcount_domain::{OrganizationId, ProjectId};

use super::record::{ActionsPayment, ControlRecord, StoredSession, StoredShare, StoredToken};
use super::secret::SecretHash;
use super::touched::{SessionEntry, Touched};
use super::{
    ActionEntry, ApiToken, BrowserSession, BuildRun, BuildRunId, Definition, DefinitionId, Erasure, MAX_ACTION_ENTRIES,
    MAX_BUILD_RUNS, MAX_SESSIONS, MAX_SESSIONS_OF_TOKEN, Member, MemberId, Organization, Project, SessionId, Share, ShareId,
    TokenId,
};

/// The state that the control log describes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct State {
    pub(super) tenants: BTreeMap<OrganizationId, Tenant>,
    pub(super) root_tokens: BTreeSet<SecretHash>,
}

/// An organization and the projects and tokens that it owns. All lookups here start at the
/// organization, which isolates organizations from each other.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tenant {
    pub(super) organization: Arc<Organization>,
    pub(super) projects: BTreeMap<ProjectId, Arc<Project>>,
    pub(super) tokens: BTreeMap<TokenId, (Arc<ApiToken>, SecretHash)>,
    pub(super) members: BTreeMap<MemberId, Arc<Member>>,
    /// The deleted projects whose data may not yet be removed.
    pub(super) deletions: BTreeSet<ProjectId>,
    /// The erasures by number, including finished ones. If erasures were given up, only the last
    /// one of them.
    pub(super) erasures: BTreeMap<u64, Erasure>,
    /// The entries of the Actions ledger, oldest first.
    pub(super) actions: VecDeque<ActionEntry>,
    /// The runs that build company profiles, including those that ended in the last weeks.
    pub(super) builds: BTreeMap<BuildRunId, BuildRun>,
    pub(super) shares: BTreeMap<ShareId, (Arc<Share>, SecretHash)>,
    /// The segments, goals, funnels and annotations of projects.
    pub(super) definitions: BTreeMap<DefinitionId, Arc<Definition>>,
    /// The sessions of existing tokens.
    pub(super) sessions: BTreeMap<SessionId, (Arc<BrowserSession>, SecretHash)>,
}

/// The reason why a record contradicts the records before it.
pub(super) type Misfit = &'static str;

impl State {
    /// Checks that [`Self::apply`] can apply `record` to this state.
    pub(super) fn check(&self, record: &ControlRecord) -> Result<(), Misfit> {
        match record {
            ControlRecord::OrganizationCreated { organization, project, token, .. } => {
                let id = organization.id;
                if self.tenants.contains_key(&id) {
                    return Err("the organization exists already");
                }
                if project.organization != id || token.token.organization != id {
                    return Err("the project or the token belongs to another organization");
                }
                self.check_new_project(project)
            }
            ControlRecord::OrganizationChanged(organization) => self.tenant(organization.id).map(drop),
            ControlRecord::ProjectCreated(project) => {
                self.tenant(project.organization)?;
                self.check_new_project(project)
            }
            ControlRecord::ProjectChanged(project) => self.check_project(project.organization, project.id),
            ControlRecord::TokenCreated(StoredToken { token, .. }) => {
                let members = &self.tenant(token.organization)?.members;
                let is_there = |member| members.contains_key(member);
                if token.member.as_ref().is_none_or(is_there) { Ok(()) } else { Err(NO_MEMBER) }
            }
            ControlRecord::MemberCreated(member) => {
                if self.tenant(member.organization)?.members.contains_key(&member.id) {
                    return Err("the member exists already");
                }
                Ok(())
            }
            ControlRecord::MemberChanged(Member { organization, id: member, .. })
            | ControlRecord::MemberRemoved { organization, member } => {
                if self.tenant(*organization)?.members.contains_key(member) { Ok(()) } else { Err(NO_MEMBER) }
            }
            ControlRecord::TokenChanged(ApiToken { organization, token_id, .. })
            | ControlRecord::TokenRevoked { organization, token_id } => {
                if self.tenant(*organization)?.tokens.contains_key(token_id) { Ok(()) } else { Err("no such token") }
            }
            ControlRecord::ShareCreated(_)
            | ControlRecord::ShareRevoked { .. }
            | ControlRecord::SessionBegun(_)
            | ControlRecord::SessionEnded { .. } => self.check_browser(record),
            ControlRecord::EventsRecorded { organization, project } | ControlRecord::ProjectDeleted { organization, project } => {
                self.check_project(*organization, *project)
            }
            ControlRecord::DeletionFinished { organization, project } => {
                if self.tenant(*organization)?.deletions.contains(project) { Ok(()) } else { Err("no such deletion") }
            }
            ControlRecord::IdentityErased(erasure) => self.tenant(erasure.organization).map(drop),
            ControlRecord::ErasureProgressed { organization, .. } => self.tenant(*organization).map(drop),
            ControlRecord::ActionsChanged { organization, entry } => self.check_payment(organization, entry),
            ControlRecord::BuildRunChanged { run, payment } => {
                self.tenant(run.organization)?;
                let Some(ActionsPayment { organization, entry }) = payment else { return Ok(()) };
                if organization.id != run.organization {
                    return Err("another organization pays for the build");
                }
                self.check_payment(organization, entry)
            }
            ControlRecord::DocumentChanging { organization } => self.tenant(*organization).map(drop),
            ControlRecord::DefinitionPut(definition) => match definition.project {
                Some(project) => self.check_project(definition.organization, project),
                None => self.tenant(definition.organization).map(drop),
            },
            ControlRecord::DefinitionRemoved { organization, definition } => {
                let is_there = self.tenant(*organization)?.definitions.contains_key(definition);
                if is_there { Ok(()) } else { Err("no such definition") }
            }
        }
    }

    /// Applies a record that passed [`Self::check`], and returns what changed. A record that would
    /// not pass is ignored.
    pub(super) fn apply(&mut self, record: ControlRecord) -> Option<Touched> {
        match record {
            ControlRecord::OrganizationCreated { organization, project, token, root_token } => {
                let id = organization.id;
                let mut tenant = Tenant::new(organization);
                tenant.put_project(project);
                tenant.put_token(token);
                self.tenants.insert(id, tenant);
                self.root_tokens.extend(root_token);
                Some(Touched::NewOrganization(id, root_token))
            }
            ControlRecord::OrganizationChanged(organization) => {
                let id = organization.id;
                self.tenants.get_mut(&id)?.organization = Arc::new(organization);
                Some(Touched::Organization(id))
            }
            ControlRecord::ProjectCreated(project) | ControlRecord::ProjectChanged(project) => {
                let (organization, id) = (project.organization, project.id);
                let removed_keys = self.tenants.get_mut(&organization)?.put_project(project);
                Some(Touched::Project(organization, id, removed_keys))
            }
            record @ (ControlRecord::TokenCreated(_)
            | ControlRecord::TokenChanged(_)
            | ControlRecord::TokenRevoked { .. }
            | ControlRecord::MemberCreated(_)
            | ControlRecord::MemberChanged(_)
            | ControlRecord::MemberRemoved { .. }
            | ControlRecord::ShareCreated(_)
            | ControlRecord::ShareRevoked { .. }
            | ControlRecord::SessionBegun(_)
            | ControlRecord::SessionEnded { .. }) => self.apply_to_credentials(record),
            ControlRecord::EventsRecorded { organization, project } => {
                self.tenants.get_mut(&organization)?.mark_events_recorded(project);
                Some(Touched::Project(organization, project, Vec::new()))
            }
            ControlRecord::ProjectDeleted { organization, project } => {
                let (project, secrets) = self.tenants.get_mut(&organization)?.delete_project(project)?;
                Some(Touched::RemovedProject(project, secrets))
            }
            ControlRecord::DeletionFinished { organization, project } => {
                self.tenants.get_mut(&organization)?.deletions.remove(&project);
                Some(Touched::Deletions)
            }
            ControlRecord::IdentityErased(erasure) => {
                self.tenants.get_mut(&erasure.organization)?.put_erasure(erasure);
                Some(Touched::Erasures)
            }
            ControlRecord::ErasureProgressed { organization, project, numbers, stage } => {
                let erasures = &mut self.tenants.get_mut(&organization)?.erasures;
                for number in numbers {
                    erasures.get_mut(&number)?.reach(project, stage);
                }
                Some(Touched::Erasures)
            }
            ControlRecord::ActionsChanged { organization, entry } => {
                Some(Touched::Organization(self.tenants.get_mut(&organization.id)?.pay(organization, entry)))
            }
            ControlRecord::BuildRunChanged { run, payment } => {
                Some(self.tenants.get_mut(&run.organization)?.put_build(run, payment))
            }
            ControlRecord::DocumentChanging { .. } => Some(Touched::Nothing),
            record @ (ControlRecord::DefinitionPut(_) | ControlRecord::DefinitionRemoved { .. }) => {
                self.apply_to_definitions(record)
            }
        }
    }

    /// Applies records about definitions, for [`Self::apply`].
    fn apply_to_definitions(&mut self, record: ControlRecord) -> Option<Touched> {
        let definitions = &mut self.tenants.get_mut(&record.organization())?.definitions;
        match record {
            ControlRecord::DefinitionPut(definition) => drop(definitions.insert(definition.id.clone(), Arc::new(definition))),
            ControlRecord::DefinitionRemoved { definition, .. } => drop(definitions.remove(&definition)),
            _ => return None,
        }
        Some(Touched::Definitions)
    }

    /// Checks records about shares and sessions, for [`Self::check`].
    fn check_browser(&self, record: &ControlRecord) -> Result<(), Misfit> {
        match record {
            ControlRecord::ShareCreated(StoredShare { share, .. }) => self.check_project(share.organization, share.project),
            ControlRecord::ShareRevoked { organization, share } => {
                if self.tenant(*organization)?.shares.contains_key(share) {
                    Ok(())
                } else {
                    Err("no such share")
                }
            }
            ControlRecord::SessionBegun(StoredSession { session, .. }) => {
                let is_there = self.tenant(session.organization)?.tokens.contains_key(&session.token);
                if is_there { Ok(()) } else { Err("no such token") }
            }
            ControlRecord::SessionEnded { organization, session } => {
                if self.tenant(*organization)?.sessions.contains_key(session) { Ok(()) } else { Err("no such session") }
            }
            _ => Err("not a share and not a session"),
        }
    }

    /// Applies records about tokens, their holders, shares and sessions, for [`Self::apply`].
    fn apply_to_credentials(&mut self, record: ControlRecord) -> Option<Touched> {
        match record {
            ControlRecord::TokenCreated(token) => {
                let tenant = self.tenants.get_mut(&token.token.organization)?;
                let (token, hash) = tenant.put_token(token);
                Some(Touched::Tokens(vec![(tenant.effective(&token), hash)]))
            }
            ControlRecord::TokenChanged(token) => {
                let tenant = self.tenants.get_mut(&token.organization)?;
                let hash = tenant.tokens.get(&token.token_id)?.1;
                let (token, hash) = tenant.put_token(StoredToken { token, hash });
                Some(Touched::Tokens(vec![(tenant.effective(&token), hash)]))
            }
            ControlRecord::TokenRevoked { organization, token_id } => {
                let tenant = self.tenants.get_mut(&organization)?;
                Some(Touched::RemovedSecrets(tenant.take_tokens(|token| token.token_id == token_id)))
            }
            ControlRecord::ShareCreated(StoredShare { share, hash }) => {
                let share = Arc::new(share);
                let tenant = self.tenants.get_mut(&share.organization)?;
                tenant.shares.insert(share.id.clone(), (Arc::clone(&share), hash));
                Some(Touched::Share(share, hash))
            }
            ControlRecord::ShareRevoked { organization, share } => {
                let (_, hash) = self.tenants.get_mut(&organization)?.shares.remove(&share)?;
                Some(Touched::RemovedSecrets(vec![hash]))
            }
            ControlRecord::SessionBegun(stored) => {
                let (entry, ended) = self.tenants.get_mut(&stored.session.organization)?.put_session(stored)?;
                Some(Touched::Session(entry, ended))
            }
            ControlRecord::SessionEnded { organization, session } => {
                let (_, hash) = self.tenants.get_mut(&organization)?.sessions.remove(&session)?;
                Some(Touched::RemovedSecrets(vec![hash]))
            }
            ControlRecord::MemberCreated(member) | ControlRecord::MemberChanged(member) => {
                let tenant = self.tenants.get_mut(&member.organization)?;
                let id = member.id.clone();
                tenant.members.insert(id.clone(), Arc::new(member));
                Some(Touched::Tokens(tenant.tokens_of(&id)))
            }
            ControlRecord::MemberRemoved { organization, member } => {
                Some(Touched::RemovedSecrets(self.tenants.get_mut(&organization)?.remove_member(&member)?))
            }
            _ => None,
        }
    }

    /// Whether any organization has a project with this id, or is deleting one.
    pub(super) fn has_project(&self, id: ProjectId) -> bool {
        self.tenants.values().any(|tenant| tenant.projects.contains_key(&id) || tenant.deletions.contains(&id))
    }

    /// The deleted projects whose data may not yet be removed, with their organizations.
    pub(super) fn deletions(&self) -> impl Iterator<Item = (OrganizationId, ProjectId)> {
        self.tenants.iter().flat_map(|(id, tenant)| tenant.deletions.iter().map(|project| (*id, *project)))
    }

    /// All erasures.
    pub(super) fn erasures(&self) -> impl Iterator<Item = &Erasure> {
        self.tenants.values().flat_map(|tenant| tenant.erasures.values())
    }

    /// All runs that build company profiles.
    pub(super) fn builds(&self) -> impl Iterator<Item = &BuildRun> {
        self.tenants.values().flat_map(|tenant| tenant.builds.values())
    }

    fn check_payment(&self, organization: &Organization, entry: &ActionEntry) -> Result<(), Misfit> {
        self.tenant(organization.id)?;
        let is_equal = organization.actions_balance == entry.balance;
        if is_equal { Ok(()) } else { Err("the ledger has another balance than the organization") }
    }

    fn tenant(&self, id: OrganizationId) -> Result<&Tenant, Misfit> {
        self.tenants.get(&id).ok_or(NO_ORGANIZATION)
    }

    fn check_project(&self, organization: OrganizationId, id: ProjectId) -> Result<(), Misfit> {
        if self.tenant(organization)?.projects.contains_key(&id) { Ok(()) } else { Err("no such project") }
    }

    fn check_new_project(&self, project: &Project) -> Result<(), Misfit> {
        if self.has_project(project.id) { Err("the project exists already") } else { Ok(()) }
    }
}

pub(super) const NO_ORGANIZATION: Misfit = "no such organization";
const NO_MEMBER: Misfit = "no such member";

impl Tenant {
    pub(super) fn new(organization: Organization) -> Self {
        Tenant {
            organization: Arc::new(organization),
            projects: BTreeMap::new(),
            tokens: BTreeMap::new(),
            members: BTreeMap::new(),
            deletions: BTreeSet::new(),
            erasures: BTreeMap::new(),
            actions: VecDeque::new(),
            builds: BTreeMap::new(),
            shares: BTreeMap::new(),
            definitions: BTreeMap::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// Replaces the organization with its new balance, and adds the ledger entry.
    fn pay(&mut self, organization: Organization, entry: ActionEntry) -> OrganizationId {
        let id = organization.id;
        self.organization = Arc::new(organization);
        self.add_action(entry);
        id
    }

    /// Inserts or replaces a run with its payment or refund. Beyond the limit, the runs that ended
    /// first are removed.
    fn put_build(&mut self, run: BuildRun, payment: Option<ActionsPayment>) -> Touched {
        self.builds.insert(run.id.clone(), run);
        while self.builds.len() > MAX_BUILD_RUNS {
            let ended = self.builds.values().filter_map(|run| Some((run.outcome.as_ref()?.at, run.id.clone()))).min();
            let Some((_, first)) = ended else { break };
            self.builds.remove(&first);
        }
        match payment {
            Some(ActionsPayment { organization, entry }) => Touched::Organization(self.pay(organization, entry)),
            None => Touched::Nothing,
        }
    }

    /// Adds an entry to the ledger. Beyond the limit, the oldest entry is removed.
    pub(super) fn add_action(&mut self, entry: ActionEntry) {
        self.actions.push_back(entry);
        if self.actions.len() > MAX_ACTION_ENTRIES {
            self.actions.pop_front();
        }
    }

    /// Inserts or replaces the project, and returns the public keys that were removed from it.
    pub(super) fn put_project(&mut self, project: Project) -> Vec<String> {
        let project = Arc::new(project);
        let Some(former) = self.projects.insert(project.id, Arc::clone(&project)) else { return Vec::new() };
        former.public_keys.iter().filter(|key| !project.public_keys.contains(key)).cloned().collect()
    }

    pub(super) fn put_token(&mut self, StoredToken { token, hash }: StoredToken) -> (Arc<ApiToken>, SecretHash) {
        let stored = (Arc::new(token), hash);
        self.tokens.insert(stored.0.token_id.clone(), stored.clone());
        stored
    }

    /// Removes a project with its tokens, shares and definitions. Returns the project, and the
    /// hashes of the secrets that ended.
    fn delete_project(&mut self, id: ProjectId) -> Option<(Arc<Project>, Vec<SecretHash>)> {
        let project = self.projects.remove(&id)?;
        // A floor may have been recorded, too.
        if project.events_recorded || project.retention_days.is_some() {
            self.deletions.insert(id);
        }
        let mut hashes = self.take_tokens(|token| token.project == Some(id));
        hashes.extend(take(&mut self.shares, |share| share.project == id));
        self.definitions.retain(|_, definition| definition.project != Some(id));
        Some((project, hashes))
    }

    /// Removes a member and its tokens. Returns the hashes of the secrets that ended.
    fn remove_member(&mut self, member: &MemberId) -> Option<Vec<SecretHash>> {
        self.members.remove(member)?;
        Some(self.take_tokens(|token| token.member.as_ref() == Some(member)))
    }

    /// Removes the tokens that `is_gone` selects, and their sessions. Returns the hashes of all of
    /// them.
    fn take_tokens(&mut self, is_gone: impl Fn(&ApiToken) -> bool) -> Vec<SecretHash> {
        let mut hashes = take(&mut self.tokens, is_gone);
        let tokens = &self.tokens;
        hashes.extend(take(&mut self.sessions, |session| !tokens.contains_key(&session.token)));
        hashes
    }

    /// Adds a session. Beyond the limits, the oldest sessions end. Returns the session as the cache
    /// stores it, and the hashes of the ended ones.
    fn put_session(&mut self, StoredSession { session, hash }: StoredSession) -> Option<(SessionEntry, Vec<SecretHash>)> {
        let (session, mut ended) = (Arc::new(session), Vec::new());
        let of_token = |other: &BrowserSession| other.token == session.token;
        let (limit_of_token, limit) = (MAX_SESSIONS_OF_TOKEN - 1, MAX_SESSIONS - 1);
        let oldest = self.oldest_beyond(limit_of_token, of_token).into_iter().chain(self.oldest_beyond(limit, |_| true));
        for id in oldest.collect::<BTreeSet<_>>() {
            ended.extend(self.sessions.remove(&id).map(|(_, hash)| hash));
        }
        let entry = SessionEntry { token: self.tokens.get(&session.token)?.1, session: Arc::clone(&session), hash };
        self.sessions.insert(session.id.clone(), (session, hash));
        Some((entry, ended))
    }

    /// Returns the ids of the oldest of the sessions that `counts` selects, as many as there are
    /// beyond the limit.
    fn oldest_beyond(&self, limit: usize, counts: impl Fn(&BrowserSession) -> bool) -> Vec<SessionId> {
        let mut sessions: Vec<_> = self.sessions.values().map(|(session, _)| session).filter(|session| counts(session)).collect();
        sessions.sort_by_key(|session| (session.created_at, &session.id));
        let beyond = sessions.len().saturating_sub(limit);
        sessions.into_iter().take(beyond).map(|session| session.id.clone()).collect()
    }

    /// The sessions as the cache stores them.
    pub(super) fn session_entries(&self) -> impl Iterator<Item = SessionEntry> {
        let entry = |(session, hash): &(Arc<BrowserSession>, SecretHash)| {
            let token = self.tokens.get(&session.token)?.1;
            Some(SessionEntry { session: Arc::clone(session), hash: *hash, token })
        };
        self.sessions.values().filter_map(entry)
    }

    /// Returns the tokens of a member, as [`Self::effective`] shows them.
    fn tokens_of(&self, member: &MemberId) -> Vec<(Arc<ApiToken>, SecretHash)> {
        let tokens = self.tokens.values().filter(|(token, _)| token.member.as_ref() == Some(member));
        tokens.map(|(token, hash)| (self.effective(token), *hash)).collect()
    }

    /// Returns a token with its effective role: the lower of its own and its member's.
    pub(super) fn effective(&self, token: &Arc<ApiToken>) -> Arc<ApiToken> {
        match token.member.as_ref().and_then(|member| self.members.get(member)) {
            Some(member) if member.role > token.role => Arc::new(ApiToken { role: member.role, ..ApiToken::clone(token) }),
            _ => Arc::clone(token),
        }
    }

    /// Inserts an erasure, or replaces its value. An erasure that was given up is empty and is
    /// removed, but the last one only when there is a later one, so that no number is used twice.
    pub(super) fn put_erasure(&mut self, erasure: Erasure) {
        let last = self.erasures.last_key_value().map(|(number, last)| (*number, last.is_given_up()));
        match last {
            Some((last, _)) if erasure.number < last && erasure.is_given_up() => {
                self.erasures.remove(&erasure.number);
                return;
            }
            Some((last, true)) if erasure.number > last => drop(self.erasures.remove(&last)),
            _ => {}
        }
        self.erasures.insert(erasure.number, erasure);
    }

    fn mark_events_recorded(&mut self, project: ProjectId) {
        Arc::make_mut(&mut self.organization).events_recorded = true;
        if let Some(project) = self.projects.get_mut(&project) {
            Arc::make_mut(project).events_recorded = true;
        }
    }
}

/// Removes the items that `is_gone` selects, and returns the hashes of their secrets.
fn take<K: Ord, V>(map: &mut BTreeMap<K, (Arc<V>, SecretHash)>, is_gone: impl Fn(&V) -> bool) -> Vec<SecretHash> {
    let mut hashes = Vec::new();
    map.retain(|_, (value, hash)| {
        let is_gone = is_gone(value);
        hashes.extend(is_gone.then_some(*hash));
        !is_gone
    });
    hashes
}
