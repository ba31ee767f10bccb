//! A request on its way to its handler.

use std::future::ready;

use actix_web::dev::{Payload, ServiceRequest};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::future::LocalBoxFuture;

use crate::http::app::AppState;
use crate::http::respond::error::ApiError;

/// A request as handlers take it.
pub(crate) struct ApiCall {
    pub(crate) state: Data<AppState>,
    pub(crate) request: HttpRequest,
    /// The body, unread.
    pub(crate) payload: Payload,
}

/// What becomes of a request.
pub(crate) type Answer = LocalBoxFuture<'static, Result<HttpResponse, ApiError>>;

/// What answers the requests of an endpoint.
pub(crate) type Handler = fn(ApiCall) -> Answer;

impl ApiCall {
    /// The request that the framework received.
    pub(crate) fn new(state: &Data<AppState>, request: ServiceRequest) -> Self {
        let (request, payload) = request.into_parts();
        Self { state: state.clone(), request, payload }
    }
}

/// Returns an answer that is known already.
pub(crate) fn at_once(answer: Result<HttpResponse, ApiError>) -> Answer {
    Box::pin(ready(answer))
}
