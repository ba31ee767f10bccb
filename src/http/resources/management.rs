//! The frame of the management endpoints: the organization, its members, its projects, their public keys, and API tokens.
//!
//! They need a token of role owner or admin with the scope `admin`, except for `POST /organizations`, which needs the root token.

use actix_web::http::header;
use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::Engine;
use headcount_control::{Author, Registry, RegistryError, Role, Scope};
use headcount_domain::ids::{OrganizationId, ProjectId};
use serde::Serialize;

use crate::http::app::AppState;
use crate::http::extract::auth::{self, Caller, MinRole};
use crate::http::extract::json::Fields;
use crate::http::extract::query::NoParameters;
use crate::http::respond::error::ApiError;

/// Checks the caller of an operation on the organization.
pub(crate) fn caller(state: &AppState, request: &HttpRequest) -> Result<Caller, ApiError> {
    let caller = auth::organization_wide(state, request, Scope::Admin, MinRole::Admin)?;
    NoParameters::check(request)?;
    Ok(caller)
}

/// Checks the caller of an operation on a project, for which a token of that project suffices.
pub(crate) fn project_caller(state: &AppState, request: &HttpRequest) -> Result<(OrganizationId, ProjectId, Author), ApiError> {
    let caller = auth::on_project(state, request, Scope::Admin, MinRole::Admin)?;
    NoParameters::check(request)?;
    Ok((caller.config.policy.organization, caller.project, caller.caller.author(state, request)))
}

/// Reads a field with a role.
pub(crate) fn role(fields: &Fields<'_>, name: &str) -> Result<Role, ApiError> {
    optional_role(fields, name)?.ok_or_else(|| ApiError::missing(name))
}

/// Reads a field with a role, if it is present.
pub(crate) fn optional_role(fields: &Fields<'_>, name: &str) -> Result<Option<Role>, ApiError> {
    let Some(role) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    role.parse().map(Some).map_err(|error| ApiError::parameter(name, format!("{role:?} {error}")))
}

/// Makes a change on a thread that may wait for the disk. It is of the time at which it is made.
pub(crate) async fn change<T: Send + 'static>(
    state: &AppState,
    author: Author,
    work: impl FnOnce(&Registry, Author) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, ApiError> {
    on_engine(state, move |engine| work(engine.registry(), Author { at: engine.clock().now(), ..author })).await
}

/// Makes a change that is more than one of the control data, on a thread that may wait for the disk.
pub(crate) async fn on_engine<T: Send + 'static>(
    state: &AppState,
    work: impl FnOnce(&Engine) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T, ApiError> {
    let engine = state.engine.clone();
    match web::block(move || work(&engine)).await {
        Ok(result) => Ok(result?),
        Err(error) => {
            tracing::error!(%error, "a change of the control data was cut short");
            Err(ApiError::internal())
        }
    }
}

/// Returns 200 with `answer`, which must not be stored: it holds a secret.
pub(crate) fn unstored(answer: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(answer)
}

/// Returns 201 with `answer`, which must not be stored: it may hold a secret.
pub(crate) fn created(answer: &impl Serialize) -> HttpResponse {
    HttpResponse::Created().insert_header((header::CACHE_CONTROL, "no-store")).json(answer)
}
