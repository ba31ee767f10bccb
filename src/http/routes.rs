//! One path and its methods. Whatever else is asked of it is answered 405 with the methods that there are.

use actix_web::dev::{AppService, HttpServiceFactory};
use actix_web::http::Method;
use actix_web::{FromRequest, Handler, HttpResponse, Resource, Responder, web};

use crate::http::resources::{companies, events, groups, identities, management, operations, revenue, unique_users};
use crate::http::respond::error::ApiError;

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
            async move { Err::<HttpResponse, _>(error) }
        });
        self.resource.default_service(refuse).register(config);
    }
}

/// All paths. The ones that take events come first: they are asked most.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(
            Endpoint::at("/i").post(events::track).on(Method::GET, events::pixel).on(Method::OPTIONS, events::cors::preflight),
        )
        .service(Endpoint::at("/track").post(events::track).on(Method::OPTIONS, events::cors::preflight))
        .service(Endpoint::at("/i/batch").post(events::batch).on(Method::OPTIONS, events::cors::preflight))
        .service(Endpoint::at("/projects/{project_id}/track").post(events::server_track))
        .service(Endpoint::at("/projects/{project_id}/batch").post(events::server_batch))
        .service(
            Endpoint::at("/projects/{project_id}/analytics/count-unique-users-per-day")
                .post(unique_users::count_unique_users_per_day),
        )
        .service(Endpoint::at("/projects/{project_id}/revenue/metrics").get(revenue::metrics))
        .service(Endpoint::at("/projects/{project_id}/revenue/timeseries").get(revenue::timeseries))
        .service(Endpoint::at("/projects/{project_id}/revenue/by-attribution").get(revenue::attribution::by_attribution))
        .service(Endpoint::at("/projects/{project_id}/revenue/ltv-cohorts").get(revenue::cohorts::ltv_cohorts))
        .service(Endpoint::at("/identities/profile").get(identities::profile))
        .service(Endpoint::at("/identities/referrers").get(identities::referrers))
        .service(Endpoint::at("/identities/top-pages").get(identities::top_pages))
        .service(Endpoint::at("/companies/lookup").get(companies::lookup))
        .service(Endpoint::at("/companies/top").get(companies::top))
        .service(Endpoint::at("/companies/{company_id}/metrics").get(companies::metrics))
        .service(Endpoint::at("/companies/{company_id}/top-users").get(companies::top_users))
        .service(Endpoint::at("/groups/metrics").get(groups::metrics))
        .service(Endpoint::at("/groups/top").get(groups::top));
    management::routes(config);
    operations::routes(config);
    config.default_service(web::to(not_found));
}

async fn not_found() -> Result<HttpResponse, ApiError> {
    Err(ApiError::not_found("path"))
}
