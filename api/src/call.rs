//! A request on its way to its handler.

use std::future::ready;

use actix_web::dev::{Payload, ServiceRequest};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use futures_util::future::LocalBoxFuture;

use crate::app::AppState;
use crate::respond::error::ApiError;

/// A request as handlers take it.
pub struct ApiCall {
    /// What handlers share.
    pub state: Data<AppState>,
    /// Its head.
    pub request: HttpRequest,
    /// The body, unread.
    pub payload: Payload,
}

/// What becomes of a request.
pub type Answer = LocalBoxFuture<'static, Result<HttpResponse, ApiError>>;

/// What answers the requests of an endpoint.
pub type Handler = fn(ApiCall) -> Answer;

impl ApiCall {
    /// The request that the framework received.
    pub fn new(state: &Data<AppState>, request: ServiceRequest) -> Self {
        let (request, payload) = request.into_parts();
        Self { state: state.clone(), request, payload }
    }
}

/// Returns an answer that is known already.
pub fn at_once(answer: Result<HttpResponse, ApiError>) -> Answer {
    Box::pin(ready(answer))
}
