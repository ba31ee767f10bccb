//! `GET /v1/projects/{public_key}/settings`

use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use crate::http::app::AppState;
use crate::http::extract::path::KeyPath;
use crate::http::openapi::responses::{NotModified, SegmentErrors, SegmentNotFoundErrors};
use crate::http::resources::events::cors;
use crate::http::respond::error::ApiError;
use crate::http::respond::etag;

/// The path, also for its preflights.
pub(super) const PATH: &str = "/v1/projects/{public_key}/settings";
/// Pages ask on every visit, and the answer changes with the server's address only.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, max-age=300");

/// Tells an SDK where to send its messages. Any page may ask.
///
/// There is one integration, the server itself: for others, SDKs load programs of Segment. Their own metrics stay here, too.
#[utoipa::path(
    get, path = "/v1/projects/{public_key}/settings", tag = "segment", operation_id = "segment_settings",
    params(KeyPath),
    responses((status = 200, description = "The settings.", body = Object), NotModified, SegmentErrors, SegmentNotFoundErrors),
    security(())
)]
pub(crate) async fn settings(state: Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let key = request.match_info().query("public_key");
    if state.engine.registry().public_key(key).is_none() {
        return Err(ApiError::not_found("public key"));
    }
    let mut response = etag::json(&request, &of_key(key, &state.own_url(&request)))?;
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE_CONTROL);
    cors::readable(Ok(response), &request)
}

fn of_key(key: &str, own_url: &str) -> Value {
    let (protocol, host) = own_url.split_once("://").unwrap_or(("https", own_url));
    let api = format!("{host}/v1");
    json!({
        "integrations": {"Segment.io": {"apiKey": key, "apiHost": api, "protocol": protocol}},
        "plan": {},
        "middlewareSettings": {},
        "edgeFunction": {},
        "metrics": {"sampleRate": 0, "host": api},
    })
}
