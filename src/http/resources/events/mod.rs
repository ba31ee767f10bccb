//! `POST /i`, `/track`, `/i/batch`, the beacon `GET /i`, and the same for servers.

pub mod cors;
pub mod rate_limit;

use std::sync::Arc;

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{HttpRequest, HttpResponse, web};
use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use headcount_actors::ingest::Permit;
use headcount_actors::ingest::{BatchReceipt, MAX_BATCH_EVENTS, Origin, Prepared, Receipt, Refusal, Status};
use headcount_actors::registry::{ProjectConfig, PublicKey, Scope};
use headcount_actors::{Engine, Tracker};
use headcount_domain::intake::admission::Sender;
use headcount_domain::intake::policy::Policy;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoResponses, ToSchema};

use crate::http::AppState;
use crate::http::extract::auth::{self, MinRole};
use crate::http::extract::body::{self, Media};
use crate::http::extract::query::Query;
use crate::http::openapi::{
    EventShape, KeyErrors, KeyLimitErrors, KeyQuery, ProjectPath, PublicEventErrors, RequestErrors, ServerEventErrors,
    TooLargeErrors, UnavailableErrors,
};
use crate::http::resources::events::rate_limit::Allowance;
use crate::http::respond::error::ApiError;

/// A 1×1 transparent GIF.
const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

/// What became of an event.
#[derive(Debug, Serialize, ToSchema)]
pub struct TrackAnswer {
    /// Its id; a duplicate has the id of the first. Null if it was dropped.
    #[schema(required)]
    id: Option<String>,
    /// `recorded`, `duplicate` or `dropped`.
    status: TrackStatus,
    /// Whether an event with its `external_id` was recorded before.
    duplicate: bool,
    /// Why it was dropped: `bot`, `consent`, `opted_out`.
    #[schema(required)]
    reason: Option<&'static str>,
    /// Its position, which rises within a project; a duplicate has that of the first. Null if it was dropped.
    #[schema(required)]
    position: Option<u64>,
    /// Its `timestamp` lay too far ahead, and the time of receipt is used.
    clamped: bool,
    /// What was probably not meant, for people. Absent where there is nothing to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<String>,
}

/// Whether an event counts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrackStatus {
    /// It is on disk, and every later read counts it.
    Recorded,
    /// It changes nothing: an event with its `external_id` was recorded before.
    Duplicate,
    /// It was not recorded, by the project's policy.
    Dropped,
}

/// What became of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchAnswer {
    /// How many were recorded.
    recorded: usize,
    /// How many had been recorded before.
    duplicates: usize,
    /// How many were dropped, by the project's policy.
    dropped: usize,
    /// The invalid ones, and those that a quota refused (`quota_exceeded`). All others need no resending.
    errors: Vec<BatchError>,
}

/// An event of a batch that was not recorded.
#[derive(Debug, Serialize, ToSchema)]
pub struct BatchError {
    /// Its place in the batch, from 0.
    index: usize,
    /// What was wrong, for programs.
    code: &'static str,
    /// The field that is wrong, where it is one.
    #[schema(required)]
    param: Option<String>,
    /// What was wrong, for people.
    message: String,
}

/// A batch of events.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the shape for the document; the body is read event by event")]
pub struct BatchShape {
    /// The events, at most 5,000.
    #[schema(max_items = 5000)]
    events: Vec<EventShape>,
}

/// It is on disk, and every later read counts it.
#[derive(Debug, IntoResponses)]
#[response(status = 202)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct Recorded(TrackAnswer);

/// The valid events are on disk, and every later read counts them.
#[derive(Debug, IntoResponses)]
#[response(status = 202)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct BatchRecorded(BatchAnswer);

impl TrackAnswer {
    fn new(receipt: Receipt, warnings: Vec<String>) -> Self {
        let (status, reason) = match receipt.status {
            Status::Recorded => (TrackStatus::Recorded, None),
            Status::Duplicate => (TrackStatus::Duplicate, None),
            Status::Dropped(reason) => (TrackStatus::Dropped, Some(reason.as_str())),
        };
        let duplicate = receipt.status == Status::Duplicate;
        Self { id: receipt.id, status, duplicate, reason, position: receipt.position, clamped: receipt.clamped, warnings }
    }
}

impl From<BatchReceipt> for BatchAnswer {
    fn from(receipt: BatchReceipt) -> Self {
        let error = |(index, invalid): (usize, headcount_domain::intake::submission::Invalid)| BatchError {
            index,
            code: invalid.code,
            param: invalid.param,
            message: invalid.message,
        };
        Self {
            recorded: receipt.recorded,
            duplicates: receipt.duplicates,
            dropped: receipt.dropped,
            errors: receipt.errors.into_iter().map(error).collect(),
        }
    }
}

