//! `ETag` and `If-None-Match`: a client that has an answer already gets 304, without a body.

use std::hash::Hasher;

use crate::request::HttpRequest;
use actix_web::HttpResponse;
use actix_web::http::header::{self, HeaderValue};
use actix_web::web::Bytes;
use headcount_common::answers_version;
use headcount_domain::{Currency, Day, Timezone};
use serde::Serialize;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::respond::error::{ApiError, Result};

const JSON: &str = "application/json";
/// Stands in `If-None-Match` for any answer.
const ANY: &str = "*";

/// The tag of an answer: it changes whenever the answer may have changed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntityTag(String);

/// The state that an answer was computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataVersion {
    /// The incarnation of the data directory.
    pub incarnation: u128,
    /// The version of the project, or a hash of the versions of an organization's projects.
    pub version: u128,
    /// The project or organization.
    pub id: u64,
    /// The timezone and currency, which may change until the first event is recorded.
    pub timezone: Timezone,
    pub currency: Currency,
    /// The current day, if the question is relative to it.
    pub today: Option<Day>,
    /// A number of what else the answer depends on.
    pub variant: u64,
}

impl EntityTag {
    /// Returns the tag of the answer to a request, known before the answer is.
    pub(crate) fn of_answer(data: &DataVersion, request: &HttpRequest, body: &[u8]) -> Self {
        Self::of_answer_by(answers_version(), data, request, body)
    }

    fn of_answer_by(version: &str, data: &DataVersion, request: &HttpRequest, body: &[u8]) -> Self {
        let mut hash = Xxh3::new();
        hash.write_u128(data.incarnation);
        hash.write_u128(data.version);
        hash.write_u64(data.id);
        hash.write_i32(data.today.map_or(i32::MIN, |day| day.0));
        hash.write_u64(data.variant);
        hash.write(data.timezone.name().as_bytes());
        hash.write(data.currency.as_str().as_bytes());
        for part in [version.as_bytes(), request.path().as_bytes(), request.query_string().as_bytes(), body] {
            hash.write_usize(part.len());
            hash.write(part);
        }
        Self::new(hash.digest128())
    }

    /// Returns the tag of a document.
    pub(crate) fn of_document(bytes: &[u8]) -> Self {
        Self::new(xxh3_128(bytes))
    }

    fn new(hash: u128) -> Self {
        Self(format!("\"{hash:032x}\""))
    }

    /// Returns 304 if the client has the answer of this tag.
    pub fn not_modified(&self, request: &HttpRequest) -> Option<HttpResponse> {
        self.if_known(request, |known| known.strip_prefix("W/").unwrap_or(known) == self.0)
    }

    /// Returns 304 if the client has any answer (`If-None-Match: *`).
    pub(crate) fn not_modified_if_any(&self, request: &HttpRequest) -> Option<HttpResponse> {
        self.if_known(request, |known| known == ANY)
    }

    fn if_known(&self, request: &HttpRequest, is_known: impl Fn(&str) -> bool) -> Option<HttpResponse> {
        let known = request.headers().get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
        let is_known = known.flat_map(|list| list.split(',')).any(|known| is_known(known.trim()));
        is_known.then(|| HttpResponse::NotModified().insert_header((header::ETAG, self.value())).finish())
    }

    /// Returns 200 with `answer` and this tag.
    pub fn json(&self, answer: &impl Serialize) -> Result<HttpResponse> {
        Ok(self.written(to_json(answer)?))
    }

    /// Returns 200 with an answer that is JSON already, and this tag.
    pub fn written(&self, answer: Bytes) -> HttpResponse {
        self.ok(JSON, answer)
    }

    fn ok(&self, content_type: &'static str, body: Bytes) -> HttpResponse {
        HttpResponse::Ok()
            .insert_header((header::ETAG, self.value()))
            .insert_header((header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")))
            .content_type(content_type)
            .body(body)
    }

    /// Returns the value of the header `ETag`.
    pub fn value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).unwrap_or(HeaderValue::from_static("\"\""))
    }
}

/// Returns 200 with a document, or 304 if the client has it.
pub fn document(request: &HttpRequest, content_type: &'static str, body: Bytes) -> HttpResponse {
    let tag = EntityTag::of_document(&body);
    let not_modified = tag.not_modified(request).or_else(|| tag.not_modified_if_any(request));
    not_modified.unwrap_or_else(|| tag.ok(content_type, body))
}

/// Returns 200 with `answer`, or 304 if the client has it.
pub fn json(request: &HttpRequest, answer: &impl Serialize) -> Result<HttpResponse> {
    Ok(document(request, JSON, to_json(answer)?))
}

/// Writes an answer as JSON.
pub fn to_json(answer: &impl Serialize) -> Result<Bytes> {
    serde_json::to_vec(answer).map(Bytes::from).map_err(|error| {
        tracing::error!(%error, "an answer can't be written as JSON");
        ApiError::internal()
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn a_tag_changes_with_the_data_the_question_and_the_code() {
        let data = DataVersion {
            incarnation: 1,
            version: 2,
            id: 3,
            timezone: Timezone::UTC,
            currency: Currency::USD,
            today: None,
            variant: 4,
        };
        let request = |uri| HttpRequest::from(TestRequest::get().uri(uri).to_request());
        let asked = request("/revenue?days=7");
        let tag = EntityTag::of_answer(&data, &asked, b"");
        assert_eq!(EntityTag::of_answer(&data, &asked, b""), tag);
        let others = [
            EntityTag::of_answer_by("another version", &data, &asked, b""),
            EntityTag::of_answer(&DataVersion { version: 5, ..data }, &asked, b""),
            EntityTag::of_answer(&DataVersion { today: Some(Day(9)), ..data }, &asked, b""),
            EntityTag::of_answer(&data, &request("/revenue?days=70"), b""),
            EntityTag::of_answer(&data, &request("/revenue?days=7&"), b""),
            EntityTag::of_answer(&data, &asked, b"{}"),
        ];
        for (number, other) in others.iter().enumerate() {
            assert_ne!(*other, tag, "{number}");
        }
    }
}
