//! Routes: the handlers of each path by method. Other methods of a path are answered with 405.

use actix_web::guard::fn_guard;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::{FromRequest, Handler, HttpResponse, Resource, Responder, Route, Scope, web};
use utoipa::openapi::HttpMethod;

use crate::http::forward::{by_home, by_path, by_webhook, travel};
use crate::http::min_position;
use crate::http::respond::error::ApiError;

/// What the paths of a project begin with. The framework tries one path after another, and those with a parameter by a regular
/// expression: below this one, most paths have none.
const PROJECT: &str = "/projects/{project_id}";

/// What the paths of Segment's API begin with. They are many, and most requests are for others.
const SEGMENT: &str = "/v1";

/// Paths where GET records an event. HEAD must change nothing, so that it is not answered there.
const RECORDING_PATHS: [&str; 1] = ["/i"];

/// The handlers of one path.
struct Endpoint {
    path: String,
    routes: Vec<Route>,
    /// The methods that an error lists.
    methods: Vec<Method>,
}

/// The routes of a server.
#[derive(Default)]
pub(crate) struct Router {
    endpoints: Vec<Endpoint>,
    /// Whether other nodes may own projects, to whom requests travel.
    has_peers: bool,
}

impl Router {
    /// The routes of a server that may have to send requests to other nodes.
    pub(crate) fn with_peers(has_peers: bool) -> Self {
        Self { endpoints: Vec::new(), has_peers }
    }

    /// Adds a documented operation. One for GET answers HEAD, too, except on [`RECORDING_PATHS`].
    pub(crate) fn operation<P, F, Args>(&mut self, handler: F)
    where
        P: utoipa::Path,
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        for documented in P::methods() {
            let method = method(&documented);
            self.on(&P::path(), method.clone(), handler.clone());
            if method == Method::GET && !RECORDING_PATHS.contains(&P::path().as_str()) {
                self.on(&P::path(), Method::HEAD, handler.clone());
            }
        }
    }

    /// Adds a method of a path.
    pub(crate) fn on<F, Args>(&mut self, path: &str, method: Method, handler: F)
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        let mut route = web::method(method.clone()).to(handler.clone());
        match path.strip_prefix(PROJECT).and_then(travel::of_project) {
            Some(travel) if self.has_peers => route = route.wrap(from_fn(move |request, next| by_path(request, next, travel))),
            Some(travel) if travel.reads() => {
                // A route of its own, so that questions without the header pass no middleware.
                let waiting = web::method(method.clone()).guard(fn_guard(min_position::is_named)).to(handler);
                self.endpoint(path).routes.push(waiting.wrap(from_fn(min_position::by_path)));
            }
            Some(_) | None => {}
        }
        if let Some(travel) = travel::of_webhook(path).filter(|_| self.has_peers) {
            route = route.wrap(from_fn(move |request, next| by_webhook(request, next, travel)));
        }
        if let Some(travel) = travel::of_organization(&method, path).filter(|_| self.has_peers) {
            route = route.wrap(from_fn(move |request, next| by_home(request, next, travel)));
        }
        let endpoint = self.endpoint(path);
        endpoint.routes.push(route);
        endpoint.methods.push(method);
    }

    fn endpoint(&mut self, path: &str) -> &mut Endpoint {
        let index = self.endpoints.iter().position(|endpoint| endpoint.path == path).unwrap_or(self.endpoints.len());
        if index == self.endpoints.len() {
            self.endpoints.push(Endpoint { path: path.to_owned(), routes: Vec::new(), methods: Vec::new() });
        }
        &mut self.endpoints[index]
    }

    /// Registers the routes: those of a project and of Segment's API below one scope each, the others in the order in which their paths were added. Other paths
    /// are answered with 404.
    pub(crate) fn register(self, config: &mut web::ServiceConfig) {
        let (of_project, others): (Vec<_>, Vec<_>) = self.endpoints.into_iter().partition(|endpoint| endpoint.is_below(PROJECT));
        let (of_segment, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|endpoint| endpoint.is_below(SEGMENT));
        // Events are not in the scope, and static paths are compared fast.
        let (fixed, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|endpoint| !endpoint.path.contains('{'));
        for endpoint in fixed {
            config.service(endpoint.resource());
        }
        config.service(below(PROJECT, of_project));
        config.service(below(SEGMENT, of_segment));
        for endpoint in rest {
            config.service(endpoint.resource());
        }
    }
}

/// Returns the scope of endpoints whose paths begin with `prefix`.
fn below(prefix: &str, mut endpoints: Vec<Endpoint>) -> Scope {
    for endpoint in &mut endpoints {
        endpoint.path.drain(..prefix.len());
    }
    // Parameters are compared last.
    endpoints.sort_by_key(|endpoint| endpoint.path.contains('{'));
    endpoints.into_iter().map(Endpoint::resource).fold(web::scope(prefix), Scope::service)
}

impl Endpoint {
    fn is_below(&self, prefix: &str) -> bool {
        self.path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    fn resource(self) -> Resource {
        let Self { path, routes, methods } = self;
        let refuse = web::to(move || {
            let error = ApiError::method_not_allowed(&methods);
            async move { Err::<HttpResponse, _>(error) }
        });
        routes.into_iter().fold(web::resource(path), Resource::route).default_service(refuse)
    }
}

fn method(documented: &HttpMethod) -> Method {
    match documented {
        HttpMethod::Get => Method::GET,
        HttpMethod::Post => Method::POST,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Delete => Method::DELETE,
        HttpMethod::Options => Method::OPTIONS,
        HttpMethod::Head => Method::HEAD,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Trace => Method::TRACE,
    }
}
