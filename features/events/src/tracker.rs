//! `GET /hc.js`

use std::io::Write;
use std::sync::LazyLock;

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use headcount_api::endpoint::*;
use headcount_api::extract::encoding::takes_gzip;

/// What `npm run build` makes of `tracker/hc.ts`.
const SCRIPT: &[u8] = include_bytes!("../../../tracker/dist/hc.js");
const CONTENT_TYPE: &str = "text/javascript; charset=utf-8";
/// Pages load the script on every visit, and it changes with releases only. An hour is the time after which all pages have a new one.
const CACHE_CONTROL: HeaderValue = HeaderValue::from_static("public, max-age=3600");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The script packed as well as gzip can: it is packed once, and sent to every visitor.
static PACKED: LazyLock<Option<Bytes>> = LazyLock::new(|| {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(SCRIPT).ok()?;
    packer.finish().ok().map(Bytes::from)
});

/// The tracker: a script that sends the pageviews and events of a page. It is described in `docs/TRACKER.md`.
///
/// Parameters are ignored: pages add one to get a new script at once, and tag managers the key, which the script itself reads.
#[utoipa::path(
    get, path = "/hc.js", tag = "events", operation_id = "tracker",
    responses((status = 200, description = "The script.", body = String, content_type = "text/javascript"), NotModified),
    security(())
)]
pub(crate) async fn tracker(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse> {
    let packed = PACKED.as_ref().filter(|_| takes_gzip(&request));
    let content = packed.cloned().unwrap_or(Bytes::from_static(SCRIPT));
    let mut response = etag::document(&request, CONTENT_TYPE, content);
    let is_sent = response.status().is_success();
    let headers = response.headers_mut();
    if is_sent && packed.is_some() {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(header::CACHE_CONTROL, CACHE_CONTROL);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Pages of all sites load it, those too that are isolated or check its integrity.
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    Ok(response)
}
