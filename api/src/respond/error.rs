//! Errors, which all have one shape. Their statuses follow from their codes.

use std::fmt;
use std::time::Duration;

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder};
use headcount_actors::admission_gate;
use headcount_actors::engine::ErasureError;
use headcount_actors::ingest::Refusal;
use headcount_actors::{AskError, TrackError};
use headcount_common::ControlError;
use headcount_common::nodes::AskNodeError;
use headcount_control::{AuthError, RegistryError};
use headcount_domain::intake::submission::Invalid;
use headcount_domain::time::{BeforeFloor, WindowError};
use headcount_domain::{Fault, FaultKind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::request::HttpRequest;
use crate::request_id::REQUEST_ID;
use crate::respond::code::{ErrorCode, ErrorType};

/// `Retry-After` of requests that the server has no capacity for.
const RETRY_AFTER_SECONDS: u32 = 1;
/// `Retry-After` of questions that took too long.
const TIMEOUT_RETRY_AFTER_SECONDS: u32 = 10;
/// `Retry-After` of events that a quota refused. Quotas free up slowly, or not at all.
const QUOTA_RETRY_AFTER_SECONDS: u32 = 3_600;

/// The headers that a page may read of an answer.
pub const CORS_EXPOSED_HEADERS: HeaderValue =
    HeaderValue::from_static("ratelimit-limit, ratelimit-remaining, ratelimit-reset, retry-after");

/// What a handler returns.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// An error that becomes the answer. Boxed, to keep results small.
#[derive(Debug, Clone)]
pub struct ApiError(Box<Refused>);

#[derive(Debug, Clone)]
struct Refused {
    code: ErrorCode,
    message: String,
    param: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether one of Segment's SDKs reads it.
    is_for_segment: bool,
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// The body of an error of Segment's API: what its SDKs read, beside the error in the shape of all others.
#[derive(Debug, Serialize, ToSchema)]
pub struct SegmentErrorBody {
    /// False.
    success: bool,
    /// What exactly, for programs.
    code: &'static str,
    /// The error and the allowed values, for people.
    message: String,
    /// The error.
    error: ErrorDetail,
}

/// The error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorDetail {
    /// The type of the error.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub(crate) kind: ErrorType,
    /// What exactly, for programs.
    pub(crate) code: &'static str,
    /// The error and the allowed values, for people.
    pub(crate) message: String,
    /// The field or parameter that is wrong, where it is one.
    #[schema(required)]
    pub(crate) param: Option<String>,
    /// The id of the request, as in the header `x-request-id`.
    pub(crate) request_id: String,
}

impl ApiError {
    /// An error with this code, which decides its status and type.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Refused { code, message: message.into(), param: None, headers: Vec::new(), is_for_segment: false }))
    }

    /// 400: a parameter or field has a value that isn't allowed.
    pub fn parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParameter, message).with_param(param)
    }

    /// The same error about a field of the object `outer`.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.0.param = self.0.param.map(|param| format!("{outer}.{param}"));
        self
    }

    /// 400: a required parameter or field is absent.
    pub fn missing(param: &str) -> Self {
        Self::new(ErrorCode::MissingParameter, format!("`{param}` is required")).with_param(param)
    }

    /// 400: neither of two parameters or fields is present.
    pub fn missing_one_of(param: &str, other: &str) -> Self {
        Self::new(ErrorCode::MissingParameter, format!("one of `{param}` and `{other}` is required")).with_param(param)
    }

    /// 400: the operation has no such parameter or field.
    pub fn unknown_parameter(param: &str, allowed: &[&str]) -> Self {
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        Self::new(ErrorCode::UnknownParameter, format!("`{param}` is not known here; allowed: {allowed}")).with_param(param)
    }

    /// 401, with the challenge that HTTP asks for.
    pub fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidCredential, message).with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 403: the project accepts no events from the page's origin.
    pub fn origin_forbidden() -> Self {
        Self::new(ErrorCode::OriginForbidden, "the project takes no events from pages of this origin")
    }

    /// Lets a page of `origin` read the error, unless the origin itself is forbidden.
    #[must_use]
    pub fn readable_from(self, origin: HeaderValue) -> Self {
        if self.0.code == ErrorCode::OriginForbidden {
            return self;
        }
        self.with_header(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin)
            .with_header(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"))
            .with_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, CORS_EXPOSED_HEADERS)
            .with_header(header::VARY, HeaderValue::from_static("Origin"))
    }

    /// The same error for one of Segment's SDKs, on a page of `origin` if it runs in one.
    #[must_use]
    pub(crate) fn for_segment(mut self, origin: Option<HeaderValue>) -> Self {
        self.0.is_for_segment = true;
        match origin {
            Some(origin) => self.readable_from(origin),
            None => self,
        }
    }

    /// 404: there is no such thing, or none of the caller's. One wording for both.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("no such {what}"))
    }

    /// 405, with the methods that the path supports.
    pub fn method_not_allowed(allowed: &[Method]) -> Self {
        let allow = allowed.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let error = Self::new(ErrorCode::MethodNotAllowed, format!("this path takes {allow}"));
        match HeaderValue::from_str(&allow) {
            Ok(value) => error.with_header(header::ALLOW, value),
            Err(_) => error,
        }
    }

    /// 413: a body over its limit, as sent or decompressed.
    pub fn too_large(limit_bytes: usize) -> Self {
        let message = format!("the body is larger than {limit_bytes} bytes, as sent or decompressed");
        Self::new(ErrorCode::BodyTooLarge, message)
    }

    /// 415: the body has a type or encoding that is not accepted.
    pub(crate) fn unsupported_media(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::UnsupportedMediaType, message)
    }

    /// 429: the project has reached a quota.
    pub fn quota_exceeded(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::QuotaExceeded, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(QUOTA_RETRY_AFTER_SECONDS))
    }

    /// 429: too many events were sent with the public key. None of this request was recorded.
    pub fn rate_limited(message: impl Into<String>, retry_after_seconds: u64) -> Self {
        Self::new(ErrorCode::RateLimited, message).with_header(header::RETRY_AFTER, HeaderValue::from(retry_after_seconds))
    }

    /// 503: there is no capacity now, and nothing was recorded.
    pub fn overloaded(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Overloaded, message).with_header(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS))
    }

    /// 503: the answer took too long.
    fn question_timeout(limit: Duration) -> Self {
        let message = format!("the answer took longer than {}s, the setting `question_timeout`", limit.as_secs_f64());
        Self::new(ErrorCode::QuestionTimeout, message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(TIMEOUT_RETRY_AFTER_SECONDS))
    }

    /// 500: the event may or may not have been recorded.
    pub fn outcome_unknown() -> Self {
        let message = "the event may or may not have been recorded; resending it with the same `external_id` is safe";
        Self::new(ErrorCode::OutcomeUnknown, message)
    }

    /// 500. The cause is logged where it is found, never shown.
    pub fn internal() -> Self {
        Self::new(ErrorCode::Internal, "something went wrong on the server")
    }

    /// Names the field or parameter.
    #[must_use]
    pub fn with_param(mut self, param: impl Into<String>) -> Self {
        self.0.param = Some(param.into());
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Logs the error of a request. The log does not repeat the request's content, which may name a person or hold a secret.
    pub fn log(&self, request_id: &str, method: &Method, path: Option<&str>) {
        let code = self.0.code;
        let (status, kind, code) = (code.status().as_u16(), code.kind(), code.as_str());
        if kind == ErrorType::Internal {
            tracing::error!(request_id, %method, path, status, %code, "a request failed");
        } else {
            tracing::debug!(request_id, %method, path, status, %code, "a request was refused");
        }
    }

    /// The error, for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What exactly, for programs.
    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.0.code.status()
    }

    /// The complete answer, for the request `request_id`.
    pub fn respond(&self, request_id: &str) -> HttpResponse {
        let refused = &*self.0;
        let mut response = HttpResponseBuilder::new(refused.code.status());
        for (name, value) in &refused.headers {
            response.insert_header((name.clone(), value.clone()));
        }
        if !refused.is_for_segment {
            return response.json(self.body(request_id));
        }
        let (code, message) = (refused.code.as_str(), refused.message.clone());
        response.json(SegmentErrorBody { success: false, code, message, error: self.body(request_id).error })
    }

    /// The complete answer to a request, with its id.
    pub(crate) fn respond_to(&self, request: &HttpRequest) -> HttpResponse {
        let mut response = self.respond(request.id().as_str());
        response.headers_mut().insert(REQUEST_ID, request.id().0.clone());
        response
    }

    /// The body of the answer.
    pub fn body(&self, request_id: &str) -> ErrorBody {
        let refused = &*self.0;
        ErrorBody {
            error: ErrorDetail {
                kind: refused.code.kind(),
                code: refused.code.as_str(),
                message: refused.message.clone(),
                param: refused.param.clone(),
                request_id: request_id.to_owned(),
            },
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let error = Self::new(ErrorCode::named(invalid.code, ErrorCode::InvalidParameter), invalid.message);
        match invalid.param {
            Some(param) => error.with_param(param),
            None => error,
        }
    }
}

