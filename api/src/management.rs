//! The frame of the management endpoints: the organization, its members, its projects, their public
//! keys, and API tokens.
//!
//! They need a token of role owner or admin with the scope `admin`, except for `POST
//! /organizations`, which needs the root token.

use std::sync::Arc;

use crate::respond::error::Result;
use actix_web::http::header;
use headcount_actors::{Engine, Feature};
use headcount_control::{Author, Registry, RegistryError, Role};
use headcount_domain::{OrganizationId, ProjectId};

use crate::blocking;
use crate::endpoint::*;

/// Returns what an operation without parameters on a project is about, and its author.
pub fn of_project(
    state: &AppState,
    request: &HttpRequest,
    caller: &ProjectCaller,
) -> Result<(OrganizationId, ProjectId, Author)> {
    NoParameters::check(request)?;
    Ok((caller.config.policy.organization, caller.project, caller.caller.author(state, request)))
}

/// Reads a field with a role.
pub fn role(fields: &Fields<'_>, name: &str) -> Result<Role> {
    optional_role(fields, name)?.ok_or_else(|| ApiError::missing(name))
}

/// Reads a field with a role, if it is present.
pub fn optional_role(fields: &Fields<'_>, name: &str) -> Result<Option<Role>> {
    let Some(role) = fields.optional::<String>(name, "a string")? else { return Ok(None) };
    role.parse().map(Some).map_err(|error| ApiError::parameter(name, format!("{role:?} {error}")))
}

/// Makes a change on a thread that may wait for the disk. It is of the time at which it is made.
pub async fn change<T: Send + 'static>(
    state: &AppState,
    author: Author,
    work: impl FnOnce(&Registry, Author) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T> {
    on_engine(state, move |engine| work(engine.registry(), Author { at: engine.clock().now(), ..author })).await
}

/// Makes a change that is more than one of the control data, on a thread that may wait for the disk.
pub async fn on_engine<T: Send + 'static>(
    state: &AppState,
    work: impl FnOnce(&Engine) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T> {
    let engine = state.engine.clone();
    Ok(blocking::run(move || work(&engine)).await??)
}

/// Returns a feature of the engine.
///
/// # Errors
/// The engine was opened without it.
pub fn feature<F: Feature>(state: &AppState) -> Result<Arc<F>> {
    state.engine.feature().ok_or_else(|| {
        tracing::error!(feature = std::any::type_name::<F>(), "the engine was opened without this feature");
        ApiError::internal()
    })
}

/// Makes a change of a feature, on a thread that may wait for the disk.
pub async fn on_feature<F: Feature, T: Send + 'static>(
    state: &AppState,
    work: impl FnOnce(&F) -> Result<T, RegistryError> + Send + 'static,
) -> Result<T> {
    let feature = feature(state)?;
    Ok(blocking::run(move || work(&feature)).await??)
}

/// Returns 200 with `answer`, which must not be stored: it holds a secret.
pub fn unstored(answer: &impl Serialize) -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(answer)
}

/// Returns 201 with `answer`, which must not be stored: it may hold a secret.
pub fn created(answer: &impl Serialize) -> HttpResponse {
    HttpResponse::Created().insert_header((header::CACHE_CONTROL, "no-store")).json(answer)
}
