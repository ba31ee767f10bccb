//! `/privacy-requests`.

use std::sync::Arc;

use headcount_api::blocking;
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_api::respond::answer::answer;
use headcount_control::PrivacyRequestId;
use headcount_domain::queries::LifetimeFigures;
use headcount_domain::{Instant, ProjectId, Timezone, UnknownName};
use serde_json::{Value, json};
use utoipa::openapi::schema::Object;

use crate::erasure_turns::PATIENCE;
use crate::export_state::PrivacyFailure;
use crate::privacy::Privacy;
use crate::request::{
    ErasedProject, PrivacyAudit, PrivacyAuditEvent, PrivacyRequest, PrivacyRequestKind, PrivacyStatus, PrivacySubject,
};
use crate::requests::PrivacyQuery;
use crate::subject_answer::PrivacySubjectAnswer;

fn kinds() -> Object {
    schemas::named::<PrivacyRequestKind>(
        "`export` makes a copy of what is recorded of the person; `erasure` removes it, and has nothing more recorded; `opt_in` has events of an erased person recorded again.",
    )
}

fn statuses() -> Object {
    schemas::named::<PrivacyStatus>("How far the request is.")
}

/// A new privacy request: its type, and whom it is about.
#[derive(Debug, ToSchema)]
#[schema(example = json!({"type": "erasure", "user_id": "ada"}))]
pub(crate) struct NewPrivacyRequestShape {
    /// `export` makes a copy of what is recorded of the person; `erasure` removes it, and has nothing more recorded; `opt_in` has events of an erased person recorded again.
    #[schema(rename = "type", schema_with = kinds)]
    kind: PrivacyRequestKind,
    /// All identities that ever had this e-mail address. Exactly one of `email`, `user_id` and `anonymous_id` is given.
    email: Option<String>,
    /// The user's id, as it is sent with events.
    user_id: Option<String>,
    /// An anonymous id: the user that it is linked to, else itself.
    anonymous_id: Option<String>,
    /// The only project of the anonymous id; absent: all projects.
    project_id: Option<String>,
}

impl JsonBody for NewPrivacyRequestShape {
    fn from_json(body: &[u8]) -> Result<Self> {
        let fields = Fields::read(body, &["type", "email", "user_id", "anonymous_id", "project_id"])?;
        let kind = fields.required::<String>("type", "a string")?;
        let kind = kind.parse().map_err(|error: UnknownName| ApiError::parameter("type", format!("`type` {error}")))?;
        let text = |name: &str| -> Result<Option<String>> {
            Ok(fields.optional::<String>(name, "a string")?.filter(|text| !text.is_empty()))
        };
        let (email, user_id) = (text("email")?, text("user_id")?);
        Ok(Self { kind, email, user_id, anonymous_id: text("anonymous_id")?, project_id: text("project_id")? })
    }
}

impl NewPrivacyRequestShape {
    fn subject(self) -> Result<PrivacySubject> {
        let project: Option<ProjectId> =
            self.project_id.as_deref().map(str::parse).transpose().map_err(|_| ApiError::not_found("project"))?;
        if project.is_some() && self.anonymous_id.is_none() {
            return Err(ApiError::parameter("project_id", "`project_id` is allowed beside `anonymous_id` only"));
        }
        match (self.email, self.user_id, self.anonymous_id) {
            (Some(email), None, None) => Ok(PrivacySubject::Email(email)),
            (None, Some(user), None) => Ok(PrivacySubject::UserId(user)),
            (None, None, Some(anonymous_id)) => Ok(PrivacySubject::AnonymousId { anonymous_id, project }),
            _ => {
                let message = "exactly one of `email`, `user_id` and `anonymous_id` is required";
                Err(ApiError::new(ErrorCode::InvalidParameter, message))
            }
        }
    }
}

query_parameters! {
    /// The privacy requests to list.
    pub(crate) struct PrivacyParameters {
        /// The most requests to return.
        limit: ListLimit,
        /// Only requests older than this one of the list: `pr_…`.
        starting_after: Option<Text<64>>,
        /// Only requests of this type.
        kind: TypeFilter<PrivacyRequestKind>,
        /// Only requests that are this far.
        status: Option<Choice<PrivacyStatus>>,
    }
}

answer! {
    /// Why a request failed.
    pub(crate) struct PrivacyFailureAnswer from |failure: PrivacyFailure| {
        /// What went wrong, for programs.
        code: String = failure.code().to_owned(),
        /// The same, for people.
        message: String = failure.to_string(),
    }
}

