//! Operations that only a server does that is alone: what they change lies on one machine's disk, and would not follow its project to another node.

use actix_web::Error;
use actix_web::body::BoxBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;

use crate::http::respond::code::ErrorCode;
use crate::http::respond::error::ApiError;

const OPERATIONS: [(Method, &str); 1] = [(Method::POST, "/admin/backup")];

/// Whether a node of a cluster refuses an operation.
pub(crate) fn is_refused(method: &Method, path: &str) -> bool {
    OPERATIONS.iter().any(|(refused, of)| refused == method && *of == path)
}

/// Refuses a request.
pub(crate) async fn refuse(request: ServiceRequest, _: Next<BoxBody>) -> Result<ServiceResponse, Error> {
    let message = "a node of a cluster can't do this yet; only a server that is alone does";
    Ok(request.error_response(ApiError::new(ErrorCode::UnsupportedInCluster, message)))
}
