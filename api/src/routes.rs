//! Routes: the endpoints of each path by method. Other methods of a path are answered with 405.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use actix_web::dev::Url;
use actix_web::http::{Method, Uri};
use utoipa::openapi::HttpMethod;

use crate::call::Handler;
use crate::dispatch::{Access, Endpoint, PathEndpoints};
use crate::forward::travel::Destination;
use crate::request::PathParameters;

/// Paths where GET records an event. HEAD must change nothing, so that it is not answered there.
const RECORDING_PATHS: [&str; 1] = ["/i"];

/// The routes of a server.
#[derive(Default)]
pub struct Router {
    paths: Vec<PathEndpoints>,
}

impl Router {
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
            self.paths.push(PathEndpoints { path: path.to_owned(), ..PathEndpoints::default() });
        }
        &mut self.paths[index]
    }

    /// Returns the routes. `unknown` answers all other paths.
    ///
    /// # Errors
    /// Two patterns have the same paths.
    pub fn routes(self, unknown: Handler) -> io::Result<Routes> {
        let (mut fixed, mut patterns) = (HashMap::new(), matchit::Router::new());
        for path in self.paths {
            if path.path.contains('{') {
                let names = parameters(&path.path).map(Arc::from).collect();
                patterns.insert(path.path.clone(), (path, names)).map_err(io::Error::other)?;
            } else {
                fixed.insert(path.path.clone(), path);
            }
        }
        Ok(Routes { fixed, patterns, unknown: PathEndpoints { otherwise: Some(unknown), ..PathEndpoints::default() } })
    }
}

/// Where paths lead.
pub struct Routes {
    /// The endpoints of paths without parameters.
    fixed: HashMap<String, PathEndpoints>,
    /// The others by their patterns, with the names of the parameters.
    patterns: matchit::Router<(PathEndpoints, Vec<Arc<str>>)>,
    /// What answers all other paths.
    unknown: PathEndpoints,
}

impl Routes {
    /// Returns where a path leads, and the values of its parameters.
    pub(crate) fn find(&self, uri: &Uri) -> (&PathEndpoints, PathParameters) {
        let decoded = uri.path().contains('%').then(|| Url::new(uri.clone()));
        let path = decoded.as_ref().map_or(uri.path(), Url::path);
        if let Some(endpoints) = self.fixed.get(path) {
            return (endpoints, PathParameters::new());
        }
        match self.patterns.at(path) {
            Ok(matched) => {
                let (endpoints, names) = matched.value;
                let values = matched.params.iter().map(|(_, value)| value.to_owned());
                (endpoints, names.iter().cloned().zip(values).collect())
            }
            Err(_) => (&self.unknown, PathParameters::new()),
        }
    }
}

/// The names of the parameters in a pattern, in their order.
fn parameters(pattern: &str) -> impl Iterator<Item = &str> {
    pattern.split('{').skip(1).filter_map(|rest| Some(rest.split_once('}')?.0.trim_start_matches('*')))
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
