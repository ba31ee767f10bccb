//! Which pages may send events. Other paths send no CORS headers.

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use headcount_actors::registry::ProjectConfig;

use crate::http::respond::error::{ApiError, CORS_EXPOSED_HEADERS};

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET");
const HEADERS: HeaderValue = HeaderValue::from_static("content-type, content-encoding, x-service-pk, x-request-id");
/// `sendBeacon` with a JSON body sends its request with credentials, and browsers then want this. There are none that this server
/// reads: what a page may send is decided by its key and origin.
const CREDENTIALS: HeaderValue = HeaderValue::from_static("true");
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("86400");

/// Refuses a page of an origin that the project doesn't list. A request without one (a server, an app) is not asked.
pub(crate) fn check_origin(project: &ProjectConfig, request: &HttpRequest) -> Result<(), ApiError> {
    match request.headers().get(header::ORIGIN) {
        Some(origin) if !project.allows_origin(origin.to_str().unwrap_or_default()) => Err(ApiError::origin_forbidden()),
        _ => Ok(()),
    }
}

/// The same for a pixel: browsers send no origin with an image, but the page that shows it.
pub(crate) fn check_referrer(project: &ProjectConfig, request: &HttpRequest) -> Result<(), ApiError> {
    if request.headers().contains_key(header::ORIGIN) {
        return Ok(());
    }
    let referrer = request.headers().get(header::REFERER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if project.allows_origin(origin_of(referrer)) { Ok(()) } else { Err(ApiError::origin_forbidden()) }
}

/// Scheme, host and port of a page's address.
fn origin_of(url: &str) -> &str {
    let host = url.find("://").map_or(0, |colon| colon + 3);
    let end = url.get(host..).and_then(|rest| rest.find(['/', '?', '#', '\\'])).map_or(url.len(), |end| host + end);
    url.get(..end).unwrap_or_default()
}

/// Lets the page that sent the request read the answer, also why its event was refused; but not if the page itself was.
pub(crate) fn readable(answer: Result<HttpResponse, ApiError>, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
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

/// Answers a preflight: any origin may ask; whether it may send is decided with the key, which a preflight doesn't carry.
pub(crate) async fn preflight(request: HttpRequest) -> HttpResponse {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let response = HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS))
        .finish();
    with_origin(response, origin)
}
