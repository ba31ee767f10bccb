//! The changes that a control record makes, field by field, as the API shows the fields. Secrets
//! and their hashes are left out.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::audit_entry::Audited;
use crate::record::{ActionsPayment, ControlRecord, StoredShare, StoredToken};
use crate::state::{State, Tenant};
use crate::{
    ApiToken, AuditAction, AuditTarget, Definition, DefinitionId, DefinitionKind, FieldChange, Member, Organization, Project,
    RateLimit, Share, TargetType,
};

/// The maximum size of a field of a definition that an entry shows.
const MAX_SHOWN_BYTES: usize = 512;

type Fields = BTreeMap<&'static str, Value>;

/// Returns the changes that `record` will make to `state`. A record may make several: removing a
/// member also removes the member's tokens.
pub(crate) fn changes_of(state: &State, record: &ControlRecord) -> Vec<Audited> {
    let tenant = state.tenants.get(&record.organization());
    match (record, tenant) {
        (ControlRecord::OrganizationCreated { organization, project, token, .. }, _) => vec![
            of_organization(AuditAction::OrganizationCreated, None, organization),
            created_project(project),
            of_token(AuditAction::ApiTokenCreated, None, Some(&token.token)),
        ],
        (ControlRecord::OrganizationChanged(changed), Some(tenant)) => {
            vec![of_organization(AuditAction::OrganizationUpdated, Some(&tenant.organization), changed)]
        }
        (
            ControlRecord::ActionsChanged { organization: changed, .. }
            | ControlRecord::BuildRunChanged { payment: Some(ActionsPayment { organization: changed, .. }), .. },
            Some(tenant),
        ) => {
            vec![of_organization(AuditAction::OrganizationUpdated, Some(&tenant.organization), changed)]
        }
        (ControlRecord::ProjectCreated(project), _) => vec![created_project(project)],
        (ControlRecord::ProjectChanged(changed), Some(tenant)) => {
            tenant.projects.get(&changed.id).map(|current| changed_project(current, changed)).unwrap_or_default()
        }
        (ControlRecord::TokenCreated(StoredToken { token, .. }), _) => {
            vec![of_token(AuditAction::ApiTokenCreated, None, Some(token))]
        }
        (ControlRecord::TokenChanged(changed), Some(tenant)) => {
            let current = tenant.tokens.get(&changed.token_id);
            vec![of_token(AuditAction::ApiTokenUpdated, current.map(|(current, _)| &**current), Some(changed))]
        }
        (ControlRecord::TokenRevoked { token_id, .. }, Some(tenant)) => revoked(tenant, |token| token.token_id == *token_id),
        (ControlRecord::ProjectDeleted { project: id, .. }, Some(tenant)) => {
            let project = tenant.projects.get(id).map(|project| deleted_project(project));
            let shares = revoked_shares(tenant, |share| share.project == *id);
            project.into_iter().chain(revoked(tenant, |token| token.project == Some(*id))).chain(shares).collect()
        }
        (ControlRecord::ShareCreated(StoredShare { share, .. }), _) => {
            vec![of_share(AuditAction::ShareCreated, None, Some(share))]
        }
        (ControlRecord::ShareRevoked { share: id, .. }, Some(tenant)) => revoked_shares(tenant, |share| share.id == *id),
        (ControlRecord::MemberCreated(member), _) => vec![of_member(AuditAction::MemberCreated, None, Some(member))],
        (ControlRecord::MemberChanged(changed), Some(tenant)) => {
            let current = tenant.members.get(&changed.id);
            vec![of_member(AuditAction::MemberUpdated, current.map(|current| &**current), Some(changed))]
        }
        (ControlRecord::MemberRemoved { member: id, .. }, Some(tenant)) => {
            let member = tenant.members.get(id).map(|member| of_member(AuditAction::MemberRemoved, Some(member), None));
            member.into_iter().chain(revoked(tenant, |token| token.member.as_ref() == Some(id))).collect()
        }
        (ControlRecord::DefinitionPut(changed), Some(tenant)) => of_definitions(tenant, &changed.id, Some(changed)),
        (ControlRecord::DefinitionRemoved { definition, .. }, Some(tenant)) => of_definitions(tenant, definition, None),
        // Internal records of the program, changes that must not be named, and changes that fail
        // the check of records.
        (
            ControlRecord::EventsRecorded { .. }
            | ControlRecord::DeletionFinished { .. }
            | ControlRecord::IdentityErased(_)
            | ControlRecord::ErasureProgressed { .. }
            | ControlRecord::BuildRunChanged { .. }
            | ControlRecord::SessionBegun(_)
            | ControlRecord::SessionEnded { .. }
            | ControlRecord::DocumentChanging { .. },
            _,
        )
        | (_, None) => Vec::new(),
    }
}

