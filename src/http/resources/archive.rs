//! `POST /admin/archive/seal`: needs the operator token.

use actix_web::HttpResponse;
use headcount_actors::domain::fault::FaultKind;
use headcount_actors::{AskError, SealError, Sealed};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::call::ApiCall;
use crate::http::extract::query::NoParameters;
use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

/// What was sealed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SealAnswer {
    /// The position up to which all events are in the archive, except those of `waiting_projects`.
    sealed_until: u64,
    /// The number of events that were added to the archive.
    events: u64,
    /// The projects whose events stay in the log, because their list of archive files is damaged.
    waiting_projects: Vec<String>,
}

/// Moves all recorded events from the log to the archive.
///
/// Writes checkpoints first, so it may take some seconds. If it fails, the events stay in the log.
#[utoipa::path(
    post, path = "/admin/archive/seal", tag = "operations", operation_id = "seal_archive",
    responses((status = 200, description = "Everything recorded before the request is sealed, except events of `waiting_projects`.", body = SealAnswer)),
    security(("operator_token" = []))
)]
pub(crate) async fn seal(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    let sealed = state.engine.seal_everywhere().await.map_err(|error| {
        tracing::warn!(%error, "the archive could not be sealed");
        match error {
            SealError::Here(fault) if fault.kind == FaultKind::DamagedArchive => ApiError::from(AskError::Lost(fault)),
            SealError::Here(_) => {
                ApiError::overloaded("the events could not be sealed now; they stay in the log, and the server's log says why")
            }
            SealError::NoFiles => ApiError::new(ErrorCode::UnsupportedInCluster, error.to_string()),
            // Only the operator asks.
            SealError::Node { .. } | SealError::Partitions(_) => {
                ApiError::overloaded(format!("not everything is sealed: {error}; what is not stays in the log"))
            }
        }
    })?;
    let Sealed { sealed_until, events, waiting, .. } = sealed;
    let waiting_projects = waiting.iter().map(ToString::to_string).collect();
    Ok(HttpResponse::Ok().json(SealAnswer { sealed_until, events, waiting_projects }))
}
