//! Routes: the handlers of each path by method. Other methods of a path are answered with 405.

use actix_web::http::Method;
use actix_web::{FromRequest, Handler, HttpResponse, Responder, Route, web};
use utoipa::openapi::HttpMethod;

use crate::http::respond::error::ApiError;

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
}

impl Router {
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
        let endpoint = self.endpoint(path);
        endpoint.routes.push(web::method(method.clone()).to(handler));
        endpoint.methods.push(method);
    }

    fn endpoint(&mut self, path: &str) -> &mut Endpoint {
        let index = self.endpoints.iter().position(|endpoint| endpoint.path == path).unwrap_or(self.endpoints.len());
        if index == self.endpoints.len() {
            self.endpoints.push(Endpoint { path: path.to_owned(), routes: Vec::new(), methods: Vec::new() });
        }
        &mut self.endpoints[index]
    }

    /// Registers the routes, in the order in which their paths were added. Other paths are answered with 404.
    pub(crate) fn register(self, config: &mut web::ServiceConfig) {
        for Endpoint { path, routes, methods } in self.endpoints {
            let refuse = web::to(move || {
                let error = ApiError::method_not_allowed(&methods);
                async move { Err::<HttpResponse, _>(error) }
            });
            let resource = routes.into_iter().fold(web::resource(path), |resource, route| resource.route(route));
            config.service(resource.default_service(refuse));
        }
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