impl From<TrackError> for ApiError {
    fn from(error: TrackError) -> Self {
        match error {
            TrackError::Unavailable(why) => Self::overloaded(why),
            TrackError::QuotaExceeded(exceeded) => Self::quota_exceeded(exceeded.to_string()),
            TrackError::OutcomeUnknown => Self::outcome_unknown(),
        }
    }
}

impl From<admission_gate::Refused> for ApiError {
    fn from(refused: admission_gate::Refused) -> Self {
        Self::overloaded(refused.to_string())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Invalid(invalid) => invalid.into(),
            Refusal::UnknownProject => Self::not_found("project"),
            Refusal::Track(error) => error.into(),
        }
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Busy | AskError::Node(AskNodeError::Busy) => Self::overloaded("too many questions are waiting"),
            AskError::Lost(Fault { kind: FaultKind::DamagedArchive, message }) => Self::new(ErrorCode::ArchiveDamaged, message),
            AskError::Lost(_) | AskError::NoAnswer => Self::overloaded("the figures are not available now"),
            AskError::TimedOut(limit) => Self::question_timeout(limit),
            AskError::BelowFloor(floor) => BeforeFloor { param: "start_date", floor }.into(),
            AskError::NoOwner => Self::overloaded("no node is known to have the figures of a project"),
            AskError::Node(error) => {
                tracing::warn!(%error, "a node gave no answer about an organization");
                Self::overloaded("a node that has the figures of a project gives no answer")
            }
        }
    }
}

