//! Which pages may send events. Other paths send no CORS headers.

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use headcount_actors::registry::KeyedProject;

use super::error::ApiError;

const METHODS: HeaderValue = HeaderValue::from_static("POST, GET");
const HEADERS: HeaderValue = HeaderValue::from_static("content-type, content-encoding, x-service-pk, x-request-id");
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("86400");

/// Refuses a page of an origin that the project doesn't list. A request without one (a server, an app) is not asked.
pub fn check_origin(project: &KeyedProject, request: &HttpRequest) -> Result<(), ApiError> {
    match request.headers().get(header::ORIGIN) {
        Some(origin) if !project.allows_origin(origin.to_str().unwrap_or_default()) => Err(ApiError::origin_forbidden()),
        _ => Ok(()),
    }
}

/// Lets the page that sent the request read the answer, also why its event was refused; but not if the page itself was.
pub fn readable(answer: Result<HttpResponse, ApiError>, request: &HttpRequest) -> Result<HttpResponse, ApiError> {
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
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// Answers a preflight: any origin may ask; whether it may send is decided with the key, which a preflight doesn't carry.
pub async fn preflight(request: HttpRequest) -> HttpResponse {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let response = HttpResponse::NoContent()
        .insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS))
        .insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS))
        .insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS))
        .finish();
    with_origin(response, origin)
}
