//! `Headcount-Min-Position`: a question that counts an event whose 202 the client has, whoever
//! answers it.
//!
//! The owner of a project has applied an event before it answers 202, and a later owner before it
//! answers anything. So the position is nearly always reached; the header makes an answer without
//! the event an error.

use std::time::Duration;

use actix_web::http::header::HeaderName;
use headcount_domain::{OrganizationId, ProjectId};

use crate::app::AppState;
use crate::extract::auth;
use crate::request::HttpRequest;
use crate::respond::error::{ApiError, Result};

const MIN_POSITION: HeaderName = HeaderName::from_static("headcount-min-position");
/// How long a question waits for the event.
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until the event that the request names is counted here. Takes the request from the limit of its token first, and a place of its organization if it has to wait.
async fn wait(state: &AppState, request: &HttpRequest, (project, organization): (ProjectId, OrganizationId)) -> Result<()> {
    let Some(value) = request.headers().get(MIN_POSITION) else { return Ok(()) };
    auth::anybody(state, request)?;
    let position = value.to_str().ok().and_then(|text| text.parse().ok()).ok_or_else(|| {
        ApiError::parameter("Headcount-Min-Position", "must be the `position` of an event, as 202 answers it: a whole number")
    })?;
    if state.engine.has_applied(project, position).await? {
        return Ok(());
    }
    let place = state.waiting.0.wait(organization, Duration::ZERO).await;
    let _place = place.ok_or_else(|| ApiError::overloaded("too many questions wait for positions that are not there"))?;
    match state.engine.wait_until_applied(project, position, PATIENCE).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(ApiError::overloaded(format!("the figures do not reach position {position} of this project yet"))),
        Err(error) => Err(error.into()),
    }
}

/// Whether a request names a position.
pub(crate) fn is_named(request: &HttpRequest) -> bool {
    request.headers().contains_key(MIN_POSITION)
}

/// Has a question about the project in the path wait for the position that it names.
pub async fn reach(state: &AppState, request: &HttpRequest) -> Result<()> {
    if let Ok(project) = request.parameter("project_id").parse()
        // To whom the project does not exist, nothing is said of its positions.
        && auth::is_visible(state, request, project)
        && let Some(organization) = auth::organization_of(state, request)
    {
        wait(state, request, (project, organization)).await?;
    }
    Ok(())
}
