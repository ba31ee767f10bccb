//! CORS for queries: the pages that may ask with a token, as configured. Ingestion has rules of its
//! own, by project (`features/events/src/cors.rs`).

use actix_web::http::Method;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder};

use crate::app::AppState;
use crate::error_reader;
use crate::request::HttpRequest;
use crate::respond::error::CORS_EXPOSED_HEADERS;

/// The paths whose answers any page may read, or those that the project allows.
const INGESTION_PATHS: [&str; 4] = ["/i", "/track", "/i/batch", "/hc.js"];
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, content-encoding, headcount-min-position, if-none-match, x-request-id, last-event-id",
);
const MAX_AGE_SECONDS: HeaderValue = HeaderValue::from_static("86400");

/// The part that a request has in CORS for queries.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// The page's origin, if it may read the answer.
    origin: Option<HeaderValue>,
}

impl Page {
    /// The page that sent a query; `None` for events, and where no origins are configured.
    pub(crate) fn of(state: &AppState, request: &HttpRequest) -> Option<Self> {
        let path = request.path();
        if state.query_origins.is_empty()
            || INGESTION_PATHS.contains(&path)
            || path.starts_with(error_reader::PREFIX)
            || state.extra_paths.paths().any(|extra| extra == path)
        {
            return None;
        }
        let origin = request.headers().get(header::ORIGIN);
        let is_allowed = |origin: &&HeaderValue| {
            let origin = origin.to_str().unwrap_or_default();
            state.query_origins.iter().any(|allowed| allowed.eq_ignore_ascii_case(origin))
        };
        Some(Self { origin: origin.filter(is_allowed).cloned() })
    }

    /// Answers the question of a browser whether the page may send a request. A preflight has no token: the request itself decides.
    pub(crate) fn preflight(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let is_preflight =
            request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        self.origin.as_ref().filter(|_| is_preflight)?;
        let mut response: HttpResponseBuilder = HttpResponse::NoContent();
        response.insert_header((header::ACCESS_CONTROL_ALLOW_METHODS, METHODS));
        response.insert_header((header::ACCESS_CONTROL_ALLOW_HEADERS, HEADERS));
        response.insert_header((header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS));
        Some(response.finish())
    }

    /// Lets the page read an answer. Pages send their tokens themselves, so that credentials of the browser aren't allowed.
    pub(crate) fn allow(self, headers: &mut HeaderMap) {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
        if let Some(origin) = self.origin {
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, CORS_EXPOSED_HEADERS);
        }
    }
}
