//! CORS for ingestion: the pages that may send events. Other paths send no CORS headers.

use actix_web::http::header::{self, HeaderValue};
use headcount_api::call::{Answer, at_once};
use headcount_api::endpoint::*;
use headcount_api::respond::error::CORS_EXPOSED_HEADERS;
use headcount_control::ProjectConfig;

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET");
const HEADERS: HeaderValue = HeaderValue::from_static("content-type, content-encoding, x-service-pk, x-request-id");
/// What Segment's SDK for pages sends.
const SEGMENT_HEADERS: HeaderValue =
    HeaderValue::from_static("authorization, content-type, content-encoding, x-retry-count, x-request-id");
/// `sendBeacon` sends JSON bodies with credentials, and browsers then require this header. The server reads no cookies: the key and the
/// origin decide.
const CREDENTIALS: HeaderValue = HeaderValue::from_static("true");
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("86400");

/// Refuses a page of an origin that the project does not list. A request without an origin (a server, an app) passes.
pub(crate) fn check_origin(project: &ProjectConfig, request: &HttpRequest) -> Result<()> {
    match request.headers().get(header::ORIGIN) {
        Some(origin) if !project.allows_origin(origin.to_str().unwrap_or_default()) => Err(ApiError::origin_forbidden()),
        _ => Ok(()),
    }
}

/// Checks a pixel by its referrer: browsers send no origin with an image.
pub(crate) fn check_referrer(project: &ProjectConfig, request: &HttpRequest) -> Result<()> {
    if request.headers().contains_key(header::ORIGIN) {
        return Ok(());
    }
    let referrer = request.headers().get(header::REFERER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if project.allows_origin(origin_of(referrer)) { Ok(()) } else { Err(ApiError::origin_forbidden()) }
}

/// Returns scheme, host and port of a page's address.
fn origin_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |colon| colon + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#', '\\'])).map_or(url.len(), |end| host + end);
    url.get(..end).unwrap_or_default()
}

/// Lets the page that sent the request read the answer or the error, unless its origin is forbidden.
pub(crate) fn readable(answer: Result<HttpResponse>, request: &HttpRequest) -> Result<HttpResponse> {
    let Some(origin) = request.headers().get(header::ORIGIN) else { return answer };
    match answer {
        Ok(answer) => Ok(with_origin(answer, Some(origin.clone()))),
        Err(error) => Err(error.readable_from(origin.clone())),
    }
}

fn with_origin(mut response: HttpResponse, origin: Option<HeaderValue>) -> HttpResponse {
    if let Some(origin) = origin {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, CREDENTIALS);
        headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, CORS_EXPOSED_HEADERS);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// Answers a preflight of any origin. A preflight carries no key; the request itself decides by key and origin.
pub(crate) fn preflight(call: ApiCall) -> Answer {
    at_once(Ok(allowing(HEADERS, &call.request)))
}

/// Answers a preflight of one of Segment's SDKs.
pub(crate) fn segment_preflight(call: ApiCall) -> Answer {
    at_once(Ok(allowing(SEGMENT_HEADERS, &call.request)))
}

fn allowing(headers: HeaderValue, request: &HttpRequest) -> HttpResponse {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let response = HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, headers))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS))
        .finish();
    with_origin(response, origin)
}
