//! The dispatcher: from a request to its handler, through the gates in between, and from what the
//! handler returns to the answer.
//!
//! It stands directly on the connections of the framework, for all endpoints: its code exists once,
//! and requests pass few layers.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use actix_web::HttpResponse;
use actix_web::dev::Payload;
use actix_web::http::Method;
use actix_web::http::header::{HeaderName, HeaderValue};
use futures_util::FutureExt;
use headcount_control::Scope;

use crate::call::{Answer, ApiCall, Handler, Worker, at_once};
use crate::client_end::while_client_waits;
use crate::error_reader::ErrorReader;
use crate::extract::auth::{self, Asker, Caller, MinRole, ProjectCaller};
use crate::forward::travel::Destination;
use crate::forward::{PassedOn, Upload, forward, way_of};
use crate::query_cors::Page;
use crate::rate_limit::{TokenLimiter, headers};
use crate::request::HttpRequest;
use crate::respond::error::{ApiError, REQUEST_ID};
use crate::routes::Routes;
use crate::{min_position, page_policy};

/// Who may ask, and what answers.
#[derive(Clone, Copy)]
pub enum Access {
    /// Anybody, or whom the handler itself knows: by a public key, a sign-in, or the root token.
    Open(Handler),
    /// The operator of the server.
    Operator(Handler),
    /// Holders of a token for the whole organization.
    Organization(Scope, MinRole, fn(ApiCall, Caller) -> Answer),
    /// Holders of a token for the project in the path.
    Project(Scope, MinRole, fn(ApiCall, ProjectCaller) -> Answer),
    /// The same, and readers of shares, who may not ask everything.
    Shared(Scope, MinRole, fn(ApiCall, Asker) -> Answer),
}

/// What answers a method of a path.
#[derive(Clone, Copy)]
pub struct Endpoint {
    /// Who may ask, and what answers.
    pub access: Access,
    /// Which node answers.
    pub destination: Destination,
}

impl Endpoint {
    /// Passes a request through the gates: which node answers it, the position that a question waits
    /// for, and its credential.
    fn answer(self, call: ApiCall) -> Answer {
        let Some(travel) = self.destination.travel() else { return self.access.admit(call) };
        match way_of(&call.state, &call.request, self.destination) {
            Err(error) => at_once(Err(error)),
            Ok(Some(node)) => Box::pin(async move {
                let ApiCall { state, request, payload } = call;
                let answer = forward(&state, &request, Upload::from(payload), node, travel);
                if travel.reads() { while_client_waits(&request, answer).await } else { answer.await }
            }),
            Ok(None) if waits(self.destination, &call.request) => Box::pin(async move {
                min_position::reach(&call.state, &call.request).await?;
                self.access.admit(call).await
            }),
            Ok(None) => self.access.admit(call),
        }
    }
}

impl Access {
    /// Answers who may ask, and refuses others.
    fn admit(self, call: ApiCall) -> Answer {
        let (state, request) = (&*call.state, &call.request);
        let admitted = match self {
            Self::Open(handler) => return handler(call),
            Self::Operator(handler) => auth::operator(state, request).map(|()| handler(call)),
            Self::Organization(scope, role, handler) => {
                auth::organization_wide(state, request, scope, role).map(|caller| handler(call, caller))
            }
            Self::Project(scope, role, handler) => {
                auth::on_project(state, request, scope, role).map(|caller| handler(call, caller))
            }
            Self::Shared(scope, role, handler) => auth::asker(state, request, scope, role).map(|asker| handler(call, asker)),
        };
        admitted.unwrap_or_else(|refused| at_once(Err(refused)))
    }
}

/// Whether a question is one that waits for a position.
fn waits(destination: Destination, request: &HttpRequest) -> bool {
    matches!(destination, Destination::ProjectOwner(travel) if travel.reads()) && min_position::is_named(request)
}

/// The endpoints of one path. Other methods are answered with 405, or by `otherwise`.
#[derive(Default)]
pub(crate) struct PathEndpoints {
    pub(crate) path: String,
    pub(crate) endpoints: Vec<(Method, Endpoint)>,
    pub(crate) otherwise: Option<Handler>,
}

impl PathEndpoints {
    fn answer(&self, call: ApiCall) -> Answer {
        let mut endpoints = self.endpoints.iter();
        if let Some((_, endpoint)) = endpoints.find(|(method, _)| method == call.request.method()) {
            return endpoint.answer(call);
        }
        match self.otherwise {
            Some(handler) => handler(call),
            None => {
                let methods: Vec<Method> = self.endpoints.iter().map(|(method, _)| method.clone()).collect();
                at_once(Err(ApiError::method_not_allowed(&methods)))
            }
        }
    }
}

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
    async fn handled(&self, path: &PathEndpoints, request: &HttpRequest, payload: Payload) -> Result<HttpResponse, ApiError> {
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
