//! The way of a call into the engine.

use actix_web::dev::Payload;
use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse};
use headcount_actors::admission_gate::Permit;
use headcount_actors::ingest::{Prepared, Refusal};
use headcount_actors::{SegmentRequest, Tracker};
use headcount_domain::intake::admission::Sender;
use headcount_domain::intake::json_fields::readable;
use headcount_domain::intake::policy::Policy;
use headcount_domain::intake::segment::{Batch, Call, Envelope};
use headcount_domain::intake::submission::Invalid;

use super::answer::SegmentAnswer;
use super::write_key;
use crate::http::app::AppState;
use crate::http::call::ApiCall;
use crate::http::extract::body::{self, BodyContent, Media};
use crate::http::resources::events::answer::{BatchAnswer, EventWarning};
use crate::http::resources::events::ingest::{EventDestination, by_public_key, origin, tracker};
use crate::http::respond::error::ApiError;

/// What a body holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallBody {
    /// One message of this call.
    Message(Call),
    /// A batch of messages that say what they are.
    Batch,
}

/// Records a body. Its key is in the header or in the body itself; then the body is read before the project is known.
pub(super) async fn receive(call: ApiCall, kind: CallBody) -> Result<HttpResponse, ApiError> {
    let ApiCall { state, request, payload } = call;
    let limit_bytes = match kind {
        CallBody::Message(_) => body::EVENT_LIMIT_BYTES,
        CallBody::Batch => body::BATCH_LIMIT_BYTES,
    };
    let record = async |to: EventDestination<'_>, body: &[u8], permit| {
        let body = &*readable(body);
        let answer = match kind {
            CallBody::Message(call) => record_message(&state, tracker(&request)?, &request, to, (body, call), permit).await?,
            CallBody::Batch => record_batch(&state, tracker(&request)?, &request, to, body, permit).await?,
        };
        Ok(HttpResponse::Ok().json(answer))
    };
    let read = async |payload: Payload, project| {
        body::check_media(&request, Media::JsonOrText)?;
        let permit = body::admit(&state, &request, BodyContent::Events(project), body::FIRST_BYTES)?;
        body::read(&request, payload, permit, limit_bytes).await
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
    state: &AppState,
    tracker: &Tracker,
    request: &HttpRequest,
    to: EventDestination<'_>,
    (json, call): (&str, Call),
    permit: Permit,
) -> Result<SegmentAnswer, ApiError> {
    to.allowance.take(state, 1)?;
    let carrier = carrier(state, request, Envelope::default());
    let (engine, id) = (&state.engine, to.project.policy.project);
    let prepare = |policy: &Policy| engine.prepare_segment(policy, json, Some(call), &carrier);
    let is_recorded = |prepared: &Result<Prepared, Refusal>| prepared.as_ref().is_ok_and(Prepared::is_recorded);
    let prepared = engine.with_pinned_config(to.project, prepare, is_recorded).await??;
    let warnings = prepared.warnings().iter().cloned().map(EventWarning::from).collect();
    engine.record(tracker, id, prepared, permit).await?;
    Ok(SegmentAnswer::of_message(warnings))
}

async fn record_batch(
    state: &AppState,
    tracker: &Tracker,
    request: &HttpRequest,
    to: EventDestination<'_>,
    body: &str,
    permit: Permit,
) -> Result<SegmentAnswer, ApiError> {
    let batch = Batch::parse(body);
    to.allowance.take(state, batch.as_ref().map_or(1, |batch| batch.messages.len().max(1)))?;
    let Batch { messages, envelope } = batch?;
    let carrier = carrier(state, request, envelope);
    let (engine, id) = (&state.engine, to.project.policy.project);
    let prepare = |policy: &Policy| -> Vec<Result<Prepared, Refusal>> {
        let one = |json: &&str| {
            check_size(json)?;
            engine.prepare_segment(policy, json, None, &carrier)
        };
        messages.iter().map(one).collect()
    };
    let is_recorded = |prepared: &Vec<Result<Prepared, Refusal>>| prepared.iter().flatten().any(Prepared::is_recorded);
    let prepared = engine.with_pinned_config(to.project, prepare, is_recorded).await?;
    let receipt = engine.record_batch(tracker, id, prepared, permit).await?;
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
