//! The frame of ingestion: the sender, its limits, and the way of a body into the engine.

use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderMap, HeaderName};
use headcount_actors::Ingest;
use headcount_actors::admission_gate::Permit;
use headcount_actors::ingest::{MAX_BATCH_EVENTS, Origin, Prepared, Refusal};
use headcount_api::call::Worker;
use headcount_api::endpoint::*;
use headcount_api::event_answer::{BatchAnswer, EventWarning, TrackAnswer};
use headcount_api::extract::body::{self, BodyContent, Media};
use headcount_api::extract::query::QueryString;
use headcount_api::forward::travel::Travel;
use headcount_api::forward::{Upload, forward, way};
use headcount_api::rate_limit::{self, headers, now};
use headcount_control::{Limiter, ProjectConfig, PublicKey};
use headcount_domain::ProjectId;
use headcount_domain::agent::Hints;
use headcount_domain::intake::admission::Sender;
use headcount_domain::intake::client_address::ClientAddress;
use headcount_domain::intake::json_fields::{JsonFields, as_text};
use headcount_domain::intake::plain_json::PlainJson;
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::submission::Invalid;
use serde_json::value::RawValue;

use super::cors;

const PUBLIC_KEY: HeaderName = HeaderName::from_static("x-service-pk");
const BRANDS: HeaderName = HeaderName::from_static("sec-ch-ua");
const FULL_VERSIONS: HeaderName = HeaderName::from_static("sec-ch-ua-full-version-list");
const MOBILE: HeaderName = HeaderName::from_static("sec-ch-ua-mobile");
const PLATFORM: HeaderName = HeaderName::from_static("sec-ch-ua-platform");
const PLATFORM_VERSION: HeaderName = HeaderName::from_static("sec-ch-ua-platform-version");
const MODEL: HeaderName = HeaderName::from_static("sec-ch-ua-model");
const FORM_FACTORS: HeaderName = HeaderName::from_static("sec-ch-ua-form-factors");
const SEC_GPC: HeaderName = HeaderName::from_static("sec-gpc");

/// The kind of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) enum BodyKind {
    Event,
    Batch,
    /// A batch that may have rows of an export.
    Import,
}

/// The project that events are for, and how many may be sent.
pub(crate) struct EventDestination<'a> {
    pub(crate) project: Arc<ProjectConfig>,
    pub(crate) allowance: Allowance<'a>,
}

/// Records a body that was sent with a public key.
pub(crate) async fn from_public(call: ApiCall, kind: BodyKind) -> Result<HttpResponse> {
    let ApiCall { state, request, payload } = call;
    let key = public_key(&state, &request, &QueryString::read_leniently(&request));
    by_public_key(&state, &request, key, payload, async |to, payload| {
        body::check_media(&request, Media::JsonOrText)?;
        record_body(&state, &request, payload, to, Sender::Public, kind).await
    })
    .await
}

/// Records a body that a server sent with a token. The path names the project.
pub(crate) async fn from_server(call: ApiCall, caller: ProjectCaller, kind: BodyKind) -> Result<HttpResponse> {
    let (ApiCall { state, request, payload }, project) = (call, caller.config);
    body::check_media(&request, Media::Json)?;
    let id = project.policy.project;
    let to = EventDestination { project, allowance: Allowance::UNLIMITED };
    counted(&state, id, record_body(&state, &request, payload, to, Sender::Server, kind).await)
}

/// Counts an event that was refused because it is invalid.
fn counted(state: &AppState, project: ProjectId, answer: Result<HttpResponse>) -> Result<HttpResponse> {
    if answer.as_ref().is_err_and(|error| error.status() == StatusCode::BAD_REQUEST) {
        state.engine.ingest.count_invalid(project);
    }
    answer
}

/// Returns the project of the public key in `x-service-pk`, or in `?pk=`, because `sendBeacon` can't set a header.
pub(crate) fn public_key(state: &AppState, request: &HttpRequest, query: &QueryString) -> Result<PublicKey> {
    let header = request.headers().get(&PUBLIC_KEY).map(|value| value.to_str().unwrap_or_default());
    let key = header.or_else(|| query.text("pk"));
    let key = key.ok_or_else(|| ApiError::unauthenticated("a public key is required: header `x-service-pk`, or `?pk=`"))?;
    known_key(state, key)
}

/// Returns the project of a public key.
pub(crate) fn known_key(state: &AppState, key: &str) -> Result<PublicKey> {
    let key = state.engine.registry().public_key(key);
    key.ok_or_else(|| ApiError::unauthenticated("the public key is not known"))
}

