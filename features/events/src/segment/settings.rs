//! `GET /v1/projects/{public_key}/settings`, and `POST /v1/m` for metrics of the SDKs themselves.

use std::collections::BTreeMap;

use actix_web::http::header::{self, HeaderValue};
use headcount_api::endpoint::*;
use headcount_api::extract::body::{self, BodyContent};

use super::calls::SegmentAnswer;
use crate::cors;

/// The path, also for its preflights.
pub(super) const PATH: &str = "/v1/projects/{public_key}/settings";
/// Pages ask on every visit, and the answer changes with the server's address only.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("private, max-age=300");

/// What an SDK asks for when it starts.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SettingsAnswer {
    /// Where messages go.
    integrations: Integrations,
    /// Empty: no message is filtered.
    plan: BTreeMap<String, String>,
    /// Empty.
    middleware_settings: BTreeMap<String, String>,
    /// Empty.
    edge_function: BTreeMap<String, String>,
    /// Where the SDK's own metrics go.
    metrics: MetricsSettings,
}

/// The destinations of messages.
#[derive(Debug, Serialize, ToSchema)]
struct Integrations {
    /// This server.
    #[serde(rename = "Segment.io")]
    segment: SegmentDestination,
}

/// Where messages go.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SegmentDestination {
    /// The key of the path.
    api_key: String,
    /// Host, port and path of the calls.
    api_host: String,
    /// `https` or `http`.
    protocol: String,
}

/// Where the SDK's own metrics go.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct MetricsSettings {
    /// The part of them that is sent: none.
    sample_rate: u8,
    /// Host, port and path.
    host: String,
}

/// Tells an SDK where to send its messages. Any page may ask.
///
/// There is one integration, the server itself: for others, SDKs load programs of Segment. Their own metrics stay here, too.
#[utoipa::path(
    get, path = "/v1/projects/{public_key}/settings", tag = "segment", operation_id = "segment_settings",
    params(KeyPath),
    responses((status = 200, description = "The settings.", body = SettingsAnswer), NotModified, SegmentErrors, SegmentNotFoundErrors),
    security(())
)]
pub(crate) async fn settings(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    let key = request.parameter("public_key");
    if state.engine.registry().public_key(key).is_none() {
        return Err(ApiError::not_found("public key"));
    }
    let mut response = etag::json(&request, &SettingsAnswer::new(key, &state.own_url(&request)))?;
    response.headers_mut().insert(header::CACHE_CONTROL, CACHE_CONTROL);
    cors::readable(Ok(response), &request)
}

impl SettingsAnswer {
    fn new(key: &str, own_url: &str) -> Self {
        let (protocol, host) = own_url.split_once("://").unwrap_or(("https", own_url));
        let host = format!("{host}/v1");
        let segment = SegmentDestination { api_key: key.to_owned(), api_host: host.clone(), protocol: protocol.to_owned() };
        Self {
            integrations: Integrations { segment },
            plan: BTreeMap::new(),
            middleware_settings: BTreeMap::new(),
            edge_function: BTreeMap::new(),
            metrics: MetricsSettings { sample_rate: 0, host },
        }
    }
}

/// Takes the metrics of an SDK, and drops them.
#[utoipa::path(
    post, path = "/v1/m", tag = "segment", operation_id = "segment_metrics",
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, description = "They were read.", body = SegmentAnswer), SegmentErrors),
    security(())
)]
pub(crate) async fn sdk_metrics(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse> {
    let permit = body::admit(&state, &request, BodyContent::Other(None), body::FIRST_BYTES)?;
    body::discard(&state, &request, payload, permit, body::EVENT_LIMIT_BYTES).await?;
    cors::readable(Ok(HttpResponse::Ok().json(SegmentAnswer::DONE)), &request)
}
