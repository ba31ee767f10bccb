//! The middleware of every request: its id, the shape of errors, caught panics, and the counts.

mod query_cors;
mod segment;
pub mod slices;

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use actix_web::body::{BoxBody, EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::HeaderValue;
use actix_web::middleware::Next;
use actix_web::{Error, HttpMessage, web};
use futures_util::FutureExt;

use crate::app::AppState;
use crate::first_node::{self, FirstNode};
use crate::forward::PassedOn;
use crate::middleware::query_cors::Page;
use crate::middleware::segment::ErrorReader;
use crate::page_policy;
use crate::rate_limit::{TokenLimiter, headers};
use crate::request_id::RequestId;
use crate::respond::code::ErrorCode;
use crate::respond::error::{ApiError, REQUEST_ID};

/// The middleware.
pub async fn handle<B: MessageBody + 'static>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B, BoxBody>>, Error> {
    let began = Instant::now();
    let id = RequestId::of(&request);
    let method = request.method().clone();
    request.extensions_mut().insert(id.clone());
    let state = request.app_data::<web::Data<AppState>>().cloned();
    state.iter().for_each(|state| note_first_node(state, &mut request));
    if let Some(state) = state.as_ref().filter(|state| !state.engine.owners().is_live() && needs_control_data(request.path())) {
        let error = ApiError::overloaded("the server has lost its cluster, and does not know what changed there");
        state.request_metrics.count(error.status(), began.elapsed());
        return Ok(request.into_response(error.respond(id.as_str())).map_into_right_body());
    }
    let page = state.as_ref().and_then(|state| Page::of(state, &request));
    if let Some(page) = &page
        && let Some(mut response) = page.preflight(&request)
    {
        page.clone().allow(response.headers_mut());
        response.headers_mut().insert(REQUEST_ID, id.0);
        state.iter().for_each(|state| state.request_metrics.count(response.status(), began.elapsed()));
        return Ok(request.into_response(response).map_into_right_body());
    }
    let reader = ErrorReader::of(&request);
    // The request must not be cloned before it is routed, so what has no response goes up as an
    // error that knows its request. Handlers begin within the call, so that the call itself is
    // within what catches panics.
    let response = match AssertUnwindSafe(async { next.call(request).await }).catch_unwind().await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(error.as_error::<ApiError>().cloned().unwrap_or_else(|| foreign(&error))),
        Err(_) => {
            tracing::error!(request_id = id.as_str(), "a handler panicked");
            Err(ApiError::internal())
        }
    };
    let count = |status| state.iter().for_each(|state| state.request_metrics.count(status, began.elapsed()));
    let mut response = match response {
        Ok(response) => match refusal(&response) {
            Some(error) => {
                let error = reader.readable(error);
                error.log(id.as_str(), &method, response.request().match_pattern().as_deref());
                response.into_response(error.respond(id.as_str())).map_into_right_body()
            }
            None => response.map_into_left_body(),
        },
        Err(error) => {
            let error = reader.readable(error);
            count(error.status());
            error.log(id.as_str(), &method, None);
            return Err(error.of_request(id.as_str()).into());
        }
    };
    count(response.status());
    let limits =
        response.request().extensions().get::<TokenLimiter>().and_then(|TokenLimiter(limiter)| headers([&**limiter].into_iter()));
    for (name, value) in limits.into_iter().flatten() {
        response.headers_mut().insert(name, value);
    }
    if let Some(page) = page.filter(|_| !response.response().extensions().contains::<PassedOn>()) {
        page.allow(response.headers_mut());
    }
    state.iter().for_each(|state| page_policy::apply(state, &mut response));
    response.headers_mut().insert(REQUEST_ID, id.0);
    Ok(response)
}

/// Whether an answer depends on organizations, projects and tokens. Those of probes and static files don't.
fn needs_control_data(path: &str) -> bool {
    !["/healthz", "/readyz", "/version", "/metrics", "/openapi.json", "/docs", "/hc.js"].contains(&path)
}

/// Takes what another node passed on with a request out of its headers, which handlers read and errors may show. From anybody else it says nothing.
fn note_first_node(state: &AppState, request: &mut ServiceRequest) {
    let passed: Vec<HeaderValue> = request.headers_mut().remove(&first_node::FORWARDED).collect();
    if let [value] = &passed[..]
        && let Some(first) = FirstNode::read(value, state.engine.node_token())
    {
        request.extensions_mut().insert(first);
    }
}

/// Returns the error of a handler, if any.
fn refusal<B>(response: &ServiceResponse<B>) -> Option<ApiError> {
    let error = response.response().error()?;
    Some(error.as_error::<ApiError>().cloned().unwrap_or_else(|| foreign(error)))
}

/// Converts an error of the framework.
fn foreign(error: &Error) -> ApiError {
    let status = error.as_response_error().status_code();
    match status.as_u16() {
        404 => ApiError::not_found("path"),
        code @ 400..=499 => {
            tracing::debug!(%error, code, "refused by the framework");
            ApiError::new(ErrorCode::MalformedRequest, "the request could not be read")
        }
        _ => {
            tracing::error!(%error, "unexpected error");
            ApiError::internal()
        }
    }
}