/// Where events go, and how many may.
struct Destination<'a> {
    project: Arc<ProjectConfig>,
    allowance: Allowance<'a>,
}

impl Destination<'_> {
    /// That of a server, whose token names the project.
    fn of_server(project: Arc<ProjectConfig>) -> Self {
        Self { project, allowance: Allowance::UNLIMITED }
    }
}

/// The public key in `x-service-pk`, else in `?pk=`: `sendBeacon` can set no header.
fn public_key(state: &AppState, request: &HttpRequest, query: &Query) -> Result<PublicKey, ApiError> {
    let header = request.headers().get("x-service-pk").map(|value| value.to_str().unwrap_or_default());
    let key = header.or_else(|| query.text("pk"));
    let key = key.ok_or_else(|| ApiError::unauthenticated("a public key is required: header `x-service-pk`, or `?pk=`"))?;
    let key = state.engine.registry().public_key(key);
    key.ok_or_else(|| ApiError::unauthenticated("the public key is not known"))
}

/// Answers who sends with a public key: if it is a page, one that may, and within the limit of the key. A page can read the answer,
/// and how much is left of a limit is in every one.
async fn by_public_key(
    state: &AppState,
    request: &HttpRequest,
    query: &Query,
    handle: impl AsyncFnOnce(Destination<'_>) -> Result<HttpResponse, ApiError>,
) -> Result<HttpResponse, ApiError> {
    let answer = match public_key(state, request, query) {
        Ok(PublicKey { project, limiter }) => {
            let allowance = Allowance::of(limiter.as_deref());
            let allowed = cors::check_origin(&project, request).and_then(|()| allowance.check(state));
            let answer = match allowed {
                Ok(()) => handle(Destination { project, allowance }).await,
                Err(refused) => Err(refused),
            };
            allowance.told(answer)
        }
        Err(unknown) => Err(unknown),
    };
    cors::readable(answer, request)
}

/// What the request says of who sent it.
fn origin<'r>(state: &AppState, request: &'r HttpRequest, sender: Sender, address: &'r mut String) -> Origin<'r> {
    let headers = request.headers();
    if sender == Sender::Server {
        return Origin::SERVER;
    }
    let client = state.client_address(request);
    if let Some(client) = client {
        *address = client.to_string();
    }
    Origin {
        sender,
        address: Some(address.as_str()).filter(|address| !address.is_empty()),
        user_agent: headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()),
        country: state.client_country(request, client),
        gpc: is_one(headers, "sec-gpc"),
        dnt: is_one(headers, "dnt"),
    }
}

fn is_one(headers: &HeaderMap, name: &str) -> bool {
    headers.get(name).is_some_and(|value| value.as_bytes() == b"1")
}

/// Records one event.
#[utoipa::path(
    post, path = "/i", tag = "events", operation_id = "track_alias",
    params(KeyQuery),
    request_body(content((EventShape = "application/json"), (String = "text/plain"))),
    responses(Recorded, PublicEventErrors),
    security(("public_key" = []))
)]
pub async fn track(
    state: web::Data<AppState>,
    tracker: web::Data<Tracker>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    by_public_key(&state, &request, &Query::read_leniently(&request), async |to| {
        body::check_media(&request, Media::JsonOrText)?;
        let answer = track_one(&state, &tracker, &request, payload, to, Sender::Public).await?;
        Ok(HttpResponse::Accepted().json(answer))
    })
    .await
}

/// Records one event (the same as `POST /i`).
#[utoipa::path(
    post, path = "/track", tag = "events", operation_id = "track",
    params(KeyQuery),
    request_body(content((EventShape = "application/json"), (String = "text/plain"))),
    responses(Recorded, PublicEventErrors),
    security(("public_key" = []))
)]
#[allow(dead_code, reason = "the document's entry for the same handler under its other path")]
pub async fn track_documented() {}

/// Records one event that a server sends: its agent and address are fields of the event.
#[utoipa::path(
    post, path = "/projects/{project_id}/track", tag = "events", operation_id = "server_track",
    params(ProjectPath),
    request_body = EventShape,
    responses(Recorded, ServerEventErrors),
    security(("api_token" = []))
)]
pub async fn server_track(
    state: web::Data<AppState>,
    tracker: web::Data<Tracker>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let caller = auth::on_project(&state, &request, Scope::EventsWrite, MinRole::Member)?;
    body::check_media(&request, Media::Json)?;
    let answer = track_one(&state, &tracker, &request, payload, Destination::of_server(caller.keyed), Sender::Server).await?;
    Ok(HttpResponse::Accepted().json(answer))
}

