//! `/privacy-requests`.

use headcount_actors::privacy::{
    ErasedProject, PrivacyAudit, PrivacyAuditEvent, PrivacyQuery, PrivacyRequest, PrivacyRequestKind, PrivacyStatus,
    PrivacySubject,
};
use headcount_api::blocking;
use headcount_api::endpoint::*;
use headcount_api::management;
use headcount_api::openapi::schemas;
use headcount_control::PrivacyRequestId;
use headcount_domain::queries::LifetimeFigures;
use headcount_domain::{Instant, ProjectId, Timezone, UnknownName};
use serde_json::{Value, json};
use utoipa::openapi::schema::Object;

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

/// Whom a request is about: one of `email`, `user_id` and `anonymous_id`. The value is `[erased]` once the person is erased.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct PrivacySubjectAnswer {
    /// The e-mail address.
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    /// The user's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
    /// The anonymous id.
    #[serde(skip_serializing_if = "Option::is_none")]
    anonymous_id: Option<String>,
    /// The only project of the anonymous id, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
}

/// Why a request failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrivacyFailureAnswer {
    /// What went wrong, for programs.
    code: String,
    /// The same, for people.
    message: String,
}

/// Figures of a project, of all time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LifetimeFiguresAnswer {
    /// How many events.
    events: u64,
    /// How many distinct users.
    unique_users: u64,
    /// How many sessions.
    sessions: u64,
    /// How many orders.
    orders: i64,
    /// Orders less refunds.
    revenue: Decimal,
    /// The currency of the revenue.
    currency: String,
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

/// What happened to a request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrivacyAuditAnswer {
    /// When.
    at: Timestamp,
    /// What: `created`, `started`, `resumed`, `progress` (one, which changes), `retried`, `failed`, `erased` (once for each project), `completed`, `downloaded`,
    /// `expired`, `artifact_erased`.
    event: String,
    /// What there is to tell about it.
    detail: PrivacyDetail,
}

/// A privacy request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrivacyRequestAnswer {
    /// Its id.
    id: String,
    /// What is asked for.
    #[serde(rename = "type")]
    #[schema(rename = "type", schema_with = kinds)]
    kind: PrivacyRequestKind,
    /// How far it is.
    #[schema(schema_with = statuses)]
    status: PrivacyStatus,
    /// Whom it is about.
    subject: PrivacySubjectAnswer,
    /// When it was made.
    created_at: Timestamp,
    /// When it was completed; null until then.
    #[schema(required)]
    completed_at: Option<Timestamp>,
    /// Until when its artifact is kept; null if it has none.
    #[schema(required)]
    expires_at: Option<Timestamp>,
    /// Whether it has an artifact that can be downloaded.
    download_available: bool,
    /// Why it failed; null if it did not.
    #[schema(required)]
    error: Option<PrivacyFailureAnswer>,
    /// What happened, oldest first; at most 100 entries.
    audit: Vec<PrivacyAuditAnswer>,
}

/// A part of the list of privacy requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrivacyRequestsAnswer {
    /// The requests, newest first.
    privacy_requests: Vec<PrivacyRequestAnswer>,
    /// Whether older ones follow.
    truncated: bool,
}

impl From<&PrivacySubject> for PrivacySubjectAnswer {
    fn from(subject: &PrivacySubject) -> Self {
        match subject.clone() {
            PrivacySubject::Email(email) => Self { email: Some(email), ..Self::default() },
            PrivacySubject::UserId(user) => Self { user_id: Some(user), ..Self::default() },
            PrivacySubject::AnonymousId { anonymous_id, project } => {
                let project_id = project.map(|project| project.to_string());
                Self { anonymous_id: Some(anonymous_id), project_id, ..Self::default() }
            }
        }
    }
}

impl LifetimeFiguresAnswer {
    fn of(figures: &LifetimeFigures, project: &ErasedProject) -> Self {
        let LifetimeFigures { events, unique_users, sessions, orders, revenue } = *figures;
        Self { events, unique_users, sessions, orders, revenue: revenue.into(), currency: project.currency.to_string() }
    }
}

impl From<&PrivacyAudit> for PrivacyAuditAnswer {
    fn from(entry: &PrivacyAudit) -> Self {
        let none = PrivacyDetail::default();
        let detail = match &entry.event {
            PrivacyAuditEvent::Created { token_id } | PrivacyAuditEvent::Downloaded { token_id } => {
                PrivacyDetail { token_id: Some(json!(token_id.as_ref().map(ToString::to_string))), ..none }
            }
            PrivacyAuditEvent::Started
            | PrivacyAuditEvent::Resumed
            | PrivacyAuditEvent::Expired
            | PrivacyAuditEvent::ArtifactErased => none,
            PrivacyAuditEvent::Progress { done, total } => PrivacyDetail { done: Some(*done), total: Some(*total), ..none },
            PrivacyAuditEvent::Retried { failure } | PrivacyAuditEvent::Failed { failure } => {
                PrivacyDetail { code: Some(failure.code()), ..none }
            }
            PrivacyAuditEvent::Erased(project) => PrivacyDetail {
                project_id: Some(project.project.to_string()),
                before: Some(LifetimeFiguresAnswer::of(&project.before, project)),
                after: Some(LifetimeFiguresAnswer::of(&project.after, project)),
                ..none
            },
            PrivacyAuditEvent::Completed { identities, events } => {
                PrivacyDetail { identities: Some(*identities), events: Some(*events), ..none }
            }
        };
        Self { at: entry.at.into(), event: entry.event.name().to_owned(), detail }
    }
}

impl PrivacyRequestAnswer {
    fn of(request: &PrivacyRequest, now: Instant) -> Self {
        Self {
            id: request.id.to_string(),
            kind: request.kind,
            status: request.status,
            subject: (&request.subject).into(),
            created_at: request.created_at.into(),
            completed_at: request.completed_at.map(Into::into),
            expires_at: request.expires_at().map(Into::into),
            download_available: request.has_artifact(now),
            error: request
                .failure()
                .map(|failure| PrivacyFailureAnswer { code: failure.code().to_owned(), message: failure.to_string() }),
            audit: request.audit.iter().map(Into::into).collect(),
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

/// Checks that this node looks after the requests of the caller's organization, and knows them all.
pub(crate) fn check_home(state: &AppState, caller: &Caller) -> Result<()> {
    match state.engine.is_privacy_home(caller.organization()) {
        true => Ok(()),
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
    check_home(&state, &caller)?;
    let page = state.engine.privacy_requests(caller.organization(), &query)?;
    let now = state.engine.clock().now();
    let privacy_requests = page.requests.iter().map(|request| PrivacyRequestAnswer::of(request, now)).collect();
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
    check_home(&state, &caller)?;
    let (organization, author, engine) = (caller.organization(), caller.author(&state, &request), state.engine.clone());
    let made = blocking::run(move || engine.make_privacy_request(organization, kind, subject, author)).await??;
    Ok(management::created(&PrivacyRequestAnswer::of(&made, state.engine.clock().now())))
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
    check_home(&state, &caller)?;
    let found = state.engine.privacy_request(caller.organization(), &id)?;
    etag::json(&request, &PrivacyRequestAnswer::of(&found, state.engine.clock().now()))
}
