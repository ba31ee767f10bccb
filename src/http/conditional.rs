//! `ETag` and `If-None-Match`: what lets a dashboard poll for nothing.

use std::hash::Hasher;

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use headcount_domain::time::Day;
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use super::AppState;
use super::auth::ProjectCaller;
use super::error::ApiError;

/// The tag of an answer: it changes exactly when the answer can have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag(String);

impl Tag {
    /// The tag of an answer about one project: the data's incarnation and version, today if the question is relative to
    /// it, and the question itself.
    pub async fn of_project(
        state: &AppState,
        caller: &ProjectCaller,
        today: Option<Day>,
        request: &HttpRequest,
        body: &[u8],
    ) -> Result<Self, ApiError> {
        let (incarnation, version) = state.engine.version(caller.project).await?;
        let policy = &caller.keyed.policy;
        let mut hash = Xxh3::new();
        hash.write_u128(incarnation);
        hash.write_u64(version);
        hash.write_i32(today.map_or(i32::MIN, |day| day.0));
        // Until the first event these can change.
        hash.write(policy.timezone.name().as_bytes());
        hash.write(policy.currency.as_str().as_bytes());
        for part in [request.path().as_bytes(), request.query_string().as_bytes(), body] {
            hash.write_usize(part.len());
            hash.write(part);
        }
        Ok(Self(format!("\"{:032x}\"", hash.digest128())))
    }

    /// 304, if the client has this answer already.
    pub fn not_modified(&self, request: &HttpRequest) -> Option<HttpResponse> {
        let known = request.headers().get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
        let matches = |candidate: &str| candidate == "*" || candidate.strip_prefix("W/").unwrap_or(candidate) == self.0;
        let unchanged = known.flat_map(|list| list.split(',')).any(|candidate| matches(candidate.trim()));
        unchanged.then(|| HttpResponse::NotModified().insert_header((header::ETAG, self.value())).finish())
    }

    /// 200 with `answer` and this tag.
    pub fn answer(&self, answer: &impl Serialize) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((header::ETAG, self.value()))
            .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")))
            .json(answer)
    }

    fn value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static("\"\""))
    }
}