impl From<WindowError> for ApiError {
    fn from(error: WindowError) -> Self {
        Self::parameter(error.param(), error.to_string())
    }
}

impl From<BeforeFloor> for ApiError {
    fn from(error: BeforeFloor) -> Self {
        Self::new(ErrorCode::BeforeRetention, format!("{error}: the project's `retention_days`")).with_param(error.param)
    }
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::Unknown => Self::unauthenticated("the token, session or share ended while the request was under way"),
            AuthError::Lowered => Self::new(ErrorCode::InsufficientRole, error.to_string()),
        }
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::NotFound { what } => Self::not_found(what),
            RegistryError::Conflict { code, message } => Self::new(ErrorCode::named(code, ErrorCode::LimitReached), message),
            RegistryError::Invalid { param, message } => Self::parameter(param, message),
            RegistryError::Exhausted { code, message } => Self::new(ErrorCode::named(code, ErrorCode::ActionsExhausted), message),
            RegistryError::Refused(refused) => refused.into(),
            RegistryError::TooManyChanges { retry_after } => {
                Self::rate_limited("the organization has made too many changes", retry_after.as_secs() + 1)
            }
            RegistryError::Storage(error @ ControlError::Undecided(_)) => {
                tracing::error!(%error, "a change of the control data has no answer");
                Self::new(ErrorCode::OutcomeUnknown, "the change may or may not have been made: look before you make it again")
            }
            RegistryError::Storage(error) => {
                tracing::error!(%error, "the control data could not be changed");
                Self::overloaded("the change could not be made durable")
            }
        }
    }
}

impl From<ErasureError> for ApiError {
    fn from(error: ErasureError) -> Self {
        match error {
            ErasureError::Unknown => Self::not_found("identity"),
            ErasureError::TooMany | ErasureError::Full(_) => Self::new(ErrorCode::TooManyIdentities, error.to_string()),
            ErasureError::Unavailable(why) => Self::overloaded(why),
            ErasureError::Failed(fault) => {
                tracing::error!(%fault, "an erasure could not begin");
                Self::overloaded("the figures are not available now")
            }
            ErasureError::Registry(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_refused_for_an_hour() {
        let error = ApiError::quota_exceeded("the project has 1,000,000 groups; no more are allowed");
        let response = error.respond("r");
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers().get(header::RETRY_AFTER).unwrap(), "3600");
        assert_eq!((error.code().kind(), error.code().as_str()), (ErrorType::RateLimited, "quota_exceeded"));
    }

    #[test]
    fn too_many_changes_are_refused_until_the_next_one_may_be_made() {
        let error = ApiError::from(RegistryError::TooManyChanges { retry_after: std::time::Duration::from_millis(1_500) });
        assert_eq!(error.code().as_str(), "rate_limited");
        let response = error.respond("r");
        assert_eq!(
            (response.status().as_u16(), response.headers().get(header::RETRY_AFTER).unwrap().to_str().unwrap()),
            (429, "2")
        );
    }
}
