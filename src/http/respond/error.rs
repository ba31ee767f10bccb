//! Every refusal has one shape, and this is the only place that names status codes for them.

use std::borrow::Cow;
use std::fmt;

use actix_web::http::header::{self, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use headcount_actors::ingest;
use headcount_actors::ingest::Refusal;
use headcount_actors::registry::RegistryError;
use headcount_actors::{AskError, TrackError};
use headcount_domain::intake::submission::Invalid;
use headcount_domain::time::WindowError;
use serde::Serialize;
use utoipa::ToSchema;

/// After how many seconds a client may try again what was refused for want of room.
const RETRY_AFTER_SECONDS: u32 = 1;
/// The same for what a quota refused: it frees itself slowly, or not at all.
const QUOTA_RETRY_AFTER_SECONDS: u32 = 3_600;
const ORIGIN_FORBIDDEN: &str = "origin_forbidden";

/// What kind of refusal it is: what programs decide by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorType {
    /// The request is wrong; sending it again is of no use.
    InvalidRequest,
    /// The credential is missing or not known.
    Authentication,
    /// The credential is known and does not allow this.
    Permission,
    /// There is no such thing, or none of the caller's.
    NotFound,
    /// It contradicts what is there.
    Conflict,
    /// The key's rate limit is used up.
    RateLimited,
    /// There is no room for it now, and nothing was recorded.
    Overloaded,
    /// A fault of the server.
    Internal,
}

/// A refusal. Boxed inside, so that what may be refused costs nothing when it isn't.
#[derive(Debug, Clone)]
pub(crate) struct ApiError(Box<Refused>);

#[derive(Debug, Clone)]
struct Refused {
    status: StatusCode,
    kind: ErrorType,
    code: Cow<'static, str>,
    message: String,
    param: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Set where the refusal itself becomes the answer, without the middleware's help.
    request_id: Option<String>,
}

/// The body of every refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The refusal.
    pub(crate) error: ErrorDetail,
}

/// What a refusal says.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorDetail {
    /// What kind of refusal it is.
    #[serde(rename = "type")]
    #[schema(rename = "type")]
    pub(crate) kind: ErrorType,
    /// What exactly, for programs.
    pub(crate) code: String,
    /// What was wrong and what is allowed, for people.
    pub(crate) message: String,
    /// The field or parameter that is wrong, where it is one.
    #[schema(required)]
    pub(crate) param: Option<String>,
    /// The id of the request, as in the header `x-request-id`.
    pub(crate) request_id: String,
}

impl ApiError {
    fn new(status: StatusCode, kind: ErrorType, code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self(Box::new(Refused {
            status,
            kind,
            code: code.into(),
            message: message.into(),
            param: None,
            headers: Vec::new(),
            request_id: None,
        }))
    }

