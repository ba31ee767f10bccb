//! The codes of errors: the one table of code, status, type and cause.

use actix_web::http::StatusCode;
use serde::Serialize;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{OpenApi, RefOr};
use utoipa::{Modify, ToSchema};

/// What kind of error it is, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ErrorType {
    /// The request is wrong; sending it again does not help.
    InvalidRequest,
    /// The credential is missing or unknown.
    Authentication,
    /// The credential is known and does not allow this.
    Permission,
    /// There is no such thing, or it is another organization's.
    NotFound,
    /// It contradicts the current state.
    Conflict,
    /// It was there, and is not any more.
    Gone,
    /// A rate limit or quota is used up.
    RateLimited,
    /// There is no capacity for it now, and nothing was recorded.
    Overloaded,
    /// A fault of the server.
    Internal,
}

macro_rules! error_codes {
    ($($name:ident $code:literal $status:ident $kind:ident $cause:literal;)*) => {
        /// What went wrong, for programs.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorCode {
            $(#[doc = $cause] $name,)*
        }

        impl ErrorCode {
            const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the code as clients see it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),* }
            }

            /// Returns the status of answers with this code.
            pub const fn status(self) -> StatusCode {
                match self { $(Self::$name => StatusCode::$status),* }
            }

            /// Returns the type of this code.
            pub(crate) const fn kind(self) -> ErrorType {
                match self { $(Self::$name => ErrorType::$kind),* }
            }

            const fn cause(self) -> &'static str {
                match self { $(Self::$name => $cause),* }
            }
        }
    };
}

error_codes! {
    InvalidJson "invalid_json" BAD_REQUEST InvalidRequest "The body is not JSON, or not of the expected shape.";
    BeforeRetention "before_retention" BAD_REQUEST InvalidRequest "The question needs events of days that the project no longer keeps.";
    InvalidParameter "invalid_parameter" BAD_REQUEST InvalidRequest "A parameter or field has a value that is not allowed.";
    MissingParameter "missing_parameter" BAD_REQUEST InvalidRequest "A required parameter or field is absent.";
    UnknownParameter "unknown_parameter" BAD_REQUEST InvalidRequest "The operation has no such parameter or field.";
    TimezoneMismatch "timezone_mismatch" BAD_REQUEST InvalidRequest "The day of an imported row is that of another timezone; only in the answer to a batch.";
    CurrencyMismatch "currency_mismatch" BAD_REQUEST InvalidRequest "The money of an imported row was converted to other currencies; only in the answer to a batch.";
    UnsupportedCombination "unsupported_combination" BAD_REQUEST InvalidRequest "A field of the session can't be combined with a sum, or with this operation.";
    DuplicateCredentials "duplicate_credentials" BAD_REQUEST InvalidRequest "The request has several `Authorization` headers or cookies of the page, or both.";
    MalformedRequest "malformed_request" BAD_REQUEST InvalidRequest "The request can't be read as HTTP.";
    BodyTimeout "body_timeout" BAD_REQUEST InvalidRequest "The body did not arrive in time.";
    IncompleteBody "incomplete_body" BAD_REQUEST InvalidRequest "The body ended early.";
    InvalidEncoding "invalid_encoding" BAD_REQUEST InvalidRequest "The body does not match its content encoding.";
    InvalidCredential "invalid_credential" UNAUTHORIZED Authentication "The token, public key, session or share is missing, unknown, expired or revoked, or the cookie doesn't count: the page itself did not send the request.";
    InsufficientRole "insufficient_role" FORBIDDEN Permission "The operation needs another role.";
    InsufficientScope "insufficient_scope" FORBIDDEN Permission "The token lacks the scope of the operation.";
    ProjectForbidden "project_forbidden" FORBIDDEN Permission "The token is for one project, and the operation is not about it.";
    ShareForbidden "share_forbidden" FORBIDDEN Permission "A share shows figures of its project, and money only if it was made so: no people, no companies, no settings.";
    CrossSite "cross_site" FORBIDDEN Permission "A page of another site sent the request.";
    OperatorRequired "operator_required" FORBIDDEN Permission "The operation needs the operator token, which only the data directory has.";
    OriginForbidden "origin_forbidden" FORBIDDEN Permission "The project accepts no events from pages of this origin.";
    CapabilityRequired "capability_required" FORBIDDEN Permission "The operation needs a capability that the organization doesn't have.";
    ActionsExhausted "actions_exhausted" FORBIDDEN Permission "The organization has too few Actions left.";
    NotFound "not_found" NOT_FOUND NotFound "There is no such thing, or it is another organization's.";
    MethodNotAllowed "method_not_allowed" METHOD_NOT_ALLOWED InvalidRequest "The path does not support the method; `Allow` lists those that it supports.";
    TimezoneFixed "timezone_fixed" CONFLICT Conflict "The timezone can't change after the first event.";
    CurrencyFixed "currency_fixed" CONFLICT Conflict "The currency can't change after the first event.";
    LastPublicKey "last_public_key" CONFLICT Conflict "The last public key of a project can't be removed.";
    LastOwner "last_owner" CONFLICT Conflict "No valid token of role owner would be left.";
    SignedIn "signed_in" CONFLICT Conflict "The browser is signed in by another token; the message has the names of both organizations.";
    EmailTaken "email_taken" CONFLICT Conflict "Another member has the e-mail address.";
    WebsiteTaken "website_taken" CONFLICT Conflict "Another company profile has the website.";
    WebsiteMismatch "website_mismatch" CONFLICT Conflict "The company profile has another website, or is being built from another one.";
    LimitReached "limit_reached" CONFLICT Conflict "There are as many of these as there may be.";
    TooManyIdentities "too_many_identities" CONFLICT Conflict "Too many identities have the e-mail address to be erased together, or the organization has erased too many.";
    ExportNotReady "export_not_ready" CONFLICT Conflict "The export is not completed.";
    ExportFailed "export_failed" CONFLICT Conflict "The export failed; its request says why.";
    BackupRunning "backup_running" CONFLICT Conflict "Another backup is being made.";
    VerifyRunning "verify_running" CONFLICT Conflict "Another verification is under way.";
    AlreadyInitialized "already_initialized" CONFLICT Conflict "The first organization exists.";
    CursorExpired "cursor_expired" GONE Gone "The cursor is of data that a restore replaced, of days that are not kept any more, or of an explanation whose time is over; begin with the first page.";
    ArtifactExpired "artifact_expired" GONE Gone "What the export made was kept until `expires_at`, and is gone for ever.";
    ArtifactErased "artifact_erased" GONE Gone "What the export made had somebody who was erased, or a project that was deleted.";
    RangeNotSatisfiable "range_not_satisfiable" RANGE_NOT_SATISFIABLE InvalidRequest "The range begins behind the end; `Content-Range` has the length.";
    BodyTooLarge "body_too_large" PAYLOAD_TOO_LARGE InvalidRequest "The body is over its limit, as sent or decompressed.";
    EventTooLarge "event_too_large" PAYLOAD_TOO_LARGE InvalidRequest "An event of a batch is over its limit; only in the answer to a batch.";
    UnsupportedMediaType "unsupported_media_type" UNSUPPORTED_MEDIA_TYPE InvalidRequest "The body has a type or an encoding that is not accepted.";
    QuotaExceeded "quota_exceeded" TOO_MANY_REQUESTS RateLimited "The project has reached a quota.";
    RateLimited "rate_limited" TOO_MANY_REQUESTS RateLimited "The rate limit of the public key, of its project, of the token, of the share, of sign-ins, or of the changes of an organization is used up.";
    OutcomeUnknown "outcome_unknown" INTERNAL_SERVER_ERROR Internal "The event may or may not have been recorded; resending it with the same `external_id` is safe.";
    ArchiveDamaged "archive_damaged" INTERNAL_SERVER_ERROR Internal "A file of the archive that the answer needs is damaged; the message names it.";
    Internal "internal" INTERNAL_SERVER_ERROR Internal "A fault of the server.";
    UnsupportedInCluster "unsupported_in_cluster" NOT_IMPLEMENTED InvalidRequest "The server is a node of a cluster, where the operation does not work yet.";
    QuestionTimeout "question_timeout" SERVICE_UNAVAILABLE Overloaded "The answer took longer than the setting `question_timeout`.";
    Overloaded "overloaded" SERVICE_UNAVAILABLE Overloaded "There is no capacity for it now. Nothing was recorded or changed.";
}