async fn track_one(
    state: &web::Data<AppState>,
    tracker: &Tracker,
    request: &HttpRequest,
    payload: web::Payload,
    to: Destination<'_>,
    sender: Sender,
) -> Result<TrackAnswer, ApiError> {
    let Destination { project, allowance } = to;
    let (body, permit) = body::read_admitted(state, request, payload, project.policy.project, body::EVENT_LIMIT_BYTES).await?;
    allowance.take(state, 1)?;
    let mut address = String::new();
    let origin = origin(state, request, sender, &mut address);
    record(state, tracker, project, &body, &origin, permit).await
}

async fn record(
    state: &AppState,
    tracker: &Tracker,
    project: Arc<ProjectConfig>,
    body: &[u8],
    origin: &Origin<'_>,
    permit: Permit,
) -> Result<TrackAnswer, ApiError> {
    let engine = &state.engine;
    let is_recorded = |judged: &Result<Prepared, Refusal>| judged.as_ref().is_ok_and(Prepared::is_recorded);
    let mut prepared = engine.with_pinned_config(project, |policy| engine.prepare(policy, body, origin), is_recorded).await??;
    let warnings = prepared.take_warnings();
    Ok(TrackAnswer::new(engine.record(tracker, prepared, permit).await?, warnings))
}

/// Records a batch.
#[utoipa::path(
    post, path = "/i/batch", tag = "events",
    params(KeyQuery),
    request_body(content((BatchShape = "application/json"), (String = "text/plain"))),
    responses(BatchRecorded, PublicEventErrors),
    security(("public_key" = []))
)]
pub async fn batch(
    state: web::Data<AppState>,
    tracker: web::Data<Tracker>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    by_public_key(&state, &request, &Query::read_leniently(&request), async |to| {
        body::check_media(&request, Media::JsonOrText)?;
        let answer = track_batch(&state, &tracker, &request, payload, to, Sender::Public).await?;
        Ok(HttpResponse::Accepted().json(answer))
    })
    .await
}

/// Records a batch that a server sends.
#[utoipa::path(
    post, path = "/projects/{project_id}/batch", tag = "events", operation_id = "server_batch",
    params(ProjectPath),
    request_body = BatchShape,
    responses(BatchRecorded, ServerEventErrors),
    security(("api_token" = []))
)]
pub async fn server_batch(
    state: web::Data<AppState>,
    tracker: web::Data<Tracker>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, ApiError> {
    let caller = auth::on_project(&state, &request, Scope::EventsWrite, MinRole::Member)?;
    body::check_media(&request, Media::Json)?;
    let answer = track_batch(&state, &tracker, &request, payload, Destination::of_server(caller.keyed), Sender::Server).await?;
    Ok(HttpResponse::Accepted().json(answer))
}

#[derive(Deserialize)]
struct RawBatch<'a> {
    #[serde(borrow)]
    events: Option<Vec<&'a RawValue>>,
}

async fn track_batch(
    state: &web::Data<AppState>,
    tracker: &Tracker,
    request: &HttpRequest,
    payload: web::Payload,
    to: Destination<'_>,
    sender: Sender,
) -> Result<BatchAnswer, ApiError> {
    let Destination { project, allowance } = to;
    let (body, permit) = body::read_admitted(state, request, payload, project.policy.project, body::BATCH_LIMIT_BYTES).await?;
    let events = batch_events(&body);
    allowance.take(state, events.as_ref().map_or(1, |events| events.len().max(1)))?;
    let events = events?;
    let mut address = String::new();
    let origin = origin(state, request, sender, &mut address);
    let engine = &state.engine;
    let prepare = |policy: &Policy| -> Vec<Result<Prepared, Refusal>> {
        events.iter().map(|event| prepare_in_batch(engine, policy, event, &origin)).collect()
    };
    let prepared =
        engine.with_pinned_config(project, prepare, |judged| judged.iter().flatten().any(Prepared::is_recorded)).await?;
    Ok(engine.record_batch(tracker, prepared, permit).await?.into())
}

fn batch_events(body: &[u8]) -> Result<Vec<&RawValue>, ApiError> {
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(ApiError::bad_request("invalid_json", "a batch is a JSON object: {\"events\": […]}"));
    }
    let batch: RawBatch<'_> = serde_json::from_slice(body).map_err(|error| {
        ApiError::bad_request("invalid_json", format!("a batch is a JSON object {{\"events\": […]}}: {error}"))
    })?;
    let events = batch.events.ok_or_else(|| ApiError::missing("events"))?;
    if events.len() > MAX_BATCH_EVENTS {
        let message = format!("a batch has at most {MAX_BATCH_EVENTS} events, not {}", events.len());
        return Err(ApiError::parameter("events", message));
    }
    Ok(events)
}

