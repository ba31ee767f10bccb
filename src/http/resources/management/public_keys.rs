//! `/projects/{project_id}/keys`: public keys, their rotation and their rate limits. Several are valid at once.

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::registry::{MAX_RATE_LIMIT, Project, RateLimitPatch};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::AppState;
use crate::http::extract::query::Fields;
use crate::http::openapi::{
    BodyErrors, ConflictErrors, NotFoundErrors, NotModified, ProjectPath, RequestErrors, TokenErrors, UnavailableErrors,
};
use crate::http::respond::error::ApiError;

/// A new public key.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyAnswer {
    /// The new key.
    public_key: String,
    /// All keys of the project that are valid, oldest first.
    public_keys: Vec<String>,
}

/// The public keys of a project.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeysAnswer {
    /// The keys that are valid, oldest first.
    keys: Vec<KeyLimitAnswer>,
    /// Whether some are left out: never.
    truncated: bool,
}

/// A public key and its rate limit.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyLimitAnswer {
    /// The key.
    public_key: String,
    /// How many events a second may be sent with it; 0: no limit.
    #[schema(maximum = 1_000_000)]
    rate_limit: u32,
    /// How many may be sent at once after a pause; 0: no limit.
    #[schema(maximum = 1_000_000)]
    burst: u32,
}

/// A change of a public key's rate limit: what is left out stays.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "the shape for the document; the body is read field by field")]
pub struct KeyLimitShape {
    /// How many events a second may be sent with the key; 0: no limit, and no burst.
    #[schema(maximum = 1_000_000)]
    rate_limit: Option<u32>,
    /// How many may be sent at once after a pause, at least 1 where there is a limit. Default: as many as `rate_limit`.
    #[schema(maximum = 1_000_000)]
    burst: Option<u32>,
}

impl KeyLimitAnswer {
    fn new(project: &Project, public_key: &str) -> Self {
        let limit = project.key_limits.get(public_key);
        Self {
            public_key: public_key.to_owned(),
            rate_limit: limit.map_or(0, |limit| limit.per_second),
            burst: limit.map_or(0, |limit| limit.burst()),
        }
    }
}

/// The key that a path is about.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code, reason = "the shape for the document")]
pub struct KeyPath {
    /// The public key.
    #[param(pattern = "^pk_[0-9A-Za-z]{32}$")]
    public_key: String,
}

/// The public keys of a project, with their rate limits.
#[utoipa::path(
    get, path = "/projects/{project_id}/keys", tag = "management", operation_id = "list_public_keys",
    params(ProjectPath),
    responses(
        (status = 200, description = "The keys that are valid, oldest first.", body = KeysAnswer),
        NotModified, RequestErrors, TokenErrors, NotFoundErrors,
    ),
    security(("api_token" = []))
)]
pub async fn list(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (organization, id) = super::project_caller(&state, &request)?;
    let project = state.engine.registry().project(organization, id)?;
    let keys = project.public_keys.iter().map(|key| KeyLimitAnswer::new(&project, key)).collect();
    super::shown(&request, &KeysAnswer { keys, truncated: false })
}

/// Changes how many events may be sent with a public key, or takes its rate limit away. It holds from the next request on, and
/// for this key alone; a key whose limit was changed may send a whole burst at once.
#[utoipa::path(
    patch, path = "/projects/{project_id}/keys/{public_key}", tag = "management", operation_id = "update_public_key",
    params(ProjectPath, KeyPath),
    request_body = KeyLimitShape,
    responses(
        (status = 200, description = "The key as it is now.", body = KeyLimitAnswer),
        RequestErrors, TokenErrors, NotFoundErrors, BodyErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn change(state: web::Data<AppState>, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let (organization, id) = super::project_caller(&state, &request)?;
    let patch = limit_patch(&super::json_body(&request, payload).await?)?;
    let key = request.match_info().query("public_key").to_owned();
    let changed = super::change(&state, move |registry, _| {
        let project = registry.limit_public_key(organization, id, &key, patch)?;
        Ok(KeyLimitAnswer::new(&project, &key))
    });
    Ok(HttpResponse::Ok().json(changed.await?))
}

fn limit_patch(body: &[u8]) -> Result<RateLimitPatch, ApiError> {
    let fields = Fields::read(body, &["rate_limit", "burst"])?;
    let up_to = |what: &str| format!("an integer from 0 to {MAX_RATE_LIMIT}: {what}");
    Ok(RateLimitPatch {
        per_second: fields.get("rate_limit", &up_to("events a second, 0 for no limit"))?,
        burst: fields.get("burst", &up_to("events at once"))?,
    })
}

/// Gives a project one more public key; those it has stay valid. The body, if there is one, is an empty object.
#[utoipa::path(
    post, path = "/projects/{project_id}/keys", tag = "management", operation_id = "create_public_key",
    params(ProjectPath),
    responses(
        (status = 201, description = "The new key, and all that are valid.", body = KeyAnswer),
        RequestErrors, TokenErrors, NotFoundErrors, ConflictErrors, BodyErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn create(state: web::Data<AppState>, request: HttpRequest, payload: web::Payload) -> Result<HttpResponse, ApiError> {
    let (organization, id) = super::project_caller(&state, &request)?;
    Fields::read(&super::json_body(&request, payload).await?, &[])?;
    let added = super::change(&state, move |registry, _| {
        let public_key = registry.add_public_key(organization, id)?;
        Ok((public_key, registry.project(organization, id)?))
    });
    let (public_key, project) = added.await?;
    Ok(super::created(&KeyAnswer { public_key, public_keys: project.public_keys.clone() }))
}

/// Takes a public key from a project, from the next request on. Its last one stays: 409 `last_public_key`.
#[utoipa::path(
    delete, path = "/projects/{project_id}/keys/{public_key}", tag = "management", operation_id = "delete_public_key",
    params(ProjectPath, KeyPath),
    responses(
        (status = 204, description = "The key is no longer valid."),
        RequestErrors, TokenErrors, NotFoundErrors, ConflictErrors, UnavailableErrors,
    ),
    security(("api_token" = []))
)]
pub async fn remove(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let (organization, id) = super::project_caller(&state, &request)?;
    let key = request.match_info().query("public_key").to_owned();
    super::change(&state, move |registry, _| registry.remove_public_key(organization, id, &key)).await?;
    Ok(HttpResponse::NoContent().finish())
}