impl ErrorCode {
    /// Returns the code that the engine names, or `otherwise` for one that is not in the table.
    pub fn named(code: &str, otherwise: Self) -> Self {
        let found = Self::ALL.iter().copied().find(|known| known.as_str() == code);
        debug_assert!(found.is_some(), "{code} is not in the table of codes");
        found.unwrap_or(otherwise)
    }
}

/// Adds the table of codes to the schema of errors.
pub struct CodeTable;

impl Modify for CodeTable {
    fn modify(&self, document: &mut OpenApi) {
        let row = |code: &ErrorCode| {
            let kind =
                serde_json::to_value(code.kind()).ok().and_then(|kind| kind.as_str().map(str::to_owned)).unwrap_or_default();
            format!("| `{}` | `{kind}` | {} | {} |\n", code.as_str(), code.status().as_u16(), code.cause())
        };
        let rows: String = ErrorCode::ALL.iter().map(row).collect();
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        if let Some(RefOr::T(Schema::Object(detail))) = schemas.and_then(|schemas| schemas.get_mut("ErrorDetail"))
            && let Some(RefOr::T(Schema::Object(code))) = detail.properties.get_mut("code")
        {
            code.description =
                Some(format!("What went wrong, for programs.\n\n| code | type | status | cause |\n|---|---|---|---|\n{rows}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table_once() {
        for (i, code) in ErrorCode::ALL.iter().enumerate() {
            assert_eq!(ErrorCode::named(code.as_str(), ErrorCode::Internal), *code);
            assert!(ErrorCode::ALL[..i].iter().all(|other| other.as_str() != code.as_str()), "{code:?}");
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{code:?}");
        }
    }
}
