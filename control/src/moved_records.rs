//! The control data as the records of an empty control log, for an installation that moves into a
//! cluster.
//!
//! The installation's own log is no substitute, since it lacks the records that are only in
//! snapshots. The same state always makes the same records, so an interrupted attempt can continue
//! after the recorded ones.

use std::collections::BTreeMap;
use std::sync::Arc;

use headcount_common::ControlError;
use headcount_domain::intake::policy::{BotPolicy, SignalsPolicy};
use headcount_domain::{Instant, OrganizationId, ProjectId};

use super::record::{self, ControlRecord, StoredSession, StoredShare, StoredToken};
use super::secret::SecretHash;
use super::state::{State, Tenant};
use super::{ApiToken, AuditEntry, AuditQuery, Organization, OwnQuotas, Project, Registry, Result, Role, TokenId};

/// The approximate number of bytes of audit entries in a record.
const AUDIT_BYTES: usize = 256 << 10;
/// A time at which no audit entry is too old, so that each attempt makes the same records.
const KEEP_ALL: Instant = Instant(0);
/// The name of a project and a token that an organization needs when it is created, and does not
/// have.
const PLACEHOLDER: &str = "placeholder";

/// A record with its audit entries.
type MovedRecord = (ControlRecord, Vec<AuditEntry>);

impl Registry {
    /// Returns the control data as encoded records, in order. Applied to an empty state, they lead
    /// to this state, with the same audit logs.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] if an audit log can't be read, or records can't express
    /// the state.
    pub fn as_records(&self) -> Result<Vec<Vec<u8>>> {
        let state = self.state().clone();
        self.records_of_state(&state)
    }

    /// Like [`Self::as_records`], for another state of the same organizations.
    pub(super) fn records_of_state(&self, state: &State) -> Result<Vec<Vec<u8>>> {
        let mut records: Vec<MovedRecord> = records_of(state)?.into_iter().map(|record| (record, Vec::new())).collect();
        for (id, tenant) in &state.tenants {
            let query = AuditQuery { limit: usize::MAX, ..AuditQuery::default() };
            let mut entries = self.audit_log(*id, &query, KEEP_ALL)?.entries;
            entries.reverse();
            for part in parts(entries)? {
                records.push((ControlRecord::OrganizationChanged(Organization::clone(&tenant.organization)), part));
            }
        }
        check(state, &records)?;
        let version = headcount_common::latest_record_version();
        Ok(records.iter().map(|(record, audit)| record::encode(version, record, audit)).collect::<Result<_, _>>()?)
    }
}

/// Divides entries into the parts for single records.
fn parts(entries: Vec<AuditEntry>) -> Result<Vec<Vec<AuditEntry>>, ControlError> {
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for entry in entries {
        bytes += serde_json::to_vec(&entry).map_err(ControlError::Unencodable)?.len();
        part.push(entry);
        if bytes >= AUDIT_BYTES {
            parts.push(std::mem::take(&mut part));
            bytes = 0;
        }
    }
    if !part.is_empty() {
        parts.push(part);
    }
    Ok(parts)
}

/// Checks that the records lead to the state.
fn check(state: &State, records: &[MovedRecord]) -> Result<(), ControlError> {
    let mut made = State::default();
    for (position, (record, _)) in (1..).zip(records) {
        made.check(record).map_err(|misfit| ControlError::BadRecord { position, message: misfit.to_owned() })?;
        made.apply(record.clone());
    }
    match made == *state {
        true => Ok(()),
        false => Err(cannot_say("the control data")),
    }
}

fn cannot_say(what: &str) -> ControlError {
    ControlError::BadRecord { position: 0, message: format!("{what} can't be expressed as records of a new control log") }
}

fn records_of(state: &State) -> Result<Vec<ControlRecord>, ControlError> {
    let mut records = Vec::new();
    let mut root_tokens = state.root_tokens.iter().copied();
    for tenant in state.tenants.values() {
        creation(state, tenant, root_tokens.next(), &mut records)?;
        deletions(tenant, &mut records);
        ledger(tenant, &mut records);
        credentials(tenant, &mut records);
        records.extend(tenant.erasures.values().cloned().map(ControlRecord::IdentityErased));
    }
    match root_tokens.next() {
        None => Ok(records),
        Some(_) => Err(cannot_say("more root tokens than organizations")),
    }
}

