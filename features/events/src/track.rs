//! `POST /i`, `/track`, `/i/batch`, and the same for servers.

use headcount_actors::ingest::MAX_BATCH_EVENTS;
use headcount_api::endpoint::*;
use headcount_api::event_answer::{BatchAnswer, TrackAnswer};
use headcount_api::openapi::event::EventShape;
use serde_json::json;
use utoipa::PartialSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Ref, Schema};

use super::ingest::{BodyKind, from_public, from_server};

/// The schema of a batch, which is read event by event.
pub(crate) struct BatchShape;

impl PartialSchema for BatchShape {
    fn schema() -> RefOr<Schema> {
        let events = ArrayBuilder::new().items(Ref::from_schema_name(EventShape::name())).max_items(Some(MAX_BATCH_EVENTS));
        let events = events.description(Some(format!("The events, at most {MAX_BATCH_EVENTS}.")));
        ObjectBuilder::new()
            .description(Some("A batch of events."))
            .property("events", events)
            .required("events")
            .examples([json!({"events": [{"name": "pageview", "user_id": "ada"}]})])
            .into()
    }
}

impl ToSchema for BatchShape {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((EventShape::name().into_owned(), EventShape::schema()));
        EventShape::schemas(schemas);
    }
}

/// Records one event.
#[utoipa::path(
    post, path = "/i", tag = "events", operation_id = "track_alias",
    params(KeyQuery),
    request_body(content((EventShape = "application/json"), (String = "text/plain"))),
    responses((status = 202, description = "It is on disk, and every later read counts it.", body = TrackAnswer), PublicEventErrors),
    security(("public_key" = []))
)]
pub(crate) async fn track_alias(call: ApiCall) -> Result<HttpResponse> {
    from_public(call, BodyKind::Event).await
}

/// Records one event (the same as `POST /i`).
#[utoipa::path(
    post, path = "/track", tag = "events", operation_id = "track",
    params(KeyQuery),
    request_body(content((EventShape = "application/json"), (String = "text/plain"))),
    responses((status = 202, description = "It is on disk, and every later read counts it.", body = TrackAnswer), PublicEventErrors),
    security(("public_key" = []))
)]
pub(crate) async fn track(call: ApiCall) -> Result<HttpResponse> {
    from_public(call, BodyKind::Event).await
}

/// Records one event that a server sends: its agent and address are fields of the event.
#[utoipa::path(
    post, path = "/projects/{project_id}/track", tag = "events", operation_id = "server_track",
    params(ProjectPath), request_body = EventShape,
    responses((status = 202, description = "It is on disk, and every later read counts it.", body = TrackAnswer), ServerEventErrors),
)]
pub(crate) async fn server_track(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    from_server(call, caller, BodyKind::Event).await
}

/// Records a batch.
#[utoipa::path(
    post, path = "/i/batch", tag = "events",
    params(KeyQuery),
    request_body(content((BatchShape = "application/json"), (String = "text/plain"))),
    responses((status = 202, description = "The valid events are on disk, and every later read counts them.", body = BatchAnswer), PublicEventErrors),
    security(("public_key" = []))
)]
pub(crate) async fn batch(call: ApiCall) -> Result<HttpResponse> {
    from_public(call, BodyKind::Batch).await
}

/// Records a batch that a server sends.
#[utoipa::path(
    post, path = "/projects/{project_id}/batch", tag = "events", operation_id = "server_batch",
    params(ProjectPath), request_body = BatchShape,
    responses((status = 202, description = "The valid events are on disk, and every later read counts them.", body = BatchAnswer), ServerEventErrors),
)]
pub(crate) async fn server_batch(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    from_server(call, caller, BodyKind::Batch).await
}

/// Records a batch that may have rows of an export, which keep everything that was decided about them: visitors, consent, money, companies, agents,
/// countries and acquisition. Their `position` and `received_at` are new. No policy of the project applies to them again.
///
/// A row whose day would be another one in this organization is refused with `timezone_mismatch`, one whose money was converted to other currencies
/// with `currency_mismatch`. Without `_v`, an event is one that a server sends. It may say what another product found out about its visitor:
/// `"_import": {"browser", "browser_version", "os", "device", "location_country"}`, all optional.
#[utoipa::path(
    post, path = "/projects/{project_id}/import", tag = "data", operation_id = "import_events",
    params(ProjectPath), request_body = BatchShape,
    responses((status = 202, description = "The valid events are on disk, and every later read counts them.", body = BatchAnswer), ServerEventErrors),
    security(("api_token" = []), ("session" = []))
)]
pub(crate) async fn import(call: ApiCall, caller: ProjectCaller) -> Result<HttpResponse> {
    from_server(call, caller, BodyKind::Import).await
}
