//! `POST /v1/track` and the other calls, `/v1/batch` and `/v1/import`, under all their names, and
//! their way into the engine.

use actix_web::dev::Payload;
use actix_web::http::{Method, header};
use headcount_actors::SegmentRequest;
use headcount_actors::admission_gate::Permit;
use headcount_actors::ingest::{Prepared, Refusal};
use headcount_api::call::Worker;
use headcount_api::endpoint::*;
use headcount_api::event_answer::{BatchAnswer, BatchError, BatchWarning, EventWarning};
use headcount_api::extract::body::{self, BodyContent, Media};
use headcount_api::openapi::segment::{MessageBatchShape, MessageShape};
use headcount_api::routes::Router;
use headcount_domain::intake::admission::Sender;
use headcount_domain::intake::json_fields::readable;
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::segment::{Batch, Call, Envelope};
use headcount_domain::intake::submission::Invalid;

use super::write_key;
use crate::cors;
use crate::ingest::{EventDestination, by_public_key, origin};

/// What a call answers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SegmentAnswer {
    /// True: all valid messages are on disk, and every later read counts them.
    success: bool,
    /// The invalid messages of a batch, and those that a quota refused (`quota_exceeded`). Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<BatchError>,
    /// What was repaired of the messages, and probable mistakes in them: the first 100. Those of a batch have their place. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    warnings: Vec<SegmentWarning>,
}

/// A warning about a message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
enum SegmentWarning {
    /// A message of a batch.
    InBatch(BatchWarning),
    /// The only message.
    Single(EventWarning),
}

impl SegmentAnswer {
    /// The answer to a message that needs no resending.
    pub(super) const DONE: Self = Self { success: true, errors: Vec::new(), warnings: Vec::new() };

    /// The answer to one message.
    pub(super) fn of_message(warnings: Vec<EventWarning>) -> Self {
        Self { warnings: warnings.into_iter().map(SegmentWarning::Single).collect(), ..Self::DONE }
    }
}

impl From<BatchAnswer> for SegmentAnswer {
    fn from(answer: BatchAnswer) -> Self {
        let warnings = answer.warnings.into_iter().map(SegmentWarning::InBatch).collect();
        Self { success: true, errors: answer.errors, warnings }
    }
}

/// What a body holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallBody {
    /// One message of this call.
    Message(Call),
    /// A batch of messages that say what they are.
    Batch,
}

/// Records a body. Its key is in the header or in the body itself; then the body is read before the project is known.
pub(super) async fn receive(call: ApiCall, kind: CallBody) -> Result<HttpResponse> {
    let ApiCall { state, request, payload } = call;
    let limit_bytes = match kind {
        CallBody::Message(_) => body::EVENT_LIMIT_BYTES,
        CallBody::Batch => body::BATCH_LIMIT_BYTES,
    };
    let record = async |to: EventDestination<'_>, body: &[u8], permit| {
        let body = &*readable(body);
        let answer = match kind {
            CallBody::Message(call) => record_message(&state, &request, to, (body, call), permit).await?,
            CallBody::Batch => record_batch(&state, &request, to, body, permit).await?,
        };
        Ok(HttpResponse::Ok().json(answer))
    };
    let read = async |payload: Payload, project| {
        body::check_media(&request, Media::JsonOrText)?;
        let permit = body::admit(&state, &request, BodyContent::Events(project), body::FIRST_BYTES)?;
        body::read(&state, &request, payload, permit, limit_bytes).await
    };
    if let Some(key) = write_key::of_header(&state, &request) {
        return by_public_key(&state, &request, key, payload, async |to, payload| {
            let (body, permit) = read(payload, Some(to.project.policy.project)).await?;
            record(to, &body, permit).await
        })
        .await;
    }
    let (body, permit) = read(payload, None).await?;
    let key = write_key::of_body(&state, &body);
    by_public_key(&state, &request, key, (body, permit), async |to, (body, permit)| {
        // From now on, the bytes are those of the project.
        drop(permit);
        let permit = body::admit(&state, &request, BodyContent::Events(Some(to.project.policy.project)), body.len())?;
        record(to, &body, permit).await
    })
    .await
}

async fn record_message(
    state: &Worker,
    request: &HttpRequest,
    to: EventDestination<'_>,
    (json, call): (&str, Call),
    permit: Permit,
) -> Result<SegmentAnswer> {
    to.allowance.take(state, 1)?;
    let carrier = carrier(state, request, Envelope::default());
    let (ingest, id) = (&state.engine.ingest, to.project.policy.project);
    let prepare = |policy: &Policy| ingest.prepare_segment(policy, json, Some(call), &carrier);
    let is_recorded = |prepared: &Result<Prepared, Refusal>| prepared.as_ref().is_ok_and(Prepared::is_recorded);
    let prepared = ingest.with_pinned_config(to.project, prepare, is_recorded).await??;
    let warnings = prepared.warnings().iter().cloned().map(EventWarning::from).collect();
    ingest.record(&state.tracker, id, prepared, permit).await?;
    Ok(SegmentAnswer::of_message(warnings))
}

