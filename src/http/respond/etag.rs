//! `ETag` and `If-None-Match`: what lets a dashboard poll for nothing.

use std::hash::Hasher;

use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpRequest, HttpResponse};
use headcount_actors::engine::AskError;
use headcount_actors::registry::Organization;
use headcount_domain::money::Currency;
use headcount_domain::time::{Day, Timezone};
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

use crate::http::AppState;
use crate::http::extract::auth::ProjectCaller;
use crate::http::respond::error::ApiError;

/// In `If-None-Match`: whatever there is.
const ANY: &str = "*";

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
        Ok(Self::new(hash, policy.timezone, policy.currency, today, request, body))
    }

    /// The tag of an answer about a whole organization: as for a project, with the versions of all its projects.
    pub async fn of_organization(
        state: &AppState,
        organization: &Organization,
        today: Option<Day>,
        request: &HttpRequest,
    ) -> Result<Self, ApiError> {
        let (incarnation, versions) = state.engine.organization_version(organization.id).await?;
        let mut hash = Xxh3::new();
        hash.write_u128(incarnation);
        hash.write_u128(versions);
        hash.write_u64(organization.id.0);
        Ok(Self::new(hash, organization.timezone, organization.currency, today, request, &[]))
    }

    fn new(
        mut hash: Xxh3,
        timezone: Timezone,
        currency: Currency,
        today: Option<Day>,
        request: &HttpRequest,
        body: &[u8],
    ) -> Self {
        hash.write_i32(today.map_or(i32::MIN, |day| day.0));
        // Until the first event these can change.
        hash.write(timezone.name().as_bytes());
        hash.write(currency.as_str().as_bytes());
        for part in [request.path().as_bytes(), request.query_string().as_bytes(), body] {
            hash.write_usize(part.len());
            hash.write(part);
        }
        Self(format!("\"{:032x}\"", hash.digest128()))
    }

    /// 304, if the client has this answer already; else 200 with what `asked` comes to, which is asked only then.
    pub async fn reply<T, A: Serialize>(
        &self,
        request: &HttpRequest,
        asked: impl Future<Output = Result<T, AskError>>,
        answer: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse, ApiError> {
        match self.unchanged(request, |known| known == ANY || self.is(known)) {
            Some(unchanged) => Ok(unchanged),
            None => Ok(self.answer(&answer(asked.await?))),
        }
    }

    /// The same about a thing that may not be there: 404, if so. `*` stands for any answer about a thing that is there, so
    /// that has to be known first.
    pub async fn reply_about<T, A: Serialize>(
        &self,
        request: &HttpRequest,
        thing: &'static str,
        asked: impl Future<Output = Result<Option<T>, AskError>>,
        answer: impl FnOnce(T) -> A,
    ) -> Result<HttpResponse, ApiError> {
        if let Some(unchanged) = self.unchanged(request, |known| self.is(known)) {
            return Ok(unchanged);
        }
        let found = asked.await?.ok_or_else(|| ApiError::not_found(thing))?;
        Ok(self.unchanged(request, |known| known == ANY).unwrap_or_else(|| self.answer(&answer(found))))
    }

    fn is(&self, known: &str) -> bool {
        known.strip_prefix("W/").unwrap_or(known) == self.0
    }

    fn unchanged(&self, request: &HttpRequest, matches: impl Fn(&str) -> bool) -> Option<HttpResponse> {
        let known = request.headers().get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
        let unchanged = known.flat_map(|list| list.split(',')).any(|known| matches(known.trim()));
        unchanged.then(|| HttpResponse::NotModified().insert_header((header::ETAG, self.value())).finish())
    }

    /// 200 with `answer` and this tag.
    fn answer(&self, answer: &impl Serialize) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((header::ETAG, self.value()))
            .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")))
            .json(answer)
    }

    fn value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static("\"\""))
    }
}
