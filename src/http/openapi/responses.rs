//! What operations answer when they refuse: one type for each cause, named by every operation that knows the cause.

use std::collections::BTreeMap;

use utoipa::openapi::{RefOr, Response};
use utoipa::{IntoResponses, ToResponse};

use crate::http::respond::error::ErrorBody;

/// The request is malformed: not JSON, or a parameter or field that is missing, unknown or out of its range.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct BadRequest(pub ErrorBody);

/// The token is missing, malformed, unknown, expired or revoked.
#[derive(Debug, ToResponse)]
#[response(headers(
    ("x-request-id" = String, description = "The id of the request."),
    ("www-authenticate" = String, description = "`Bearer`."),
))]
pub struct Unauthorized(pub ErrorBody);

/// The public key is missing or unknown.
#[derive(Debug, ToResponse)]
#[response(headers(
    ("x-request-id" = String, description = "The id of the request."),
    ("www-authenticate" = String, description = "`Bearer`."),
))]
pub struct KeyUnknown(pub ErrorBody);

/// The token is known and does not allow this: `insufficient_role`, `insufficient_scope`, `project_forbidden`.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct Forbidden(pub ErrorBody);

/// The project takes no events from pages of this origin: `origin_forbidden`.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct OriginForbidden(pub ErrorBody);

/// There is no such thing, or it is another organization's.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct NotFound(pub ErrorBody);

/// It contradicts what is there; the code says what.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct Conflict(pub ErrorBody);

/// The body is over its limit, as sent or decompressed.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct TooLarge(pub ErrorBody);

/// The body is of a type or an encoding that isn't taken.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct UnsupportedMedia(pub ErrorBody);

/// The project has as many of something as it may: `quota_exceeded`. Nothing was recorded.
#[derive(Debug, ToResponse)]
#[response(headers(
    ("x-request-id" = String, description = "The id of the request."),
    ("retry-after" = u32, description = "After how many seconds to try again."),
))]
pub struct TooMany(pub ErrorBody);

/// The rate limit of the public key is used up (`rate_limited`), or the project has as many of something as it may
/// (`quota_exceeded`). Nothing was recorded.
#[derive(Debug, ToResponse)]
#[response(headers(
    ("x-request-id" = String, description = "The id of the request."),
    ("retry-after" = u32, description = "After how many seconds to try again."),
))]
pub struct KeyTooMany(pub ErrorBody);

/// A fault of the server. With the code `outcome_unknown` an event may or may not have been recorded.
#[derive(Debug, ToResponse)]
#[response(headers(("x-request-id" = String, description = "The id of the request.")))]
pub struct Internal(pub ErrorBody);

/// There is no room for it now. Nothing was recorded or changed.
#[derive(Debug, ToResponse)]
#[response(headers(
    ("x-request-id" = String, description = "The id of the request."),
    ("retry-after" = u32, description = "After how many seconds to try again."),
))]
pub struct Unavailable(pub ErrorBody);

/// What every operation can answer.
#[derive(Debug, IntoResponses)]
pub enum RequestErrors {
    /// The request is malformed.
    #[response(status = 400)]
    BadRequest(#[ref_response] BadRequest),
    /// A fault of the server.
    #[response(status = 500)]
    Internal(#[ref_response] Internal),
}

/// What operations that need a token can answer.
#[derive(Debug, IntoResponses)]
pub enum TokenErrors {
    /// Nobody known.
    #[response(status = 401)]
    Unauthorized(#[ref_response] Unauthorized),
    /// Somebody who may not.
    #[response(status = 403)]
    Forbidden(#[ref_response] Forbidden),
}

/// What operations that need a public key can answer.
#[derive(Debug, IntoResponses)]
pub enum KeyErrors {
    /// No project.
    #[response(status = 401)]
    KeyUnknown(#[ref_response] KeyUnknown),
    /// Not from there.
    #[response(status = 403)]
    OriginForbidden(#[ref_response] OriginForbidden),
}

/// What operations on one thing can answer.
#[derive(Debug, IntoResponses)]
pub enum NotFoundErrors {
    /// Not there.
    #[response(status = 404)]
    NotFound(#[ref_response] NotFound),
}

/// What changes can answer.
#[derive(Debug, IntoResponses)]
pub enum ConflictErrors {
    /// Against what is there.
    #[response(status = 409)]
    Conflict(#[ref_response] Conflict),
}

/// What operations that take a body can answer.
#[derive(Debug, IntoResponses)]
pub enum BodyErrors {
    /// Too long.
    #[response(status = 413)]
    TooLarge(#[ref_response] TooLarge),
    /// Not JSON.
    #[response(status = 415)]
    UnsupportedMedia(#[ref_response] UnsupportedMedia),
}

/// What operations that take an event in the query string can answer.
#[derive(Debug, IntoResponses)]
pub enum TooLargeErrors {
    /// Too long.
    #[response(status = 413)]
    TooLarge(#[ref_response] TooLarge),
}

/// What operations that need the engine can answer.
#[derive(Debug, IntoResponses)]
pub enum UnavailableErrors {
    /// Not now.
    #[response(status = 503)]
    Unavailable(#[ref_response] Unavailable),
}

/// What operations that record events can answer.
#[derive(Debug, IntoResponses)]
pub enum QuotaErrors {
    /// Too many.
    #[response(status = 429)]
    TooMany(#[ref_response] TooMany),
}

/// What operations that record events of a public key can answer.
#[derive(Debug, IntoResponses)]
pub enum KeyLimitErrors {
    /// Too many.
    #[response(status = 429)]
    KeyTooMany(#[ref_response] KeyTooMany),
}

/// What operations that can be asked conditionally answer.
#[derive(Debug, IntoResponses)]
#[response(status = 304, description = "Not changed since the `ETag` that was sent in `If-None-Match`.")]
pub struct NotModified;

/// What operations that take events by a public key can answer.
#[derive(Debug)]
pub struct PublicEventErrors;

impl IntoResponses for PublicEventErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let engine = all([KeyLimitErrors::responses(), UnavailableErrors::responses()]);
        all([RequestErrors::responses(), KeyErrors::responses(), BodyErrors::responses(), engine])
    }
}

/// What operations that take events by a token can answer.
#[derive(Debug)]
pub struct ServerEventErrors;

impl IntoResponses for ServerEventErrors {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let named = all([TokenErrors::responses(), NotFoundErrors::responses()]);
        let engine = all([QuotaErrors::responses(), UnavailableErrors::responses()]);
        all([RequestErrors::responses(), named, BodyErrors::responses(), engine])
    }
}

fn all<const N: usize>(responses: [BTreeMap<String, RefOr<Response>>; N]) -> BTreeMap<String, RefOr<Response>> {
    responses.into_iter().flatten().collect()
}
