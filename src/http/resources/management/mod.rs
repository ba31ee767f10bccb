//! Management: the organization, its projects, their public keys, and API tokens.
//!
//! Everything here is for organization-wide tokens of role owner or admin with the scope `admin`, but for
//! [`organizations`], which is the root token's. Bodies are read strictly: a field that isn't known is refused, and null is
//! as if absent.

pub mod api_tokens;
pub mod organization;
pub mod organizations;
pub mod projects;
pub mod public_keys;
mod schemas;
#[cfg(test)]
mod tests;

use actix_web::http::{Method, header};
use actix_web::web::{Bytes, Payload};
use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::registry::{Registry, RegistryError, Scope};
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::time::Instant;
use serde::Serialize;

use crate::http::AppState;
use crate::http::extract::auth::{self, Caller, MinRole};
use crate::http::extract::body::{self, Media};
use crate::http::extract::query::Query;
use crate::http::resources::operations;
use crate::http::respond::error::ApiError;
use crate::http::routes::Endpoint;

/// All paths of management.
pub fn routes(config: &mut web::ServiceConfig) {
    config
        .service(Endpoint::at("/organizations").post(organizations::create))
        .service(Endpoint::at("/organization").get(organization::show).on(Method::PATCH, organization::change))
        .service(Endpoint::at("/projects").get(projects::list).post(projects::create))
        .service(
            Endpoint::at("/projects/{project_id}")
                .get(projects::show)
                .on(Method::PATCH, projects::change)
                .unlisted(Method::DELETE, projects::remove),
        )
        .service(Endpoint::at("/projects/{project_id}/keys").get(public_keys::list).post(public_keys::create))
        .service(
            Endpoint::at("/projects/{project_id}/keys/{public_key}")
                .on(Method::PATCH, public_keys::change)
                .on(Method::DELETE, public_keys::remove),
        )
        .service(Endpoint::at("/api-tokens").get(api_tokens::list).post(api_tokens::create))
        .service(Endpoint::at("/api-tokens/{token_id}").on(Method::DELETE, api_tokens::revoke));
}

/// Who calls, if that is allowed; there are no query parameters in management.
fn caller(state: &AppState, request: &HttpRequest) -> Result<Caller, ApiError> {
    let caller = auth::organization_wide(state, request, Scope::Admin, MinRole::Admin)?;
    Query::read(request, &[])?;
    Ok(caller)
}

/// Who asks for a project or changes it; a token of that project may, too.
fn project_caller(state: &AppState, request: &HttpRequest) -> Result<(OrganizationId, ProjectId), ApiError> {
    let caller = auth::on_project(state, request, Scope::Admin, MinRole::Admin)?;
    Query::read(request, &[])?;
    Ok((caller.keyed.policy.organization, caller.project))
}

/// The body, if it says to be JSON and is within its limit.
async fn json_body(request: &HttpRequest, payload: Payload) -> Result<Bytes, ApiError> {
    body::check_media(request, Media::Json)?;
    body::read(request, payload, body::BATCH_LIMIT_BYTES).await
}

/// A field that must be there.
fn required<T>(value: Option<T>, name: &str) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::missing(name))
}

/// Makes a change on a thread that may wait for the disk.
async fn change<T: Send + 'static>(
    state: &AppState,
    work: impl FnOnce(&Registry, Instant) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, ApiError> {
    let engine = state.engine.clone();
    match web::block(move || work(engine.registry(), engine.clock().now())).await {
        Ok(result) => Ok(result?),
        Err(error) => {
            tracing::error!(%error, "a change of the control data was cut short");
            Err(ApiError::internal())
        }
    }
}

/// 200 with `answer`, or 304 if the client has it already.
fn shown(request: &HttpRequest, answer: &impl Serialize) -> Result<HttpResponse, ApiError> {
    match serde_json::to_vec(answer) {
        Ok(json) => Ok(operations::tagged(request, "application/json", json.into())),
        Err(error) => {
            tracing::error!(%error, "an answer can't be written as JSON");
            Err(ApiError::internal())
        }
    }
}

/// 201 with `answer`, which nobody may keep: it can hold a secret.
fn created(answer: &impl Serialize) -> HttpResponse {
    HttpResponse::Created().insert_header((header::CACHE_CONTROL, "no-store")).json(answer)
}
