//! Routes: the endpoints of each path by method. Other methods of a path are answered with 405.

use actix_service::fn_service;
use actix_web::http::Method;
use actix_web::web::Data;
use actix_web::{Scope, web};
use utoipa::openapi::HttpMethod;

use crate::app::AppState;
use crate::call::Handler;
use crate::dispatch::{Access, Endpoint, PathEndpoints};
use crate::forward::travel::Destination;

/// What the paths of a project begin with. The framework tries one path after another, and those with a parameter by a regular
/// expression: below this one, most paths have none.
const PROJECT: &str = "/projects/{project_id}";

/// What the paths of Segment's API begin with. They are many, and most requests are for others.
const SEGMENT: &str = "/v1";

/// Paths where GET records an event. HEAD must change nothing, so that it is not answered there.
const RECORDING_PATHS: [&str; 1] = ["/i"];

/// The routes of a server.
pub struct Router {
    state: Data<AppState>,
    paths: Vec<PathEndpoints>,
}

impl Router {
    /// Returns a router without routes.
    pub fn new(state: &Data<AppState>) -> Self {
        Self { state: state.clone(), paths: Vec::new() }
    }

    /// Adds a documented operation. One for GET answers HEAD, too, except on [`RECORDING_PATHS`].
    pub fn operation(&mut self, path: &str, methods: &[HttpMethod], endpoint: Endpoint) {
        for method in methods.iter().map(method) {
            let answers_head = method == Method::GET && !RECORDING_PATHS.contains(&path);
            let endpoints = &mut self.path(path).endpoints;
            endpoints.push((method, endpoint));
            endpoints.extend(answers_head.then_some((Method::HEAD, endpoint)));
        }
    }

    /// Adds a method of a path that is not in the document.
    pub fn on(&mut self, path: &str, method: Method, handler: Handler) {
        let endpoint = Endpoint { access: Access::Open(handler), destination: Destination::Here };
        self.path(path).endpoints.push((method, endpoint));
    }

    /// Adds a path that answers all methods.
    pub fn on_all(&mut self, path: &str, handler: Handler) {
        self.path(path).otherwise = Some(handler);
    }

    fn path(&mut self, path: &str) -> &mut PathEndpoints {
        let index = self.paths.iter().position(|known| known.path == path).unwrap_or(self.paths.len());
        if index == self.paths.len() {
            let (path, state) = (path.to_owned(), self.state.clone());
            self.paths.push(PathEndpoints { path, endpoints: Vec::new(), otherwise: None, state });
        }
        &mut self.paths[index]
    }

    /// Registers the routes: those of a project and of Segment's API below one scope each, the others in the order in which their paths were added. `unknown`
    /// answers all other paths.
    pub fn register(self, config: &mut web::ServiceConfig, unknown: Handler) {
        let (of_project, others): (Vec<_>, Vec<_>) = self.paths.into_iter().partition(|path| path.is_below(PROJECT));
        let (of_segment, others): (Vec<_>, Vec<_>) = others.into_iter().partition(|path| path.is_below(SEGMENT));
        // Events are not in the scope, and static paths are compared fast.
        let (fixed, rest): (Vec<_>, Vec<_>) = others.into_iter().partition(|path| !path.path.contains('{'));
        config.service(fixed).service(below(PROJECT, of_project)).service(below(SEGMENT, of_segment)).service(rest);
        let state = self.state;
        let unknown = PathEndpoints { path: String::new(), endpoints: Vec::new(), otherwise: Some(unknown), state };
        config.default_service(fn_service(unknown.service()));
    }
}

/// Returns the scope of paths that begin with `prefix`.
fn below(prefix: &str, mut paths: Vec<PathEndpoints>) -> Scope {
    for path in &mut paths {
        path.path.drain(..prefix.len());
    }
    // Parameters are compared last.
    paths.sort_by_key(|path| path.path.contains('{'));
    web::scope(prefix).service(paths)
}

impl PathEndpoints {
    fn is_below(&self, prefix: &str) -> bool {
        self.path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
