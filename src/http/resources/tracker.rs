//! `GET /hc.js`

use std::io::Write;
use std::sync::LazyLock;

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::web::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use headcount_api::endpoint::*;

use crate::http::resources::docs::takes_gzip;

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
pub(crate) async fn tracker(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse, ApiError> {
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use actix_web::http::Method;
    use actix_web::test::TestRequest;
    use flate2::read::GzDecoder;

    use super::*;
    use crate::http::tests::server::TestServer;

    const MOST_PACKED_BYTES: usize = 2_200;

    #[actix_web::test]
    async fn pages_of_all_sites_can_load_the_script_and_keep_it() {
        let server = TestServer::start();
        for (uri, encoding) in [("/hc.js?v=2", "identity"), ("/hc.js?key=pk_0&outbound", "br, gzip")] {
            let ask = || TestRequest::with_uri(uri).insert_header((header::ACCEPT_ENCODING, encoding));
            let answer = server.send(ask()).await;
            let tag = answer.headers.get(header::ETAG).unwrap().clone();
            let again = server.send(ask().insert_header((header::IF_NONE_MATCH, tag.clone()))).await;
            assert_eq!((answer.status.as_u16(), again.status.as_u16(), again.body.len()), (200, 304, 0));
            for (name, value) in [
                (header::CACHE_CONTROL, "public, max-age=3600"),
                (header::VARY, "accept-encoding"),
                (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
                (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
                (RESOURCE_POLICY, "cross-origin"),
            ] {
                assert_eq!([&answer, &again].map(|answer| answer.headers.get(&name).unwrap() == value), [true; 2], "{name}");
            }
            assert_eq!(answer.headers.get(header::CONTENT_TYPE).unwrap(), CONTENT_TYPE);
            let head = server.send(ask().method(Method::HEAD)).await;
            assert_eq!((head.status.as_u16(), head.headers.get(header::ETAG)), (200, Some(&tag)));
        }
    }

    #[actix_web::test]
    async fn the_packed_script_is_small() {
        let server = TestServer::start();
        let packed = server.send(TestRequest::with_uri("/hc.js").insert_header((header::ACCEPT_ENCODING, "gzip"))).await;
        assert_eq!(packed.headers.get(header::CONTENT_ENCODING).unwrap(), "gzip");
        assert!(packed.body.len() <= MOST_PACKED_BYTES, "{} bytes", packed.body.len());
        let mut unpacked = Vec::new();
        GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap();
        assert!(unpacked == SCRIPT);
    }
}