/// Returns the fields that differ. The fields of a new or removed item differ from no fields.
pub fn field_changes(before: Option<Fields>, after: Option<Fields>) -> BTreeMap<String, FieldChange> {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let names: BTreeSet<&str> = before.keys().chain(after.keys()).copied().collect();
    let value = |fields: &Fields, name| fields.get(name).cloned().unwrap_or(Value::Null);
    let change = |name| FieldChange { from: value(&before, name), to: value(&after, name) };
    let changes = names.into_iter().map(|name| (name.to_owned(), change(name)));
    changes.filter(|(_, change)| change.from != change.to).collect()
}

fn audited(action: AuditAction, (kind, id): (TargetType, String), before: Option<Fields>, after: Option<Fields>) -> Audited {
    Audited { action, target: AuditTarget { kind, id }, changes: field_changes(before, after) }
}

/// Returns a value as JSON. Encoding never fails here; null stands for a failure.
fn value(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Returns a field of a definition. Of a long one the digest: entries must not push out others. The
/// same of a secret.
fn shown_field(name: &str, json: &str) -> Value {
    match name != "secret" && json.len() <= MAX_SHOWN_BYTES {
        true => serde_json::from_str(json).unwrap_or_default(),
        false => json!(format!("{} bytes of JSON, SHA-256 {:x}", json.len(), Sha256::digest(json))),
    }
}

/// Returns the change of a definition to its new value, if it is not gone already.
fn of_definitions(tenant: &Tenant, id: &DefinitionId, after: Option<&Definition>) -> Vec<Audited> {
    let before = tenant.definitions.get(id).map(|before| &**before);
    if before.or(after).is_some() { vec![of_definition(before, after)] } else { Vec::new() }
}

fn of_definition(before: Option<&Definition>, after: Option<&Definition>) -> Audited {
    let action = match (before, after) {
        (None, _) => AuditAction::DefinitionCreated,
        (Some(_), Some(_)) => AuditAction::DefinitionUpdated,
        (Some(_), None) => AuditAction::DefinitionDeleted,
    };
    let id = after.or(before).map(|definition| &definition.id);
    let kind = match id.map(DefinitionId::kind) {
        None | Some(DefinitionKind::Segment) => TargetType::Segment,
        Some(DefinitionKind::Goal) => TargetType::Goal,
        Some(DefinitionKind::Funnel) => TargetType::Funnel,
        Some(DefinitionKind::Annotation) => TargetType::Annotation,
        Some(DefinitionKind::Channel) => TargetType::Channel,
        Some(DefinitionKind::Alert) => TargetType::Alert,
    };
    let fields = |definition: &Definition| {
        let json = |(name, json): (&String, &String)| (name.clone(), shown_field(name, json));
        let others: Map<String, Value> = definition.fields.iter().map(json).collect();
        let project = json!(definition.project.map(|project| project.to_string()));
        Fields::from([("project_id", project), ("name", json!(definition.name)), ("fields", others.into())])
    };
    let id = id.map(ToString::to_string).unwrap_or_default();
    audited(action, (kind, id), before.map(fields), after.map(fields))
}

fn of_organization(action: AuditAction, before: Option<&Organization>, after: &Organization) -> Audited {
    let target = (TargetType::Organization, after.id.to_string());
    audited(action, target, before.map(organization_fields), Some(organization_fields(after)))
}

fn organization_fields(organization: &Organization) -> Fields {
    // A rate with more digits than JSON readers keep is shown as text.
    let rate = |text: String| match text.parse::<f64>() {
        Ok(number) if number.to_string() == text => number.into(),
        _ => Value::String(text),
    };
    let rates: Map<String, Value> =
        organization.fx_rates.iter().map(|(currency, worth)| (currency.to_string(), rate(worth.to_string()))).collect();
    Fields::from([
        ("name", json!(organization.name)),
        ("timezone", json!(organization.timezone.name())),
        ("currency", json!(organization.currency.to_string())),
        ("fx_rates", rates.into()),
        ("capabilities", value(&organization.capabilities)),
        ("actions_balance", json!(organization.actions_balance)),
    ])
}

fn project_target(project: &Project) -> (TargetType, String) {
    (TargetType::Project, project.id.to_string())
}

fn created_project(project: &Project) -> Audited {
    let mut fields = project_fields(project);
    fields.insert("public_keys", json!(project.public_keys));
    audited(AuditAction::ProjectCreated, project_target(project), None, Some(fields))
}

fn deleted_project(project: &Project) -> Audited {
    let mut fields = project_fields(project);
    fields.insert("public_keys", json!(project.public_keys));
    audited(AuditAction::ProjectDeleted, project_target(project), Some(fields), None)
}

/// The changes of a project's settings, and of its keys.
fn changed_project(before: &Project, after: &Project) -> Vec<Audited> {
    let settings =
        audited(AuditAction::ProjectUpdated, project_target(after), Some(project_fields(before)), Some(project_fields(after)));
    let keys: BTreeSet<&String> = before.public_keys.iter().chain(&after.public_keys).collect();
    let keys = keys.into_iter().filter_map(|key| changed_key(before, after, key));
    Some(settings).filter(|settings| !settings.changes.is_empty()).into_iter().chain(keys).collect()
}

fn changed_key(before: &Project, after: &Project, key: &String) -> Option<Audited> {
    let (was, is) = (before.public_keys.contains(key), after.public_keys.contains(key));
    let action = match (was, is) {
        (false, _) => AuditAction::PublicKeyCreated,
        (_, false) => AuditAction::PublicKeyDeleted,
        (true, true) if before.key_limits.get(key) != after.key_limits.get(key) => AuditAction::PublicKeyUpdated,
        (true, true) => return None,
    };
    let fields = |project: &Project| {
        let mut fields = limit_fields(project.key_limits.get(key).copied());
        fields.insert("project_id", json!(project.id.to_string()));
        fields
    };
    let target = (TargetType::PublicKey, key.clone());
    Some(audited(action, target, was.then(|| fields(before)), is.then(|| fields(after))))
}

fn limit_fields(limit: Option<RateLimit>) -> Fields {
    let per_second = limit.map_or(0, |limit| limit.per_second);
    Fields::from([("rate_limit", json!(per_second)), ("burst", json!(limit.map_or(0, RateLimit::burst)))])
}

fn project_fields(project: &Project) -> Fields {
    let mut fields = limit_fields(project.rate_limit);
    fields.extend([
        ("name", json!(project.name)),
        ("currency", json!(project.currency.to_string())),
        ("allowed_origins", json!(project.allowed_origins)),
        ("cookieless", json!(project.cookieless)),
        ("bots", value(project.bots)),
        ("signals_policy", value(project.signals_policy)),
        ("server_only_revenue", json!(project.server_only_revenue)),
        ("retention_days", json!(project.retention_days)),
        ("quotas", value(project.quotas)),
        ("own_domains", json!(project.own_domains)),
        ("ignored_referrers", json!(project.ignored_referrers)),
    ]);
    fields
}

fn revoked(tenant: &Tenant, is_revoked: impl Fn(&ApiToken) -> bool) -> Vec<Audited> {
    let tokens = tenant.tokens.values().map(|(token, _)| &**token).filter(|token| is_revoked(token));
    tokens.map(|token| of_token(AuditAction::ApiTokenRevoked, Some(token), None)).collect()
}

fn of_token(action: AuditAction, before: Option<&ApiToken>, after: Option<&ApiToken>) -> Audited {
    let id = after.or(before).map(|token| token.token_id.to_string()).unwrap_or_default();
    audited(action, (TargetType::ApiToken, id), before.map(token_fields), after.map(token_fields))
}

fn token_fields(token: &ApiToken) -> Fields {
    let mut fields = limit_fields(token.rate_limit);
    fields.extend([
        ("name", json!(token.name)),
        ("role", value(token.role)),
        ("scopes", value(&token.scopes)),
        ("project_id", json!(token.project.map(|project| project.to_string()))),
        ("expires_at", json!(token.expires_at.map(|at| at.to_string()))),
        ("member_id", json!(token.member.as_ref().map(ToString::to_string))),
    ]);
    fields
}

fn revoked_shares(tenant: &Tenant, is_revoked: impl Fn(&Share) -> bool) -> Vec<Audited> {
    let shares = tenant.shares.values().map(|(share, _)| &**share).filter(|share| is_revoked(share));
    shares.map(|share| of_share(AuditAction::ShareRevoked, Some(share), None)).collect()
}

fn of_share(action: AuditAction, before: Option<&Share>, after: Option<&Share>) -> Audited {
    let id = after.or(before).map(|share| share.id.to_string()).unwrap_or_default();
    audited(action, (TargetType::Share, id), before.map(share_fields), after.map(share_fields))
}

fn share_fields(share: &Share) -> Fields {
    Fields::from([
        ("name", json!(share.name)),
        ("project_id", json!(share.project.to_string())),
        ("revenue", json!(share.revenue)),
        ("embed_origins", json!(share.embed_origins)),
        ("expires_at", json!(share.expires_at.map(|at| at.to_string()))),
    ])
}

fn of_member(action: AuditAction, before: Option<&Member>, after: Option<&Member>) -> Audited {
    let id = after.or(before).map(|member| member.id.to_string()).unwrap_or_default();
    audited(action, (TargetType::Member, id), before.map(member_fields), after.map(member_fields))
}

fn member_fields(member: &Member) -> Fields {
    Fields::from([("email", json!(member.email)), ("name", json!(member.name)), ("role", value(member.role))])
}