answer! {
    /// Figures of a project, of all time.
    pub(crate) struct LifetimeFiguresAnswer from |of: (&LifetimeFigures, &ErasedProject)| {
        /// How many events.
        events: u64 = of.0.events,
        /// How many distinct users.
        unique_users: u64 = of.0.unique_users,
        /// How many sessions.
        sessions: u64 = of.0.sessions,
        /// How many orders.
        orders: i64 = of.0.orders,
        /// Orders less refunds.
        revenue: Decimal = of.0.revenue.into(),
        /// The currency of the revenue.
        currency: String = of.1.currency.to_string(),
    }
}

/// What an entry tells; which fields it has depends on the event.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct PrivacyDetail {
    /// Of `created` and `downloaded`: the token; null if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    token_id: Option<Value>,
    /// Of `erased`: the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
    /// Of `erased`: the figures when the erasure began.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<LifetimeFiguresAnswer>,
    /// Of `erased`: the same without the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<LifetimeFiguresAnswer>,
    /// Of `completed`: how many identities the request was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    identities: Option<u64>,
    /// Of `completed`: how many events were removed, or exported.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<u64>,
    /// Of `progress`: how many events are written.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<u64>,
    /// Of `progress`: how many events there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    /// Of `retried` and `failed`: what went wrong, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

answer! {
    /// What happened to a request.
    pub(crate) struct PrivacyAuditAnswer from |entry: &PrivacyAudit| {
        /// When.
        at: Timestamp = entry.at.into(),
        /// What: `created`, `started`, `resumed`, `progress` (one, which changes), `retried`, `failed`, `erased` (once for each project), `completed`, `downloaded`,
        /// `expired`, `artifact_erased`.
        event: String = entry.event.name().to_owned(),
        /// What there is to tell about it.
        detail: PrivacyDetail = (&entry.event).into(),
    }
}

answer! {
    /// A privacy request.
    pub(crate) struct PrivacyRequestAnswer from |of: (&PrivacyRequest, Instant)| {
        /// Its id.
        id: String = of.0.id.to_string(),
        /// What is asked for.
        #[serde(rename = "type")]
        #[schema(rename = "type", schema_with = kinds)]
        kind: PrivacyRequestKind = of.0.kind,
        /// How far it is.
        #[schema(schema_with = statuses)]
        status: PrivacyStatus = of.0.status,
        /// Whom it is about.
        subject: PrivacySubjectAnswer = (&of.0.subject).into(),
        /// When it was made.
        created_at: Timestamp = of.0.created_at.into(),
        /// When it was completed; null until then.
        #[schema(required)]
        completed_at: Option<Timestamp> = of.0.completed_at.map(Into::into),
        /// Until when its artifact is kept; null if it has none.
        #[schema(required)]
        expires_at: Option<Timestamp> = of.0.expires_at().map(Into::into),
        /// Whether it has an artifact that can be downloaded.
        download_available: bool = of.0.has_artifact(of.1),
        /// Why it failed; null if it did not.
        #[schema(required)]
        error: Option<PrivacyFailureAnswer> = of.0.failure().map(Into::into),
        /// What happened, oldest first; at most 100 entries.
        audit: Vec<PrivacyAuditAnswer> = of.0.audit.iter().map(Into::into).collect(),
    }
}

/// A part of the list of privacy requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrivacyRequestsAnswer {
    /// The requests, newest first.
    privacy_requests: Vec<PrivacyRequestAnswer>,
    /// Whether older ones follow.
    truncated: bool,
}

impl From<&PrivacyAuditEvent> for PrivacyDetail {
    fn from(event: &PrivacyAuditEvent) -> Self {
        let none = Self::default();
        match event {
            PrivacyAuditEvent::Created { token_id } | PrivacyAuditEvent::Downloaded { token_id } => {
                Self { token_id: Some(json!(token_id.as_ref().map(ToString::to_string))), ..none }
            }
            PrivacyAuditEvent::Started
            | PrivacyAuditEvent::Resumed
            | PrivacyAuditEvent::Expired
            | PrivacyAuditEvent::ArtifactErased => none,
            PrivacyAuditEvent::Progress { done, total } => Self { done: Some(*done), total: Some(*total), ..none },
            PrivacyAuditEvent::Retried { failure } | PrivacyAuditEvent::Failed { failure } => {
                Self { code: Some(failure.code()), ..none }
            }
            PrivacyAuditEvent::Erased(project) => Self {
                project_id: Some(project.project.to_string()),
                before: Some((&project.before, &**project).into()),
                after: Some((&project.after, &**project).into()),
                ..none
            },
            PrivacyAuditEvent::Completed { identities, events } => {
                Self { identities: Some(*identities), events: Some(*events), ..none }
            }
        }
    }
}

