//! `GET /audit-log`, and `headcount audit-log`.

use std::collections::BTreeMap;

use headcount_api::command::{CommonFlags, Failure, ManagedServer, ManagementCommand, Reply, asking};
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::{Actor, ActorKind, AuditAction, AuditEntry, AuditQuery, AuditTarget, FieldChange, TargetType};
use headcount_domain::Timezone;
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

answer! {
    /// One change.
    pub(crate) struct AuditRow from |entry: AuditEntry| {
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
        changes: BTreeMap<String, FieldChangeRow> = entry.changes.into_iter().map(|(field, change)| (field, change.into())).collect(),
        /// The id of the request; null if it was none.
        #[schema(required)]
        request_id: Option<String>,
    }
}

answer! {
    /// Who made a change.
    pub(crate) struct ActorRow from |actor: Actor| {
        /// What kind of actor it is.
        #[schema(schema_with = actor_kinds)]
        kind: ActorKind,
        /// The token; null if the actor has none.
        #[schema(required)]
        token_id: Option<String> = actor.token_id.map(Into::into),
        /// The member who held the token; null if nobody did.
        #[schema(required)]
        member_id: Option<String> = actor.member_id.map(Into::into),
    }
}

answer! {
    /// What a change was made to.
    pub(crate) struct TargetRow from AuditTarget {
        /// Its type.
        #[serde(rename = "type")]
        #[schema(schema_with = target_types)]
        kind: TargetType,
        /// Its id.
        id: String,
    }
}

answer! {
    /// The value of a field before and after a change.
    pub(crate) struct FieldChangeRow from FieldChange {
        /// Before; null if there was none.
        #[schema(required)]
        from: Value,
        /// After; null if there is none.
        #[schema(required)]
        to: Value,
    }
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

impl AuditParameters {
    fn query(self) -> Result<AuditQuery> {
        let Self { limit, starting_after, action, target_id } = self;
        let known = |Text(action): Text<64>| -> Result<AuditAction> {
            action.parse().map_err(|error| ApiError::parameter("action", format!("`action` {error}")))
        };
        Ok(AuditQuery {
            limit: limit.rows(),
            starting_after: after(starting_after)?,
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
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let query = AuditParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?.query()?;
    let organization = caller.organization();
    let page =
        management::on_engine(&state, move |engine| engine.registry().audit_log(organization, &query, engine.clock().now()));
    let page = page.await?;
    let entries = page.entries.into_iter().map(AuditRow::from).collect();
    etag::json(&request, &AuditAnswer { entries, truncated: page.truncated })
}

/// The arguments of `audit-log`.
#[derive(Debug, clap::Args)]
pub struct AuditLogArgs {
    /// The flags of every management command.
    #[command(flatten)]
    pub common: CommonFlags,
    /// The entries to list.
    #[command(flatten)]
    pub query: AuditLogQuery,
}

/// The entries to list.
#[derive(Debug, clap::Args)]
pub struct AuditLogQuery {
    /// Only entries of this action, such as api_token.revoked
    #[arg(long)]
    action: Option<String>,
    /// Only entries about the object with this id
    #[arg(long, value_name = "ID")]
    target_id: Option<String>,
    /// Most entries to list, 1 to 100 [default: 20]
    #[arg(long, value_name = "N")]
    limit: Option<u32>,
    /// Only entries older than this one: aud_…
    #[arg(long, value_name = "ID")]
    starting_after: Option<String>,
}

impl ManagementCommand for AuditLogQuery {
    fn send(&self, server: &ManagedServer) -> Result<Reply, Failure> {
        let Self { action, target_id, limit, starting_after } = self;
        let limit = limit.map(|limit| limit.to_string());
        let parameters = [("action", action), ("target_id", target_id), ("limit", &limit), ("starting_after", starting_after)];
        server.list(&asking("/audit-log", parameters), "entries", &["at", "action", "target", "actor", "id"])
    }
}