    /// 400 with a code of its own.
    pub(crate) fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorType::InvalidRequest, code, message)
    }

    /// 400: a parameter or field has a value that isn't allowed.
    pub(crate) fn parameter(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::bad_request("invalid_parameter", message).with_param(param)
    }

    /// 400: a required parameter or field isn't there.
    pub(crate) fn missing(param: &str) -> Self {
        Self::bad_request("missing_parameter", format!("`{param}` is required")).with_param(param)
    }

    /// 400: a parameter or field that this operation doesn't have.
    pub(crate) fn unknown_parameter(param: &str, allowed: &[&str]) -> Self {
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed.join(", ") };
        Self::bad_request("unknown_parameter", format!("`{param}` is not known here; allowed: {allowed}")).with_param(param)
    }

    /// 401, with the challenge that HTTP asks for.
    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorType::Authentication, "invalid_credential", message)
            .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"))
    }

    /// 403.
    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorType::Permission, code, message)
    }

    /// 403: the project takes no events from the page that sent this. The page isn't told more.
    pub(crate) fn origin_forbidden() -> Self {
        Self::forbidden(ORIGIN_FORBIDDEN, "the project takes no events from pages of this origin")
    }

    /// Lets a page of `origin` read the refusal, unless it is the page that is refused.
    #[must_use]
    pub(crate) fn readable_from(self, origin: HeaderValue) -> Self {
        if self.0.code == ORIGIN_FORBIDDEN {
            return self;
        }
        self.with_header(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin)
            .with_header(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"))
            .with_header(header::ACCESS_CONTROL_EXPOSE_HEADERS, crate::http::resources::events::cors::EXPOSED)
            .with_header(header::VARY, HeaderValue::from_static("Origin"))
    }

    /// 404: there is no such thing, or none of the caller's. One wording for both.
    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorType::NotFound, "not_found", format!("no such {what}"))
    }

    /// 405, with the methods that there are.
    pub(crate) fn method_not_allowed(allowed: &[Method]) -> Self {
        let allow = allowed.iter().map(Method::as_str).collect::<Vec<_>>().join(", ");
        let error = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            ErrorType::InvalidRequest,
            "method_not_allowed",
            format!("this path takes {allow}"),
        );
        match HeaderValue::from_str(&allow) {
            Ok(value) => error.with_header(header::ALLOW, value),
            Err(_) => error,
        }
    }

    /// 413: a body over its limit, as sent or decompressed.
    pub(crate) fn too_large(limit_bytes: usize) -> Self {
        let message = format!("the body is larger than {limit_bytes} bytes, as sent or decompressed");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorType::InvalidRequest, "body_too_large", message)
    }

    /// 415: a body of a type or encoding that isn't taken.
    pub(crate) fn unsupported_media(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorType::InvalidRequest, "unsupported_media_type", message)
    }

    /// 409.
    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorType::Conflict, code, message)
    }

    /// 429: the project has as many of something as it may.
    pub(crate) fn quota_exceeded(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorType::RateLimited, "quota_exceeded", message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(QUOTA_RETRY_AFTER_SECONDS))
    }

    /// 429: too many events were sent with the public key. None of this request was recorded.
    pub(crate) fn rate_limited(message: impl Into<String>, retry_after_seconds: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorType::RateLimited, "rate_limited", message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(retry_after_seconds))
    }

    /// 503: no room now, and nothing was recorded.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorType::Overloaded, "overloaded", message)
            .with_header(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_SECONDS))
    }

    /// 500 of the one kind after which nobody knows whether the event counts.
    pub(crate) fn outcome_unknown() -> Self {
        let message = "the event may or may not have been recorded; resending it with the same `external_id` is safe";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorType::Internal, "outcome_unknown", message)
    }

    /// 500. The cause is logged where it is found, never shown.
    pub(crate) fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorType::Internal, "internal", "something went wrong on the server")
    }

    /// Names the field or parameter.
    #[must_use]
    pub(crate) fn with_param(mut self, param: impl Into<String>) -> Self {
        self.0.param = Some(param.into());
        self
    }

    /// Adds a header to the answer.
    #[must_use]
    pub(crate) fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.push((name, value));
        self
    }

    /// Logs it: once for each request. What the request said is not repeated, since it can name a person or hold a secret.
    pub(crate) fn log(&self, request_id: &str, method: &Method, path: Option<&str>) {
        let Refused { status, kind, code, .. } = &*self.0;
        let status = status.as_u16();
        if *kind == ErrorType::Internal {
            tracing::error!(request_id, %method, path, status, %code, "a request failed");
        } else {
            tracing::debug!(request_id, %method, path, status, %code, "a request was refused");
        }
    }

    /// What exactly, for programs.
    pub(crate) fn code(&self) -> &str {
        &self.0.code
    }

    /// Its status.
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The refusal of the request `request_id`.
    #[must_use]
    pub(crate) fn of_request(mut self, request_id: &str) -> Self {
        self.0.request_id = Some(request_id.to_owned());
        self
    }

    /// The complete answer, for the request `request_id`.
    pub(crate) fn respond(&self, request_id: &str) -> HttpResponse {
        let refused = &*self.0;
        let mut response = HttpResponseBuilder::new(refused.status);
        for (name, value) in &refused.headers {
            response.insert_header((name.clone(), value.clone()));
        }
        response.json(ErrorBody {
            error: ErrorDetail {
                kind: refused.kind,
                code: refused.code.to_string(),
                message: refused.message.clone(),
                param: refused.param.clone(),
                request_id: request_id.to_owned(),
            },
        })
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ApiError {}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.0.status
    }

    fn error_response(&self) -> HttpResponse {
        let request_id = self.0.request_id.as_deref().unwrap_or_default();
        let mut response = self.respond(request_id);
        if let Ok(value) = HeaderValue::from_str(request_id) {
            response.headers_mut().insert(crate::http::middleware::REQUEST_ID, value);
        }
        response
    }
}

impl From<Invalid> for ApiError {
    fn from(invalid: Invalid) -> Self {
        let error = Self::bad_request(invalid.code, invalid.message);
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

impl From<ingest::Refused> for ApiError {
    fn from(refused: ingest::Refused) -> Self {
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
            AskError::Busy => Self::overloaded("too many questions are waiting"),
            AskError::Lost(_) | AskError::NoAnswer => Self::overloaded("the figures are not available now"),
        }
    }
}

impl From<WindowError> for ApiError {
    fn from(error: WindowError) -> Self {
        Self::parameter(error.param(), error.to_string())
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        match error {
            RegistryError::NotFound { what } => Self::not_found(what),
            RegistryError::Conflict { code, message } => Self::conflict(code, message),
            RegistryError::Invalid { param, message } => Self::parameter(param, message),
            RegistryError::Exhausted { code, message } => Self::forbidden(code, message),
            RegistryError::Storage(error) => {
                tracing::error!(%error, "the control data could not be changed");
                Self::overloaded("the change could not be made durable")
            }
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
        assert_eq!((error.0.kind, error.code()), (ErrorType::RateLimited, "quota_exceeded"));
    }
}
