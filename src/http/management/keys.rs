//! `/projects/{project_id}/keys`: rotation of public keys. Several are valid at once.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::http::AppState;
use crate::http::error::ApiError;
use crate::http::openapi::{
    BodyErrors, ConflictErrors, NotFoundErrors, ProjectPath, RequestErrors, TokenErrors, UnavailableErrors,
};
use crate::http::params::Fields;

/// A new public key.
#[derive(Debug, Serialize, ToSchema)]
pub struct KeyAnswer {
    /// The new key.
    public_key: String,
    /// All keys of the project that are valid, oldest first.
    public_keys: Vec<String>,
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
