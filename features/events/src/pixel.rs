//! `GET /i`: an event from a page without script.

use actix_web::http::header::{self, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use headcount_api::endpoint::*;
use headcount_api::extract::body::{self, BodyContent};
use headcount_api::extract::query::QueryString;
use headcount_domain::intake::admission::Sender;

use super::cors;
use super::ingest::{EventDestination, by_public_key, public_key, record_event};

/// A 1×1 transparent GIF.
const PIXEL: &[u8] = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;";

/// Records one event from a page without script; the answer is a 1×1 GIF.
#[utoipa::path(
    get, path = "/i", tag = "events",
    params(
        ("pk" = String, Query, description = "The public key.", pattern = "^pk_[0-9A-Za-z]{32}$"),
        ("d" = String, Query, description = "The event's JSON in base64url.", pattern = "^[0-9A-Za-z_-]+={0,2}$"),
    ),
    responses(
        (status = 200, description = "It is on disk, and every later read counts it.", content_type = "image/gif"),
        PixelErrors,
    ),
    security(())
)]
pub(crate) async fn pixel(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    let query = QueryString::read_leniently(&request);
    let key = public_key(&state, &request, &query);
    by_public_key(&state, &request, key, (), async |EventDestination { project, allowance }, ()| {
        cors::check_referrer(&project, &request)?;
        let data = query.text("d").ok_or_else(|| ApiError::missing("d"))?;
        let decoded = URL_SAFE_NO_PAD.decode(data).or_else(|_| URL_SAFE.decode(data));
        let body = decoded.map_err(|_| ApiError::parameter("d", "`d` must be the event's JSON in base64url"))?;
        if body.len() > body::EVENT_LIMIT_BYTES {
            return Err(ApiError::too_large(body::EVENT_LIMIT_BYTES));
        }
        let permit = body::admit(&state, &request, BodyContent::Events(Some(project.policy.project)), body.len())?;
        allowance.take(&state, 1)?;
        record_event(&state, &request, project, &body, Sender::Public, permit).await?;
        let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        Ok(HttpResponse::Ok().content_type("image/gif").insert_header(no_store).body(PIXEL))
    })
    .await
}
