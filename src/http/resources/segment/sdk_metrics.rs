//! `POST /v1/m`

use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse};

use super::answer::SegmentAnswer;
use crate::http::extract::body;
use crate::http::openapi::responses::SegmentErrors;
use crate::http::resources::events::cors;
use crate::http::respond::error::ApiError;

/// Takes the metrics of an SDK, and drops them.
#[utoipa::path(
    post, path = "/v1/m", tag = "segment", operation_id = "segment_metrics",
    request_body(content = String, content_type = "text/plain"),
    responses((status = 200, description = "They were read.", body = SegmentAnswer), SegmentErrors),
    security(())
)]
pub(crate) async fn sdk_metrics(request: HttpRequest, payload: Payload) -> Result<HttpResponse, ApiError> {
    body::read(&request, payload, body::EVENT_LIMIT_BYTES).await?;
    cors::readable(Ok(HttpResponse::Ok().json(SegmentAnswer::DONE)), &request)
}
