//! `GET /openapi.json` and `/docs`.

use actix_web::http::header;
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType};
use utoipa::{PartialSchema, ToSchema};

use crate::http::extract::query::NoParameters;
use crate::http::openapi::responses::{NotModified, RequestErrors};
use crate::http::respond::error::ApiError;
use crate::http::respond::etag;

const DOCS: &str = include_str!("../openapi/docs.html");
/// The page runs its own script and asks this server, nothing else.
const DOCS_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                           base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The OpenAPI document as JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentJson(pub(crate) &'static str);

/// The schema of any JSON.
pub(crate) struct AnyJson;

impl PartialSchema for AnyJson {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some("Any JSON.")).into()
    }
}

impl ToSchema for AnyJson {}

/// This document: every operation, in OpenAPI 3.1.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operations",
    responses(
        (status = 200, description = "The document.", body = AnyJson, content_type = "application/json"),
        NotModified, RequestErrors,
    ),
    security(())
)]
pub(crate) async fn openapi_json(document: Data<DocumentJson>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    Ok(etag::document(&request, "application/json", Bytes::from_static(document.0.as_bytes())))
}

/// A page that shows this document.
#[utoipa::path(
    get, path = "/docs", tag = "operations",
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html"),
        NotModified, RequestErrors,
    ),
    security(())
)]
pub(crate) async fn docs(request: HttpRequest) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    let mut page = etag::document(&request, "text/html; charset=utf-8", Bytes::from_static(DOCS.as_bytes()));
    let headers = page.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, header::HeaderValue::from_static(DOCS_POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    Ok(page)
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
        // Nothing of the page comes from elsewhere.
        assert!(!DOCS.contains("://"), "the page names another place");
    }
}
