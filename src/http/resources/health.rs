//! `GET /healthz`, `/readyz` and `/version`.

use actix_web::http::header;
use headcount_api::endpoint::*;

/// That the server is alive, or ready.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthAnswer {
    /// `ok`.
    status: &'static str,
}

fn ok() -> HttpResponse {
    HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(HealthAnswer { status: "ok" })
}

/// Whether the process answers at all.
#[utoipa::path(
    get, path = "/healthz", tag = "operations",
    responses((status = 200, description = "It does.", body = HealthAnswer)),
    security(())
)]
pub(crate) async fn healthz(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse> {
    alive(&request)
}

/// Answers that the process does, also while it starts.
pub(crate) fn alive(request: &HttpRequest) -> Result<HttpResponse> {
    NoParameters::check(request)?;
    Ok(ok())
}

/// Whether events can be taken and every figure can be asked for.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses((status = 200, description = "They can.", body = HealthAnswer), UnavailableErrors),
    security(())
)]
pub(crate) async fn readyz(ApiCall { state, request, .. }: ApiCall) -> Result<HttpResponse> {
    NoParameters::check(&request)?;
    if let Some(why) = state.engine.admission.unavailable() {
        return Err(ApiError::overloaded(why));
    }
    match state.engine.ready().await {
        Ok(()) => Ok(ok()),
        Err(why) => {
            tracing::warn!(%why, "not ready");
            Err(ApiError::overloaded(why))
        }
    }
}

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
pub(crate) async fn version(ApiCall { request, .. }: ApiCall) -> Result<HttpResponse> {
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
    async fn a_server_is_alive_and_ready_until_it_is_closed() {
        let server = TestServer::start();
        for path in ["/healthz", "/readyz"] {
            let answer = server.send(TestRequest::with_uri(path)).await;
            assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &br#"{"status":"ok"}"#[..]), "{path}");
        }
        server.engine().close().await;
        let answer = server.send(TestRequest::with_uri("/readyz")).await;
        assert_eq!(answer.refusal(), (503, "overloaded".to_owned(), None));
        assert!(answer.headers.contains_key(header::RETRY_AFTER));
    }

    #[actix_web::test]
    async fn the_version_is_that_of_the_program() {
        let server = TestServer::start();
        let version = server.send(TestRequest::with_uri("/version")).await.json();
        assert_eq!(version, serde_json::json!({"name": "headcount", "version": env!("CARGO_PKG_VERSION"), "api": API_VERSION}));
    }
}
