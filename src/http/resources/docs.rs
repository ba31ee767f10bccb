//! `GET /openapi.json` and `/docs`.

use std::io::Read;

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Bytes;
use flate2::read::GzDecoder;
use headcount_api::call::{Answer, Handler};
use headcount_api::endpoint::*;
use headcount_api::extract::encoding::takes_gzip;
use headcount_api::openapi::schemas::AnyJson;
use headcount_api::routes::Router;

const PAGE: &str = include_str!("../docs/index.html");
/// The files of the page, packed with gzip.
const ASSETS: [(&str, &str, Packed); 3] = [
    ("/docs/start.js", "text/javascript", Packed::Plain(include_bytes!("../docs/start.js"))),
    ("/docs/swagger-ui-bundle.js", "text/javascript", Packed::Gzip(include_bytes!("../docs/swagger-ui-bundle.js.gz"))),
    ("/docs/swagger-ui.css", "text/css", Packed::Gzip(include_bytes!("../docs/swagger-ui.css.gz"))),
];

/// A file that is part of the program.
#[derive(Debug, Clone, Copy)]
enum Packed {
    Plain(&'static [u8]),
    Gzip(&'static [u8]),
}

/// This document: every operation, in OpenAPI 3.1.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "The document.", body = AnyJson, content_type = "application/json"), NotModified),
    security(())
)]
pub(crate) async fn openapi_json(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    Ok(etag::document(&request, "application/json", Bytes::from_static((state.document)().as_bytes())))
}

/// A page that shows this document, and sends requests from it.
#[utoipa::path(
    get, path = "/docs", tag = "operations",
    responses((status = 200, description = "The page.", body = String, content_type = "text/html"), NotModified),
    security(())
)]
pub(crate) async fn docs(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    Ok(etag::document(&request, "text/html; charset=utf-8", Bytes::from_static(PAGE.as_bytes())))
}

/// Adds the files of the page to the routes. They are not part of the interface.
pub(crate) fn add_assets(router: &mut Router) {
    let handlers: [Handler; ASSETS.len()] = [asset::<0>, asset::<1>, asset::<2>];
    for ((path, ..), handler) in ASSETS.iter().zip(handlers) {
        router.on(path, Method::GET, handler);
        router.on(path, Method::HEAD, handler);
    }
}

fn asset<const FILE: usize>(call: ApiCall) -> Answer {
    Box::pin(async move { asset_of(&call.request, &ASSETS[FILE]) })
}

fn asset_of(request: &HttpRequest, (_, content_type, content): &(&str, &'static str, Packed)) -> Result<HttpResponse> {
    NoParameters::check(request)?;
    let mut response = match *content {
        Packed::Plain(bytes) => etag::document(request, content_type, Bytes::from_static(bytes)),
        Packed::Gzip(bytes) if takes_gzip(request) => {
            let mut response = etag::document(request, content_type, Bytes::from_static(bytes));
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        Packed::Gzip(bytes) => {
            let mut plain = Vec::new();
            GzDecoder::new(bytes).read_to_end(&mut plain).map_err(|_| ApiError::internal())?;
            etag::document(request, content_type, plain.into())
        }
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::http::tests::server::TestServer;

    #[actix_web::test]
    async fn the_document_and_its_page_are_served_and_tagged() {
        let server = TestServer::start();
        for (path, content_type) in [("/openapi.json", "application/json"), ("/docs", "text/html; charset=utf-8")] {
            let answer = server.send(TestRequest::with_uri(path)).await;
            assert_eq!(answer.headers.get(header::CONTENT_TYPE).unwrap(), content_type);
            let tag = answer.headers.get(header::ETAG).unwrap().clone();
            let again = server.send(TestRequest::with_uri(path).insert_header((header::IF_NONE_MATCH, tag))).await;
            assert_eq!((again.status.as_u16(), again.body.len()), (304, 0), "{path}");
        }
        assert!(!PAGE.contains("://"), "the page names another place");
    }

    #[actix_web::test]
    async fn the_files_of_the_page_are_served_packed_or_plain() {
        let server = TestServer::start();
        for (path, content_type, content) in ASSETS {
            assert!(PAGE.contains(path.trim_start_matches('/')), "{path}");
            let plain = server.send(TestRequest::with_uri(path)).await;
            assert_eq!(
                (plain.status.as_u16(), plain.headers.get(header::CONTENT_TYPE).unwrap()),
                (200, &HeaderValue::from_static(content_type))
            );
            let packed = TestRequest::with_uri(path).insert_header((header::ACCEPT_ENCODING, "br, gzip"));
            let packed = server.send(packed).await;
            let is_packed = packed.headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
            assert_eq!(is_packed, matches!(content, Packed::Gzip(_)), "{path}");
            let mut unpacked = Vec::new();
            match content {
                Packed::Plain(bytes) => unpacked.extend_from_slice(bytes),
                Packed::Gzip(_) => drop(GzDecoder::new(&packed.body[..]).read_to_end(&mut unpacked).unwrap()),
            }
            assert!(plain.body == unpacked && !unpacked.is_empty(), "{path}");
        }
    }
}
