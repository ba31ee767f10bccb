//! Whether a request may go on: a client chooses how long its body takes, and its credential may end meanwhile.

use actix_web::web::Data;
use actix_web::{HttpMessage, HttpRequest};
use headcount_actors::registry::Authority;

use crate::http::app::AppState;
use crate::http::respond::error::ApiError;

/// Checks that the credential is still worth what it was when the request was let in (`auth.rs`). Every body ends with this check.
pub(crate) fn check_again(request: &HttpRequest) -> Result<(), ApiError> {
    let Some(state) = request.app_data::<Data<AppState>>() else { return Ok(()) };
    let extensions = request.extensions();
    let Some(authority) = extensions.get::<Authority>() else { return Ok(()) };
    Ok(state.engine.registry().check_authority(authority, state.engine.clock().now())?)
}