fn prepare_in_batch(engine: &Engine, policy: &Policy, event: &RawValue, origin: &Origin<'_>) -> Result<Prepared, Refusal> {
    let json = event.get().as_bytes();
    if json.len() > body::EVENT_LIMIT_BYTES {
        return Err(Refusal::Invalid(headcount_domain::intake::submission::Invalid {
            code: "event_too_large",
            param: None,
            message: format!("the event has {} bytes; at most {} are allowed", json.len(), body::EVENT_LIMIT_BYTES),
        }));
    }
    engine.prepare(policy, json, origin)
}

/// Records one event from a page without script; the answer is a 1×1 GIF.
#[utoipa::path(
    get, path = "/i", tag = "events",
    params(
        ("pk" = String, Query, description = "The public key.", pattern = "^pk_[0-9A-Za-z]{32}$"),
        ("d" = String, Query, description = "The event's JSON in base64url.", pattern = "^[0-9A-Za-z_-]+={0,2}$"),
    ),
    responses(
        (status = 200, description = "It is on disk, and every later read counts it.", content_type = "image/gif"),
        RequestErrors, KeyErrors, TooLargeErrors, KeyLimitErrors, UnavailableErrors,
    ),
)]
pub async fn pixel(
    state: web::Data<AppState>,
    tracker: web::Data<Tracker>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let query = Query::read_leniently(&request);
    by_public_key(&state, &request, &query, async |Destination { project, allowance }| {
        cors::check_referrer(&project, &request)?;
        let data = query.text("d").ok_or_else(|| ApiError::missing("d"))?;
        let decoded = URL_SAFE_NO_PAD.decode(data).or_else(|_| URL_SAFE.decode(data));
        let body = decoded.map_err(|_| ApiError::parameter("d", "`d` must be the event's JSON in base64url"))?;
        if body.len() > body::EVENT_LIMIT_BYTES {
            return Err(ApiError::too_large(body::EVENT_LIMIT_BYTES));
        }
        let permit = body::admit(&state, &request, project.policy.project, body.len())?;
        allowance.take(&state, 1)?;
        let mut address = String::new();
        let origin = origin(&state, &request, Sender::Public, &mut address);
        record(&state, &tracker, project, &body, &origin, permit).await?;
        let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(HttpResponse::Ok().content_type("image/gif").insert_header(no_store).body(PIXEL))
    })
    .await
}

#[cfg(test)]
mod tests {
    use actix_web::http::{Method, header};
    use actix_web::test::TestRequest;
    use headcount_domain::quota::Quotas;
    use serde_json::json;

    use crate::http::testing::{Answer, Server};

    async fn track(server: &Server, page: &str) -> Answer {
        let event = json!({"name": "pageview", "user_id": "u", "url": page});
        let key = ("x-service-pk", server.keys.public_key.clone());
        server.send(TestRequest::post().uri("/i").insert_header(key).set_payload(event.to_string())).await
    }

    #[actix_web::test]
    async fn a_quota_refuses_what_is_new() {
        let server = Server::start_with(Quotas { pages: 1, ..Quotas::default() });
        assert_eq!(track(&server, "/a").await.status, 202);
        let refused = track(&server, "/b").await;
        assert_eq!(refused.refusal(), (429, "quota_exceeded".to_owned(), None));
        assert_eq!(refused.headers.get(header::RETRY_AFTER).unwrap(), "3600");
        assert!(refused.json()["error"]["message"].as_str().unwrap().contains("quota of 1 pages"));
        assert_eq!(track(&server, "/a?again").await.status, 202);

        let page = |url: &str| json!({"name": "pageview", "user_id": "u", "url": url});
        let batch = json!({"events": [page("/b"), page("/a"), page("/c")]}).to_string();
        let path = format!("/projects/{}/batch", server.keys.project_id);
        let answer = server.owner(Method::POST, &path, &batch).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["recorded"]), (202, &json!(1)));
        let errors = answer.json()["errors"].clone();
        let found = errors.as_array().unwrap().iter().map(|error| (error["index"].as_u64(), error["code"].as_str()));
        assert_eq!(found.collect::<Vec<_>>(), [(Some(0), Some("quota_exceeded")), (Some(2), Some("quota_exceeded"))]);

        let local = ("127.0.0.1:5000").parse().unwrap();
        let metrics = TestRequest::with_uri("/metrics").insert_header((header::HOST, "localhost")).peer_addr(local);
        let text = String::from_utf8(server.send(metrics).await.body.to_vec()).unwrap();
        for line in ["headcount_quota_refusals_total{quota=\"pages\"} 3", "headcount_projects_at_quota 1"] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