async fn record_batch(
    state: &Worker,
    request: &HttpRequest,
    to: EventDestination<'_>,
    body: &str,
    permit: Permit,
) -> Result<SegmentAnswer> {
    let batch = Batch::parse(body);
    to.allowance.take(state, batch.as_ref().map_or(1, |batch| batch.messages.len().max(1)))?;
    let Batch { messages, envelope } = batch?;
    let carrier = carrier(state, request, envelope);
    let (ingest, id) = (&state.engine.ingest, to.project.policy.project);
    let prepare = |policy: &Policy| -> Vec<Result<Prepared, Refusal>> {
        let one = |json: &&str| {
            check_size(json)?;
            ingest.prepare_segment(policy, json, None, &carrier)
        };
        messages.iter().map(one).collect()
    };
    let is_recorded = |prepared: &Vec<Result<Prepared, Refusal>>| prepared.iter().flatten().any(Prepared::is_recorded);
    let prepared = ingest.with_pinned_config(to.project, prepare, is_recorded).await?;
    let receipt = ingest.record_batch(&state.tracker, id, prepared, permit).await?;
    Ok(BatchAnswer::from(receipt).into())
}

/// Returns the request, as it carries messages. Pages name their origin; servers don't.
fn carrier<'r>(state: &AppState, request: &'r HttpRequest, envelope: Envelope<'r>) -> SegmentRequest<'r> {
    let is_of_page = request.headers().contains_key(header::ORIGIN);
    SegmentRequest { origin: origin(state, request, Sender::Public), is_of_page, envelope }
}

fn check_size(message: &str) -> Result<(), Invalid> {
    let (length, limit) = (message.len(), body::EVENT_LIMIT_BYTES);
    if length <= limit {
        return Ok(());
    }
    let message = format!("the message has {length} bytes; at most {limit} are allowed");
    Err(Invalid { code: "event_too_large", param: None, message })
}

macro_rules! calls {
    ($($name:ident $id:tt $path:tt ($($further:tt)*) $shape:ident $kind:expr, $summary:tt $example:tt;)*) => {
        $(
            #[doc = $summary]
            #[utoipa::path(
                post, path = $path, tag = "segment", operation_id = $id,
                request_body(content(($shape = "application/json", example = json!($example)), (String = "text/plain"))),
                responses(
                    (status = 200, description = "The valid messages are on disk, and every later read counts them.", body = SegmentAnswer),
                    SegmentErrors,
                ),
                security(("write_key" = []), ())
            )]
            pub(crate) async fn $name(call: ApiCall) -> Result<HttpResponse> {
                receive(call, $kind).await
            }
        )*

        /// Adds the names that the document leaves out.
        pub(super) fn add_further_paths(router: &mut Router) {
            $(
                for path in [concat!($path, "/"), $($further, concat!($further, "/"),)*] {
                    router.on(path, Method::POST, |call| Box::pin($name(call)));
                    router.on(path, Method::OPTIONS, cors::segment_preflight);
                }
                router.on($path, Method::OPTIONS, cors::segment_preflight);
            )*
        }
    };
}

calls! {
    track "segment_track" "/v1/track" ("/v1/t") MessageShape CallBody::Message(Call::Track),
        "Records what a user did. Also `/v1/t`." {"userId": "ada", "event": "Order Completed", "properties": {"revenue": 25}};
    identify "segment_identify" "/v1/identify" ("/v1/i") MessageShape CallBody::Message(Call::Identify),
        "Records traits of a user. Also `/v1/i`." {"userId": "ada", "anonymousId": "a-1", "traits": {"email": "ada@acme.com"}};
    page "segment_page" "/v1/page" ("/v1/p") MessageShape CallBody::Message(Call::Page),
        "Records a pageview. Also `/v1/p`." {"anonymousId": "a-1", "context": {"page": {"url": "https://acme.com/"}}};
    screen "segment_screen" "/v1/screen" ("/v1/s") MessageShape CallBody::Message(Call::Screen),
        "Records that a user saw a screen of an app. Also `/v1/s`." {"userId": "ada", "name": "Cart"};
    group "segment_group" "/v1/group" ("/v1/g") MessageShape CallBody::Message(Call::Group),
        "Records the company of a user. Also `/v1/g`." {"userId": "ada", "groupId": "acme.com", "traits": {"name": "Acme"}};
    alias "segment_alias" "/v1/alias" ("/v1/a") MessageShape CallBody::Message(Call::Alias),
        "Links an anonymous id to a user. Also `/v1/a`." {"userId": "ada", "previousId": "a-1"};
    batch "segment_batch" "/v1/batch" ("/v1/b") MessageBatchShape CallBody::Batch,
        "Records a batch. Also `/v1/b`." {"batch": [{"type": "track", "userId": "ada", "event": "Signed Up", "messageId": "m-1"}]};
    import "segment_import" "/v1/import" () MessageBatchShape CallBody::Batch,
        "Records a batch, as `/v1/batch` does." {"batch": [{"type": "track", "userId": "ada", "event": "Signed Up", "timestamp": "2024-05-01T10:00:00Z"}]};
}
