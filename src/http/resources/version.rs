//! `GET /version`.

use actix_web::HttpResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::call::ApiCall;
use crate::http::extract::query::NoParameters;
use crate::http::openapi::responses::NotModified;
use crate::http::respond::error::ApiError;
use crate::http::respond::etag;

/// The date of the interface. It changes with what clients see, and only by additions.
pub(crate) const API_VERSION: &str = "2026-11-20";

/// The same as a version that generators of clients accept.
pub(crate) const API_SEMVER: &str = "2026.11.20";

/// Which version runs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VersionAnswer {
    /// `headcount`.
    name: &'static str,
    /// The version of the program.
    version: &'static str,
    /// The date of the interface.
    #[schema(format = Date)]
    api: &'static str,
}

/// Which version runs.
#[utoipa::path(
    get, path = "/version", tag = "operations",
    responses((status = 200, description = "This one.", body = VersionAnswer), NotModified),
    security(())
)]
pub(crate) async fn version(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse, ApiError> {
    NoParameters::check(&request)?;
    let answer = VersionAnswer { name: "headcount", version: env!("CARGO_PKG_VERSION"), api: API_VERSION };
    etag::json(&request, &answer)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::http::tests::server::TestServer;

    #[actix_web::test]
    async fn the_version_is_that_of_the_program() {
        let server = TestServer::start();
        let version = server.send(TestRequest::with_uri("/version")).await.json();
        assert_eq!(version, serde_json::json!({"name": "headcount", "version": env!("CARGO_PKG_VERSION"), "api": API_VERSION}));
    }
}