/// Handles a request with a public key, within the limit of the key and from an allowed origin. The answer reports the remaining limit,
/// and a page can read it. A request of a project that another node owns goes there with `body`, and the owner sees to all of this.
pub(crate) async fn by_public_key<B: Into<Upload>>(
    state: &Worker,
    request: &HttpRequest,
    key: Result<PublicKey>,
    body: B,
    handle: impl AsyncFnOnce(EventDestination<'_>, B) -> Result<HttpResponse>,
) -> Result<HttpResponse> {
    let answer = match key.and_then(|key| Ok((way(state, request, key.project.policy.project)?, key))) {
        Ok((Some(owner), _)) => match forward(state.forwarding(), request, body.into(), owner, Travel::Records).await {
            // The owner has let the page read it.
            Ok(answer) => return Ok(answer),
            Err(error) => Err(error),
        },
        Ok((None, key)) => {
            let allowance = Allowance::of(&key);
            let project = Arc::clone(&key.project);
            let allowed = cors::check_origin(&project, request).and_then(|()| allowance.check(state));
            let answer = match allowed {
                Ok(()) => {
                    let id = project.policy.project;
                    counted(state, id, handle(EventDestination { project, allowance }, body).await)
                }
                Err(refused) => Err(refused),
            };
            allowance.report(answer)
        }
        Err(refused) => Err(refused),
    };
    cors::readable(answer, request)
}

/// Returns the origin of the events: the client's address, agent, country and privacy signals.
pub(crate) fn origin<'r>(state: &AppState, request: &'r HttpRequest, sender: Sender) -> Origin<'r> {
    let headers = request.headers();
    if sender == Sender::Server {
        return Origin::SERVER;
    }
    let client = state.client_address(request);
    Origin {
        sender,
        address: client.map(ClientAddress::from),
        // Some phones have their names in it, in UTF-8.
        user_agent: headers.get(header::USER_AGENT).and_then(|value| std::str::from_utf8(value.as_bytes()).ok()),
        hints: hints(headers),
        country: state.client_country(request, client),
        gpc: is_one(headers, &SEC_GPC),
        dnt: is_one(headers, &header::DNT),
    }
}

fn text<'r>(headers: &'r HeaderMap, name: &HeaderName) -> Option<&'r str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Browsers with client hints send the first on every page of HTTPS, and the rest beside it.
fn hints(headers: &HeaderMap) -> Hints<'_> {
    let (brands, platform) = (text(headers, &BRANDS), text(headers, &PLATFORM));
    if brands.is_none() && platform.is_none() {
        return Hints::NONE;
    }
    Hints {
        brands,
        platform,
        mobile: text(headers, &MOBILE),
        full_versions: text(headers, &FULL_VERSIONS),
        platform_version: text(headers, &PLATFORM_VERSION),
        model: text(headers, &MODEL),
        form_factors: text(headers, &FORM_FACTORS),
    }
}

fn is_one(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.get(name).is_some_and(|value| value.as_bytes() == b"1")
}

async fn record_body(
    state: &Worker,
    request: &HttpRequest,
    payload: Payload,
    to: EventDestination<'_>,
    sender: Sender,
    kind: BodyKind,
) -> Result<HttpResponse> {
    let EventDestination { project, allowance } = to;
    let limit_bytes = match kind {
        BodyKind::Event => body::EVENT_LIMIT_BYTES,
        BodyKind::Batch | BodyKind::Import => body::BATCH_LIMIT_BYTES,
    };
    let content = BodyContent::Events(Some(project.policy.project));
    let permit = body::admit(state, request, content, body::FIRST_BYTES)?;
    let (body, permit) = body::read(state, request, payload, permit, limit_bytes).await?;
    let mut response = HttpResponse::Accepted();
    match kind {
        BodyKind::Event => {
            allowance.take(state, 1)?;
            Ok(response.json(record_event(state, request, project, &body, sender, permit).await?))
        }
        BodyKind::Batch | BodyKind::Import => {
            let body = as_text(&body);
            let events = batch_events(&body);
            allowance.take(state, events.as_ref().map_or(1, |events| events.len().max(1)))?;
            Ok(response.json(record_batch(state, request, project, &events?, (sender, kind), permit).await?))
        }
    }
}

/// Records one event.
pub(crate) async fn record_event(
    state: &Worker,
    request: &HttpRequest,
    project: Arc<ProjectConfig>,
    body: &[u8],
    sender: Sender,
    permit: Permit,
) -> Result<TrackAnswer> {
    let origin = origin(state, request, sender);
    let (ingest, id) = (&state.engine.ingest, project.policy.project);
    let is_recorded = |prepared: &Result<Prepared, Refusal>| prepared.as_ref().is_ok_and(Prepared::is_recorded);
    let prepared = ingest.with_pinned_config(project, |policy| ingest.prepare(policy, body, &origin), is_recorded).await??;
    let warnings = prepared.warnings().iter().cloned().map(EventWarning::from).collect();
    Ok(TrackAnswer::new(ingest.record(&state.tracker, id, prepared, permit).await?, warnings))
}

