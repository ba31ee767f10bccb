//! One path and its methods. Whatever else is asked of it is answered 405 with the methods that there are.

use actix_web::dev::{AppService, HttpServiceFactory};
use actix_web::http::Method;
use actix_web::{FromRequest, Handler, Resource, Responder, web};

use super::error::ApiError;

/// Builds one path.
pub struct Endpoint {
    resource: Resource,
    methods: Vec<Method>,
}

impl Endpoint {
    /// The path, `{named}` parts and all.
    pub fn at(path: &str) -> Self {
        Self { resource: web::resource(path), methods: Vec::new() }
    }

    /// Answers GET (and HEAD, which is GET without the body).
    pub fn get<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args> + Clone,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on(Method::GET, handler.clone()).on(Method::HEAD, handler)
    }

    /// Answers POST.
    pub fn post<F, Args>(self, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.on(Method::POST, handler)
    }

    /// Answers a method that is refused to everybody, each for his own reason; it is not among those that there are.
    pub fn unlisted<F, Args>(mut self, method: Method, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.resource = self.resource.route(web::method(method).to(handler));
        self
    }

    /// Answers any other method.
    pub fn on<F, Args>(mut self, method: Method, handler: F) -> Self
    where
        F: Handler<Args>,
        Args: FromRequest + 'static,
        F::Output: Responder + 'static,
    {
        self.resource = self.resource.route(web::method(method.clone()).to(handler));
        self.methods.push(method);
        self
    }
}

impl HttpServiceFactory for Endpoint {
    fn register(self, config: &mut AppService) {
        let methods = self.methods;
        let refuse = web::to(move || {
            let error = ApiError::method_not_allowed(&methods);
            async move { Err::<actix_web::HttpResponse, _>(error) }
        });
        self.resource.default_service(refuse).register(config);
    }
}
