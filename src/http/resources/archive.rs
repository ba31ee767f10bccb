//! `POST /admin/archive/seal`: needs the operator token.

use actix_web::{HttpRequest, HttpResponse, web};
use headcount_actors::AskError;
use headcount_actors::domain::fault::FaultKind;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::app::AppState;
use crate::http::extract::auth;
use crate::http::extract::query::NoParameters;
use crate::http::openapi::responses::{TokenErrors, UnavailableErrors};
use crate::http::respond::error::ApiError;

/// What was sealed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SealAnswer {
    /// The position up to which all events of all projects are in the archive.
    sealed_until: u64,
    /// The number of events that were added to the archive.
    events: u64,
}

/// Moves all recorded events from the log to the archive.
///
/// Writes checkpoints first, so it may take some seconds. If it fails, the events stay in the log.
#[utoipa::path(
    post, path = "/admin/archive/seal", tag = "operations", operation_id = "seal_archive",
    responses((status = 200, description = "Everything recorded before the request is sealed.", body = SealAnswer), TokenErrors, UnavailableErrors),
    security(("operator_token" = []))
)]
pub(crate) async fn seal(state: web::Data<AppState>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    auth::operator(&state, &request)?;
    NoParameters::check(&request)?;
    let sealed = state.engine.seal_archive().await.map_err(|fault| {
        tracing::warn!(%fault, "the archive could not be sealed");
        match fault.kind {
            FaultKind::DamagedArchive => ApiError::from(AskError::Lost(fault)),
            _ => ApiError::overloaded("the events could not be sealed now; they stay in the log, and the server's log says why"),
        }
    })?;
    Ok(HttpResponse::Ok().json(SealAnswer { sealed_until: sealed.sealed_until, events: sealed.events }))
}
