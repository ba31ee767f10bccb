//! The dispatcher: from a request to its handler, and from what the handler returns to the answer.
//!
//! It stands directly on the connections of the framework, for all endpoints: its code exists once,
//! and requests pass few layers. The gates are in `dispatch`.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::dev::Payload;
use actix_web::http::header::{HeaderName, HeaderValue};
use futures_util::FutureExt;

use crate::call::{ApiCall, Worker};
use crate::dispatch::PathEndpoints;
use crate::error_reader::ErrorReader;
use crate::page_policy;
use crate::query_cors::Page;
use crate::rate_limit::{TokenLimiter, headers};
use crate::request::HttpRequest;
use crate::request_id::REQUEST_ID;
use crate::respond::error::{ApiError, Result};
use crate::respond::sent::PassedOn;
use crate::routes::Routes;

/// The dispatcher of a worker.
pub struct Dispatcher {
    worker: Rc<Worker>,
    routes: Arc<Routes>,
}

impl Dispatcher {
    /// A dispatcher of these routes.
    pub fn new(worker: Worker, routes: Arc<Routes>) -> Self {
        Self { worker: Rc::new(worker), routes }
    }

    /// Answers a request. Whatever becomes of it, there is an answer with the id of the request.
    pub async fn answer(&self, request: actix_http::Request) -> (HttpRequest, HttpResponse) {
        let began = Instant::now();
        let worker = &self.worker;
        let (path, parameters) = self.routes.find(request.uri());
        let (request, payload) = HttpRequest::receive(request, parameters, Some(worker.engine.node_token()));
        let page = Page::of(worker, &request);
        let mut response = match page.as_ref().and_then(|page| page.preflight(&request)) {
            Some(preflight) => preflight,
            None => self.handled(path, &request, payload).await.unwrap_or_else(|error| refused(path, &request, error)),
        };
        worker.request_metrics.count(response.status(), began.elapsed());
        let is_passed_on = response.extensions().contains::<PassedOn>();
        let headers = response.headers_mut();
        if let Some(limits) = limits(&request) {
            limits.into_iter().for_each(|(name, value)| drop(headers.insert(name, value)));
        }
        if let Some(page) = page.filter(|_| !is_passed_on) {
            page.allow(headers);
        }
        page_policy::apply(worker, &request, headers);
        headers.insert(REQUEST_ID, request.id().0.clone());
        (request, response)
    }

    /// Has a handler answer, and catches its panics.
    async fn handled(&self, path: &PathEndpoints, request: &HttpRequest, payload: Payload) -> Result<HttpResponse> {
        if !self.worker.engine.owners().is_live() && needs_control_data(request.path()) {
            return Err(ApiError::overloaded("the server has lost its cluster, and does not know what changed there"));
        }
        let call = ApiCall { state: Rc::clone(&self.worker), request: request.clone(), payload };
        // Handlers begin within the call, which may panic, too.
        AssertUnwindSafe(async { path.answer(call).await }).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(request_id = request.id().as_str(), "a handler panicked");
            Err(ApiError::internal())
        })
    }
}

/// Returns the answer to a request that was refused, as its sender reads errors.
fn refused(path: &PathEndpoints, request: &HttpRequest, error: ApiError) -> HttpResponse {
    let error = ErrorReader::of(request).readable(error);
    error.log(request.id().as_str(), request.method(), Some(path.path.as_str()).filter(|path| !path.is_empty()));
    error.respond(request.id().as_str())
}

/// The headers that report what is left of the limit of the request's token.
fn limits(request: &HttpRequest) -> Option<[(HeaderName, HeaderValue); 3]> {
    let extensions = request.extensions();
    let TokenLimiter(limiter) = extensions.get()?;
    headers([&**limiter].into_iter())
}

/// Whether an answer depends on organizations, projects and tokens. Those of probes and static files don't.
fn needs_control_data(path: &str) -> bool {
    !["/healthz", "/readyz", "/version", "/metrics", "/openapi.json", "/docs", "/hc.js"].contains(&path)
}
