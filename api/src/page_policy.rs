//! What a page of this server may do: the header `Content-Security-Policy` of every answer in HTML.

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use headcount_control::ShareId;

use crate::app::AppState;
use crate::request::HttpRequest;

/// Where the page of a share begins, before the share's id. Its origins may show it in a frame.
pub const SHARE_PATH: &str = "/ui/share/";

/// Pages load scripts, styles and figures from this server alone, and send nothing to another one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors ";

/// Adds the headers of a page to an answer that is one.
pub(crate) fn apply(state: &AppState, request: &HttpRequest, headers: &mut HeaderMap) {
    // Most answers are those to events, which are sent with POST.
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return;
    }
    let is_html = |value: &HeaderValue| value.as_bytes().starts_with(b"text/html");
    // A page may have a stricter policy of its own.
    if !headers.get(header::CONTENT_TYPE).is_some_and(is_html) || headers.contains_key(header::CONTENT_SECURITY_POLICY) {
        return;
    }
    let policy = format!("{POLICY}{}", frame_ancestors(state, request.path()));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    // Its own host only: the `Referer` says whether the page itself asks, or that of a share
    // (`extract/cookie.rs`).
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
}

/// The pages that may show the page at `path` in a frame.
pub fn frame_ancestors(state: &AppState, path: &str) -> String {
    // The share's id, and the part of the page that is shown.
    let id = path.strip_prefix(SHARE_PATH).and_then(|rest| rest.split('/').next()?.parse::<ShareId>().ok());
    let share = id.and_then(|id| state.engine.registry().share(&id));
    match share.filter(|share| !share.is_expired(state.engine.clock().now())) {
        Some(share) if !share.embed_origins.is_empty() => share.embed_origins.join(" "),
        _ => "'none'".to_owned(),
    }
}
