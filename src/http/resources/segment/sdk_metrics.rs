//! `POST /v1/m`

use actix_web::HttpResponse;

use super::answer::SegmentAnswer;
use crate::http::call::ApiCall;
use crate::http::extract::body::{self, BodyContent};
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
pub(crate) async fn sdk_metrics(ApiCall { state, request, payload }: ApiCall) -> Result<HttpResponse, ApiError> {
    let permit = body::admit(&state, &request, BodyContent::Other(None), body::FIRST_BYTES)?;
    body::discard(&request, payload, permit, body::EVENT_LIMIT_BYTES).await?;
    cors::readable(Ok(HttpResponse::Ok().json(SegmentAnswer::DONE)), &request)
}