/// Returns the records that create an organization with its projects.
fn creation(
    state: &State,
    tenant: &Tenant,
    root_token: Option<SecretHash>,
    records: &mut Vec<ControlRecord>,
) -> Result<(), ControlError> {
    let organization = Organization::clone(&tenant.organization);
    let (id, created_at) = (organization.id, organization.created_at);
    let mut projects = tenant.projects.values().map(|project| Project::clone(project));
    let first = projects.next();
    let has_project = first.is_some();
    let project = first.unwrap_or_else(|| placeholder_project(unused_id(state, &organization), &organization));
    let placeholder = project.id;
    let token = tenant.tokens.values().find(|(token, _)| token.member.is_none()).map(stored);
    let revoked = match &token {
        Some(_) => None,
        None => Some(placeholder_token(id)?),
    };
    let token = token.or_else(|| {
        let hash = SecretHash::of_nothing();
        let token = revoked.clone().map(|token_id| bare_token(token_id, id, created_at));
        token.map(|token| StoredToken { token, hash })
    });
    let token = token.ok_or_else(|| cannot_say("an organization without tokens"))?;
    records.push(ControlRecord::OrganizationCreated { organization, project, token, root_token });
    records.extend(revoked.map(|token_id| ControlRecord::TokenRevoked { organization: id, token_id }));
    if !has_project {
        records.push(ControlRecord::ProjectDeleted { organization: id, project: placeholder });
    }
    records.extend(projects.map(ControlRecord::ProjectCreated));
    Ok(())
}

/// Adds the projects in deletion.
fn deletions(tenant: &Tenant, records: &mut Vec<ControlRecord>) {
    for id in &tenant.deletions {
        let project = Project { events_recorded: true, ..placeholder_project(*id, &tenant.organization) };
        let organization = project.organization;
        records.extend([ControlRecord::ProjectCreated(project), ControlRecord::ProjectDeleted { organization, project: *id }]);
    }
}

/// Adds the ledger of Actions, and the runs that build company profiles.
fn ledger(tenant: &Tenant, records: &mut Vec<ControlRecord>) {
    for entry in &tenant.actions {
        let organization = Organization { actions_balance: entry.balance, ..Organization::clone(&tenant.organization) };
        records.push(ControlRecord::ActionsChanged { organization, entry: entry.clone() });
    }
    if !tenant.actions.is_empty() {
        records.push(ControlRecord::OrganizationChanged(Organization::clone(&tenant.organization)));
    }
    let run = |run: &_| ControlRecord::BuildRunChanged { run: Clone::clone(run), payment: None };
    records.extend(tenant.builds.values().map(run));
}

/// Adds members, tokens, shares, definitions and sessions.
fn credentials(tenant: &Tenant, records: &mut Vec<ControlRecord>) {
    let members = tenant.members.values().map(|member| ControlRecord::MemberCreated(Clone::clone(&**member)));
    records.extend(members);
    records.extend(tenant.tokens.values().map(stored).map(ControlRecord::TokenCreated));
    records.extend(tenant.shares.values().map(StoredShare::from).map(ControlRecord::ShareCreated));
    records.extend(tenant.definitions.values().map(|definition| ControlRecord::DefinitionPut(Clone::clone(&**definition))));
    let mut sessions: Vec<StoredSession> = tenant.sessions.values().map(StoredSession::from).collect();
    sessions.sort_by(|a, b| (a.session.created_at, &a.session.id).cmp(&(b.session.created_at, &b.session.id)));
    records.extend(sessions.into_iter().map(ControlRecord::SessionBegun));
}

fn stored((token, hash): &(Arc<ApiToken>, SecretHash)) -> StoredToken {
    StoredToken { token: ApiToken::clone(token), hash: *hash }
}

/// Returns an unused project id.
fn unused_id(state: &State, of: &Organization) -> ProjectId {
    let mut id = ProjectId(of.id.0);
    while state.has_project(id) {
        id = ProjectId(id.0.wrapping_add(1));
    }
    id
}

/// Returns a project that is deleted directly after it is created.
fn placeholder_project(id: ProjectId, of: &Organization) -> Project {
    Project {
        id,
        organization: of.id,
        name: PLACEHOLDER.to_owned(),
        currency: of.currency,
        allowed_origins: Vec::new(),
        cookieless: false,
        bots: BotPolicy::default(),
        signals_policy: SignalsPolicy::default(),
        server_only_revenue: false,
        retention_days: None,
        rate_limit: None,
        quotas: OwnQuotas::default(),
        own_domains: Vec::new(),
        ignored_referrers: Vec::new(),
        public_keys: Vec::new(),
        key_limits: BTreeMap::new(),
        created_at: of.created_at,
        events_recorded: false,
    }
}

/// Returns the id of a token that is revoked directly after its organization is created.
fn placeholder_token(organization: OrganizationId) -> Result<TokenId, ControlError> {
    let id = TokenId::try_from(format!("{}{:016x}", TokenId::PREFIX, organization.0));
    id.map_err(|error| cannot_say(&error.to_string()))
}

fn bare_token(token_id: TokenId, organization: OrganizationId, created_at: Instant) -> ApiToken {
    ApiToken {
        token_id,
        organization,
        project: None,
        name: PLACEHOLDER.to_owned(),
        role: Role::Member,
        scopes: Vec::new(),
        created_at,
        expires_at: Some(created_at),
        member: None,
        rate_limit: None,
    }
}