impl PrivacyParameters {
    fn query(self) -> Result<PrivacyQuery> {
        let Self { limit, starting_after, kind: TypeFilter(kind), status } = self;
        let id = |Text(id): Text<64>| -> Result<PrivacyRequestId> {
            id.parse().map_err(|error| ApiError::parameter("starting_after", format!("{error}")))
        };
        Ok(PrivacyQuery {
            limit: limit.rows(),
            starting_after: starting_after.map(id).transpose()?,
            kind,
            status: status.map(|Choice(status)| status),
        })
    }
}

/// The requests, if this node looks after those of the caller's organization, and knows them all.
pub(crate) fn at_home(state: &AppState, caller: &Caller) -> Result<Arc<Privacy>, ApiError> {
    let privacy = management::feature::<Privacy>(state)?;
    match privacy.is_home(caller.organization()) {
        true => Ok(privacy),
        false => Err(ApiError::overloaded("another machine has the privacy requests, or takes them over; nothing was changed")),
    }
}

/// The privacy requests of the organization.
#[utoipa::path(
    get, path = "/privacy-requests", tag = "privacy", operation_id = "list_privacy_requests",
    params(PrivacyParameters),
    responses(
        (status = 200, description = "The requests, newest first.", body = PrivacyRequestsAnswer),
        NotModified, UnavailableErrors,
    ),
)]
pub(crate) async fn list(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let query = PrivacyParameters::read(&request, &Calendar::new(&state, Timezone::UTC))?.query()?;
    let page = at_home(&state, &caller)?.page(caller.organization(), &query)?;
    let now = state.engine.clock().now();
    let privacy_requests = page.requests.iter().map(|request| (&**request, now).into()).collect();
    etag::json(&request, &PrivacyRequestsAnswer { privacy_requests, truncated: page.truncated })
}

/// Makes a privacy request. An export has every event that was acknowledged before; its artifact can be downloaded once the request is `completed`. From the
/// answer to an erasure on, no event of the person is recorded, and after one by e-mail none that reports the address; the person is gone from all answers and files once the request is `completed`. A second erasure of
/// the same person completes.
#[utoipa::path(
    post, path = "/privacy-requests", tag = "privacy", operation_id = "create_privacy_request",
    request_body = NewPrivacyRequestShape,
    responses((status = 201, description = "The request.", body = PrivacyRequestAnswer), NotFoundErrors, ConflictErrors),
)]
pub(crate) async fn create(ApiCall { state, request, payload }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    let body: NewPrivacyRequestShape = json::read(&state, &request, payload).await?;
    let (kind, subject) = (body.kind, body.subject()?);
    let privacy = at_home(&state, &caller)?;
    let (organization, author) = (caller.organization(), caller.author(&state, &request));
    let busy = || ApiError::overloaded("too many erasures are under way; nothing was changed");
    let turn = match kind {
        PrivacyRequestKind::Erasure => Some(privacy.turns.take(organization, PATIENCE).await.ok_or_else(busy)?),
        PrivacyRequestKind::Export | PrivacyRequestKind::OptIn => None,
    };
    let made = blocking::run(move || {
        // Also if the client does not wait for the answer.
        let _turn = turn;
        privacy.make(organization, kind, subject, author)
    });
    let made = made.await??;
    Ok(management::created(&PrivacyRequestAnswer::from((&*made, state.engine.clock().now()))))
}

/// One privacy request, with its audit view.
#[utoipa::path(
    get, path = "/privacy-requests/{request_id}", tag = "privacy", operation_id = "get_privacy_request",
    params(PrivacyRequestPath),
    responses((status = 200, description = "The request.", body = PrivacyRequestAnswer), NotModified),
)]
pub(crate) async fn show(ApiCall { state, request, .. }: ApiCall, caller: Caller) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    let id = request.parameter("request_id").parse::<PrivacyRequestId>().map_err(|_| ApiError::not_found("privacy request"))?;
    let found = at_home(&state, &caller)?.get(caller.organization(), &id)?;
    etag::json(&request, &PrivacyRequestAnswer::from((&*found, state.engine.clock().now())))
}
