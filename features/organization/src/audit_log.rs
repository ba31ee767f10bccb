//! `GET /audit-log`.

use std::collections::BTreeMap;

use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Actor, ActorKind, AuditAction, AuditEntry, AuditId, AuditQuery, AuditTarget, FieldChange, TargetType};
use headcount_domain::time::Timezone;
use serde_json::Value;
use utoipa::openapi::schema::Object;

query_parameters! {
    /// The entries to list.
    pub(crate) struct AuditParameters {
        /// The most entries to return.
        limit: ListLimit,
        /// Only entries older than this one of the list: `aud_…`.
        starting_after: Option<Text<64>>,
        /// Only entries of this action, such as `api_token.revoked`.
        action: Option<Text<64>>,
        /// Only entries about what has this id: a token, member, project, public key or organization.
        target_id: Option<Text<64>>,
    }
}

/// A part of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditAnswer {
    /// The entries, newest first.
    entries: Vec<AuditRow>,
    /// Whether older ones follow.
    truncated: bool,
}

/// One change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditRow {
    /// The entry's id.
    id: String,
    /// The time of the change.
    at: Timestamp,
    /// Who made it.
    actor: ActorRow,
    /// What was done.
    #[schema(schema_with = actions)]
    action: AuditAction,
    /// To what.
    target: TargetRow,
    /// The fields that changed. What is made has no fields before, what is removed none after.
    changes: BTreeMap<String, FieldChangeRow>,
    /// The id of the request; null if it was none.
    #[schema(required)]
    request_id: Option<String>,
}

/// Who made a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ActorRow {
    /// What kind of actor it is.
    #[schema(schema_with = actor_kinds)]
    kind: ActorKind,
    /// The token; null if the actor has none.
    #[schema(required)]
    token_id: Option<String>,
    /// The member who held the token; null if nobody did.
    #[schema(required)]
    member_id: Option<String>,
}

/// What a change was made to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TargetRow {
    /// Its type.
    #[serde(rename = "type")]
    #[schema(schema_with = target_types)]
    kind: TargetType,
    /// Its id.
    id: String,
}

/// The value of a field before and after a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FieldChangeRow {
    /// Before; null if there was none.
    #[schema(required)]
    from: Value,
    /// After; null if there is none.
    #[schema(required)]
    to: Value,
}

fn actions() -> Object {
    schemas::named::<AuditAction>("What was done.")
}

fn actor_kinds() -> Object {
    schemas::named::<ActorKind>(
        "`token`: the holder of an API token; `root`: of the root token; `cli`: a command on the data directory of a stopped server; `system`: the program.",
    )
}

fn target_types() -> Object {
    schemas::named::<TargetType>("Its type.")
}

impl From<AuditEntry> for AuditRow {
    fn from(entry: AuditEntry) -> Self {
        let AuditEntry { id, at, actor, action, target, changes, request_id } = entry;
        let Actor { kind, token_id, member_id } = actor;
        let actor = ActorRow { kind, token_id: token_id.map(Into::into), member_id: member_id.map(Into::into) };
        let AuditTarget { kind, id: target_id } = target;
        let change = |(field, FieldChange { from, to })| (field, FieldChangeRow { from, to });
        Self {
            id: id.into(),
            at: at.into(),
            actor,
            action,
            target: TargetRow { kind, id: target_id },
            changes: changes.into_iter().map(change).collect(),
            request_id,
        }
    }
}

impl AuditParameters {
    fn query(self) -> Result<AuditQuery, ApiError> {
        let Self { limit, starting_after, action, target_id } = self;
        let id = |Text(id): Text<64>| -> Result<AuditId, ApiError> {
            id.parse().map_err(|error| ApiError::parameter("starting_after", format!("{error}")))
        };
        let known = |Text(action): Text<64>| -> Result<AuditAction, ApiError> {
            action.parse().map_err(|error| ApiError::parameter("action", format!("`action` {error}")))
        };
        Ok(AuditQuery {
            limit: limit.rows(),
            starting_after: starting_after.map(id).transpose()?,
            action: action.map(known).transpose()?,
            target_id: target_id.map(|Text(id)| id),
        })
    }
}

/// Who changed what in the organization: its settings, projects, keys, tokens and members. No secrets. Entries are kept for 400 days.
#[utoipa::path(
    get, path = "/audit-log", tag = "management", operation_id = "audit_log",
    params(AuditParameters),
    responses((status = 200, description = "The entries, newest first.", body = AuditAnswer), NotModified, UnavailableErrors),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse, ApiError> {
    let query = AuditParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?.query()?;
    let organization = caller.organization();
    let page =
        management::on_engine(&state, move |engine| engine.registry().audit_log(organization, &query, engine.clock().now()));
    let page = page.await?;
    let entries = page.entries.into_iter().map(AuditRow::from).collect();
    etag::json(&request, &AuditAnswer { entries, truncated: page.truncated })
}