async fn record_batch(
    state: &Worker,
    request: &HttpRequest,
    project: Arc<ProjectConfig>,
    events: &[&str],
    (sender, kind): (Sender, BodyKind),
    permit: Permit,
) -> Result<BatchAnswer> {
    let origin = origin(state, request, sender);
    let (ingest, id) = (&state.engine.ingest, project.policy.project);
    let prepare = |policy: &Policy| -> Vec<Result<Prepared, Refusal>> {
        events.iter().map(|event| prepare_in_batch(ingest, policy, event, (&origin, kind))).collect()
    };
    let prepared =
        ingest.with_pinned_config(project, prepare, |prepared| prepared.iter().flatten().any(Prepared::is_recorded)).await?;
    Ok(ingest.record_batch(&state.tracker, id, prepared, permit).await?.into())
}

fn batch_events(body: &str) -> Result<Vec<&str>> {
    let body = body.strip_prefix('\u{feff}').unwrap_or(body);
    let events = match plain_events(body) {
        Some(events) => events,
        None => any_events(body)?,
    };
    if events.len() > MAX_BATCH_EVENTS {
        let message = format!("a batch has at most {MAX_BATCH_EVENTS} events, not {}", events.len());
        return Err(ApiError::parameter("events", message));
    }
    Ok(events)
}

fn any_events(body: &str) -> Result<Vec<&str>> {
    let batch = JsonFields::read(body).map_err(|error| {
        ApiError::new(ErrorCode::InvalidJson, format!("a batch is a JSON object {{\"events\": […]}}: {error}"))
    })?;
    let events = batch.get("events").ok_or_else(|| ApiError::missing("events"))?;
    let events: Vec<&RawValue> =
        serde_json::from_str(events).map_err(|_| ApiError::parameter("events", "`events` must be a list of events"))?;
    Ok(events.into_iter().map(RawValue::get).collect())
}

/// The events of a batch as nearly all are sent, in a third of the time. `None`: of any other, valid or not.
fn plain_events(body: &str) -> Option<Vec<&str>> {
    let mut json = PlainJson::new(body)?;
    let mut events = None;
    json.object(|name, json| match name {
        "events" if events.is_some() => None,
        "events" => {
            let list = events.insert(Vec::new());
            json.array(|json| {
                list.push(json.raw()?);
                Some(())
            })
        }
        _ => json.raw().map(drop),
    })?;
    json.end()?;
    events
}

fn prepare_in_batch(
    ingest: &Ingest,
    policy: &Policy,
    event: &str,
    (origin, kind): (&Origin<'_>, BodyKind),
) -> Result<Prepared, Refusal> {
    let json = event.as_bytes();
    let limit = if matches!(kind, BodyKind::Import) { body::IMPORT_LIMIT_BYTES } else { body::EVENT_LIMIT_BYTES };
    if json.len() > limit {
        return Err(Refusal::Invalid(Invalid {
            code: "event_too_large",
            param: None,
            message: format!("the event has {} bytes; at most {limit} are allowed", json.len()),
        }));
    }
    if matches!(kind, BodyKind::Import) { ingest.prepare_import(policy, json) } else { ingest.prepare(policy, json, origin) }
}

/// What a sender may send: within the limits of its key and of the project, as long as the key is there. Tokens have none of these.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Allowance<'a>(Option<&'a PublicKey>);

impl<'a> Allowance<'a> {
    /// No limit.
    pub(crate) const UNLIMITED: Self = Self(None);

    /// That of a public key.
    pub(crate) fn of(key: &'a PublicKey) -> Self {
        Self(Some(key))
    }

    fn limiters(self) -> impl Iterator<Item = &'a Limiter> {
        self.0.into_iter().flat_map(|key| [key.limiter.as_deref(), key.project_limiter.as_deref()]).flatten()
    }

    /// Refuses a request over a limit, before its body is read.
    pub(crate) fn check(self, state: &AppState) -> Result<()> {
        self.limiters().try_for_each(|limiter| rate_limit::counted(state, limiter.check(now())))
    }

    /// Takes `events` of a body that was read from the limits, or refuses them all.
    pub(crate) fn take(self, state: &AppState, events: usize) -> Result<()> {
        if self.0.is_some_and(PublicKey::is_removed) {
            return Err(ApiError::unauthenticated("the public key was removed while the request was under way"));
        }
        // What one limit refuses takes nothing from the other.
        self.check(state)?;
        self.limiters().try_for_each(|limiter| rate_limit::counted(state, limiter.take(now(), events)))
    }

    /// Adds what is left of the tightest limit to an answer.
    pub(crate) fn report(self, answer: Result<HttpResponse>) -> Result<HttpResponse> {
        let Some(headers) = headers(self.limiters()) else { return answer };
        match answer {
            Ok(mut response) => {
                for (name, value) in headers {
                    response.headers_mut().insert(name, value);
                }
                Ok(response)
            }
            Err(error) => Err(headers.into_iter().fold(error, |error, (name, value)| error.with_header(name, value))),
        }
    }
}
