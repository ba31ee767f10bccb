//! What a page of this server may do: the header `Content-Security-Policy` of every answer in HTML.

use actix_web::dev::ServiceResponse;
use actix_web::http::Method;
use actix_web::http::header::{self, HeaderValue};
use headcount_control::ShareId;

use crate::http::app::AppState;

/// Where the page of a share begins, before the share's id. Its origins may show it in a frame.
pub(crate) const SHARE_PATH: &str = "/ui/share/";

/// Pages load scripts, styles and figures from this server alone, and send nothing to another one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors ";

/// Adds the headers of a page to an answer that is one.
pub(crate) fn apply<B>(state: &AppState, response: &mut ServiceResponse<B>) {
    // Most answers are those to events, which are sent with POST.
    if ![Method::GET, Method::HEAD].contains(response.request().method()) {
        return;
    }
    let is_html = |value: &HeaderValue| value.as_bytes().starts_with(b"text/html");
    if !response.headers().get(header::CONTENT_TYPE).is_some_and(is_html) {
        return;
    }
    let policy = format!("{POLICY}{}", frame_ancestors(state, response.request().path()));
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Its own host only: the `Referer` says whether the page itself asks, or that of a share (`extract/cookie.rs`).
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// The pages that may show the page at `path` in a frame.
fn frame_ancestors(state: &AppState, path: &str) -> String {
    // The share's id, and the part of the page that is shown.
    let id = path.strip_prefix(SHARE_PATH).and_then(|rest| rest.split('/').next()?.parse::<ShareId>().ok());
    let share = id.and_then(|id| state.engine.registry().share(&id));
    match share.filter(|share| !share.is_expired(state.engine.clock().now())) {
        Some(share) if !share.embed_origins.is_empty() => share.embed_origins.join(" "),
        _ => "'none'".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;
    use headcount_control::NewShare;

    use super::*;
    use crate::http::tests::server::TestServer;

    #[actix_web::test]
    async fn a_page_may_load_nothing_from_elsewhere() {
        let server = TestServer::start();
        for method in [Method::GET, Method::HEAD] {
            let answer = server.send(TestRequest::with_uri("/docs").method(method)).await;
            let policy = answer.headers.get(header::CONTENT_SECURITY_POLICY).unwrap().to_str().unwrap();
            assert_eq!(
                policy,
                "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                 base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
            );
            assert_eq!(answer.headers.get(header::X_CONTENT_TYPE_OPTIONS).unwrap(), "nosniff");
            assert_eq!(answer.headers.get(header::REFERRER_POLICY).unwrap(), "same-origin");
        }
        let answer = server.send(TestRequest::with_uri("/openapi.json")).await;
        assert!(!answer.headers.contains_key(header::CONTENT_SECURITY_POLICY), "it is no page");
    }

    #[actix_web::test]
    async fn the_page_of_a_share_may_stand_in_frames_of_its_origins() {
        let server = TestServer::start();
        let (registry, now) = (server.engine().registry(), server.engine().clock().now());
        let share = |origins: &[&str], expires_at| {
            let embed_origins = origins.iter().map(ToString::to_string).collect();
            let new = NewShare { name: "s".into(), embed_origins, expires_at, ..NewShare::default() };
            registry.create_share(server.keys.organization_id, server.keys.project_id, new, now).unwrap().0.id
        };
        let embedded = share(&["https://a.example", "http://b.example:8080"], None);
        let table = [
            (format!("{SHARE_PATH}{embedded}"), "https://a.example http://b.example:8080"),
            (format!("{SHARE_PATH}{}", share(&[], None)), "'none'"),
            (format!("{SHARE_PATH}{}", share(&["https://a.example"], Some(now.plus_ms(1)))), "'none'"),
            (format!("{SHARE_PATH}{embedded}/live"), "https://a.example http://b.example:8080"),
            (format!("{SHARE_PATH}other/{embedded}"), "'none'"),
            (format!("{SHARE_PATH}shr_0000000000000000"), "'none'"),
            (format!("/ui/{embedded}"), "'none'"),
            ("/".to_owned(), "'none'"),
        ];
        std::thread::sleep(std::time::Duration::from_millis(2));
        for (path, expected) in table {
            assert_eq!(frame_ancestors(server.state(), &path), expected, "{path}");
        }
        registry.revoke_share(server.keys.organization_id, server.keys.project_id, &embedded, now).unwrap();
        assert_eq!(frame_ancestors(server.state(), &format!("{SHARE_PATH}{embedded}")), "'none'");
    }
}
