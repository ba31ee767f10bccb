//! The OpenAPI document, generated from the code: paths from the handlers, schemas from the types.
//!
//! Handlers declare their error responses in `responses(…)`, by the types of `responses`: one for each cause.

mod event;
mod limits;
mod responses;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, Schema};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{IntoParams, Modify, OpenApi, ToSchema};

pub use event::{EventShape, OverridesShape};
pub use responses::{
    BodyErrors, ConflictErrors, KeyErrors, KeyLimitErrors, NotFoundErrors, NotModified, PublicEventErrors, QuotaErrors,
    RequestErrors, ServerEventErrors, TokenErrors, TooLargeErrors, UnavailableErrors,
};

use limits::RateLimits;

use crate::http::resources::management::{api_tokens, organization, organizations, projects, public_keys};
use crate::http::resources::{companies, events, groups, identities, operations, revenue, unique_users};
use crate::http::respond::error::ErrorBody;

/// The project that a path is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct ProjectPath {
    /// The project.
    #[param(pattern = "^prj_[0-9A-Za-z]{11}$")]
    project_id: String,
}

/// The public key in the query string, for where no header can be set.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct KeyQuery {
    /// The public key, where no header can be set (`sendBeacon`).
    #[param(pattern = "^pk_[0-9A-Za-z]{32}$")]
    pk: Option<String>,
}

/// Any JSON.
#[derive(Debug, ToSchema)]
#[schema(value_type = Value)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct AnyJson(serde_json::Value);

/// Everything.
#[derive(OpenApi)]
#[openapi(
    info(title = "headcount", version = operations::API_SEMVER, description = include_str!("description.md")),
    paths(
        events::track, events::track_documented, events::pixel, events::batch, events::server_track, events::server_batch,
        unique_users::count_unique_users_per_day,
        revenue::metrics, revenue::timeseries, revenue::attribution::by_attribution, revenue::cohorts::ltv_cohorts,
        identities::profile, identities::referrers, identities::top_pages,
        companies::lookup, companies::top, companies::metrics, companies::top_users,
        groups::metrics, groups::top,
        organizations::create, organization::show, organization::change,
        projects::list, projects::create, projects::show, projects::change,
        public_keys::list, public_keys::create, public_keys::change, public_keys::remove,
        api_tokens::list, api_tokens::create, api_tokens::revoke,
        operations::healthz, operations::readyz, operations::version, operations::metrics, operations::openapi_json, operations::docs,
    ),
    components(schemas(ErrorBody, events::TrackAnswer, events::BatchAnswer), responses(
        responses::BadRequest, responses::Unauthorized, responses::KeyUnknown, responses::Forbidden, responses::OriginForbidden,
        responses::NotFound, responses::Conflict, responses::TooLarge, responses::UnsupportedMedia, responses::TooMany, responses::KeyTooMany, responses::Internal,
        responses::Unavailable,
    )),
    tags(
        (name = "events", description = "Recording what happens."),
        (name = "analytics", description = "Counting events and users of a project."),
        (name = "revenue", description = "Money of a project."),
        (name = "identities", description = "What single users did, over all projects."),
        (name = "companies", description = "What companies did, over all projects."),
        (name = "groups", description = "What groups of other types did, over all projects."),
        (name = "management", description = "The organization, its projects, keys and tokens."),
        (name = "operations", description = "The process itself."),
    ),
    modifiers(&Credentials, &Closed, &RateLimits),
)]
struct Document;

/// How callers say who they are.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = |format: &str, description: &str| {
            let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format(format);
            SecurityScheme::Http(http.description(Some(description)).build())
        };
        let public_key = ApiKeyValue::with_description(
            "x-service-pk",
            "A project's public key, `pk_…`. It can only send events, so that it may be in a page.",
        );
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("api_token", bearer("sk_…", "An API token of the organization. It is a secret."));
        components
            .add_security_scheme("root_token", bearer("rk_…", "The root token, which makes organizations and nothing else."));
        components.add_security_scheme("public_key", SecurityScheme::ApiKey(ApiKey::Header(public_key)));
    }
}

/// Every object has the properties that it has, and no others. Only events may hold more: older servers meet newer
/// trackers.
struct Closed;

impl Modify for Closed {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.iter_mut().flat_map(|components| components.schemas.iter_mut());
        for (name, schema) in schemas {
            if *name == EventShape::name() {
                continue;
            }
            if let RefOr::T(Schema::Object(object)) = schema
                && !object.properties.is_empty()
            {
                object.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(false)));
            }
        }
    }
}

/// The document.
#[must_use]
pub fn document() -> utoipa::openapi::OpenApi {
    Document::openapi()
}

/// The document as JSON, made once.
#[must_use]
pub fn json() -> Option<&'static str> {
    static JSON: LazyLock<Option<String>> = LazyLock::new(|| {
        let json = document().to_json();
        json.inspect_err(|error| tracing::error!(%error, "the OpenAPI document can't be written as JSON")).ok()
    });
    JSON.as_deref()
}
