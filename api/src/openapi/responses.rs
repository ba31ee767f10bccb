//! The answers of operations besides their result. Each cause has one response, which all
//! operations that know the cause refer to.

use std::collections::BTreeMap;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Ref as SchemaRef, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, Response};
use utoipa::{IntoResponses, Modify};

type Header = (&'static str, Type, &'static str);
type Responses = BTreeMap<String, RefOr<Response>>;

const NO_HEADERS: &[Header] = &[];
const CHALLENGE: &[Header] = &[("www-authenticate", Type::String, "`Bearer`.")];
const RETRY: &[Header] = &[("retry-after", Type::Integer, "After how many seconds to try again.")];

/// An error that operations share: its name in the document, its status, its headers besides `x-request-id`, and its cause.
struct Refusal(&'static str, &'static str, &'static [Header], &'static str);

macro_rules! refusals {
    ($($refusal:ident $name:literal $status:literal $headers:ident $cause:literal;)*) => {
        $(const $refusal: &Refusal = &Refusal($name, $status, $headers, $cause);)*
        const ALL: &[&Refusal] = &[$($refusal),*];
    };
}

refusals! {
    BAD_REQUEST "BadRequest" "400" NO_HEADERS "The request is malformed: not JSON, or a parameter or field that is missing, unknown or out of its range.";
    UNAUTHORIZED "Unauthorized" "401" CHALLENGE "The token, session or share is missing, malformed, unknown, expired or revoked, or the cookie doesn't count.";
    KEY_UNKNOWN "KeyUnknown" "401" CHALLENGE "The public key is missing or unknown.";
    FORBIDDEN "Forbidden" "403" NO_HEADERS "The token is known and does not allow this: `insufficient_role`, `insufficient_scope`, `project_forbidden`, `share_forbidden`, `operator_required`.";
    CROSS_SITE "CrossSite" "403" NO_HEADERS "A page of another site sent the request: `cross_site`.";
    ORIGIN_FORBIDDEN "OriginForbidden" "403" NO_HEADERS "The project accepts no events from pages of this origin: `origin_forbidden`.";
    NOT_FOUND "NotFound" "404" NO_HEADERS "There is no such thing, or it is another organization's.";
    CONFLICT "Conflict" "409" NO_HEADERS "It contradicts the current state; the code names the reason.";
    GONE "Gone" "410" NO_HEADERS "It was there, and is not any more: `cursor_expired`, `artifact_expired`, `artifact_erased`.";
    RANGE "RangeNotSatisfiable" "416" NO_HEADERS "The range begins behind the end: `range_not_satisfiable`. `content-range` has the length.";
    TOO_LARGE "TooLarge" "413" NO_HEADERS "The body is over its limit, as sent or decompressed.";
    UNSUPPORTED_MEDIA "UnsupportedMedia" "415" NO_HEADERS "The body has a type or an encoding that is not accepted.";
    TOO_MANY "TooMany" "429" RETRY "The rate limit of the token is used up (`rate_limited`), or the project has reached a quota (`quota_exceeded`). Nothing was recorded.";
    TOKEN_TOO_MANY "TokenTooMany" "429" RETRY "The rate limit of the token is used up: `rate_limited`. Nothing was recorded or changed.";
    SIGN_IN_TOO_MANY "SignInTooMany" "429" RETRY "The address has tried to sign in five times within a second: `rate_limited`.";
    KEY_TOO_MANY "KeyTooMany" "429" RETRY "The rate limit of the public key or of its project is used up (`rate_limited`), or the project has reached a quota (`quota_exceeded`). Nothing was recorded.";
    INTERNAL "Internal" "500" NO_HEADERS "A fault of the server. With the code `outcome_unknown` an event may or may not have been recorded; with `archive_damaged` the answer needs a file of the archive that is damaged.";
    UNAVAILABLE "Unavailable" "503" RETRY "There is no capacity for it now. Nothing was recorded or changed.";
}

macro_rules! groups {
    ($($(#[$attribute:meta])* $name:ident: $($refusal:ident),*;)*) => {$(
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $name;

        impl IntoResponses for $name {
            fn responses() -> Responses {
                [$($refusal),*].into_iter().map(Refusal::referred).collect()
            }
        }
    )*};
}

groups! {
    /// The errors of sign-ins.
    SignInErrors: UNAUTHORIZED, CROSS_SITE, SIGN_IN_TOO_MANY;
    /// The errors of questions about one thing that a parameter names.
    NotFoundErrors: NOT_FOUND;
    /// The errors of changes that the current state can contradict.
    ConflictErrors: CONFLICT;
    /// The errors of operations with cursors.
    GoneErrors: GONE;
    /// The errors of downloads.
    DownloadErrors: CONFLICT, GONE, RANGE;
    /// The errors of operations that may have an empty body.
    BodyErrors: TOO_LARGE, UNSUPPORTED_MEDIA;
    /// The errors of questions that need the engine.
    UnavailableErrors: UNAVAILABLE;
    /// The errors of the pixel.
    PixelErrors: KEY_UNKNOWN, ORIGIN_FORBIDDEN, TOO_LARGE, KEY_TOO_MANY, UNAVAILABLE;
    /// The errors of ingestion by public key.
    PublicEventErrors: KEY_UNKNOWN, ORIGIN_FORBIDDEN, KEY_TOO_MANY;
    /// The errors of ingestion by token.
    ServerEventErrors: TOO_MANY;
}

/// What names a token or a session in the document.
const TOKENS: [&str; 4] = ["api_token", "session", "operator_token", "root_token"];

/// The errors that follow from what an operation is, unless it has others of the same status.
fn implied(operation: &Operation, path: &str, changes: bool, needs_token: bool) -> Vec<&'static Refusal> {
    let rules: [(bool, &[&'static Refusal]); 5] = [
        (true, &[BAD_REQUEST, INTERNAL]),
        (needs_token, &[UNAUTHORIZED, FORBIDDEN, TOKEN_TOO_MANY]),
        (path.contains('{'), &[NOT_FOUND]),
        (operation.request_body.is_some(), &[TOO_LARGE, UNSUPPORTED_MEDIA]),
        (changes, &[UNAVAILABLE]),
    ];
    rules.into_iter().filter(|(applies, _)| *applies).flat_map(|(_, refusals)| refusals).copied().collect()
}

/// Adds the errors that follow from what operations are.
pub struct ImpliedErrors;

impl Modify for ImpliedErrors {
    fn modify(&self, document: &mut OpenApi) {
        let tokens = TOKENS.map(|token| SecurityRequirement::new::<_, [&str; 0], &str>(token, []));
        let takes_token = |security: &SecurityRequirement| tokens.contains(security);
        let by_default = document.security.iter().flatten().any(takes_token);
        for (path, item) in &mut document.paths.paths {
            let changes =
                [&mut item.post, &mut item.put, &mut item.patch, &mut item.delete].into_iter().map(|operation| (operation, true));
            for (operation, changes) in changes.chain([(&mut item.get, false)]) {
                let Some(operation) = operation else { continue };
                let needs_token = operation.security.as_ref().map_or(by_default, |security| security.iter().any(takes_token));
                for refusal in implied(operation, path, changes, needs_token) {
                    let (status, response) = refusal.referred();
                    operation.responses.responses.entry(status).or_insert(response);
                }
            }
        }
    }
}

/// The errors of Segment's API, by status. SDKs send again what was refused with the last three.
const OF_SEGMENT: [(&str, &str); 8] = [
    ("400", "The request is malformed."),
    ("401", "The write key is missing or unknown."),
    ("403", "The project accepts no events from pages of this origin: `origin_forbidden`."),
    ("413", "The body is over its limit, as sent or decompressed."),
    ("415", "The body has a type or an encoding that is not accepted."),
    (
        "429",
        "A rate limit is used up (`rate_limited`), or the project has reached a quota (`quota_exceeded`). Nothing was recorded.",
    ),
    ("500", "A fault of the server. With the code `outcome_unknown` messages may or may not have been recorded."),
    ("503", "There is no capacity for it now. Nothing was recorded."),
];

/// The errors of Segment's API.
#[derive(Debug)]
pub struct SegmentErrors;

/// The errors of Segment's API where a key in the path is not known.
#[derive(Debug)]
pub struct SegmentNotFoundErrors;

impl IntoResponses for SegmentErrors {
    fn responses() -> Responses {
        OF_SEGMENT.into_iter().map(of_segment).collect()
    }
}

impl IntoResponses for SegmentNotFoundErrors {
    fn responses() -> Responses {
        [of_segment(("404", "There is no such public key."))].into()
    }
}

fn of_segment((status, cause): (&str, &str)) -> (String, RefOr<Response>) {
    let body = ContentBuilder::new().schema(Some(SchemaRef::from_schema_name("SegmentErrorBody"))).build();
    (status.to_owned(), ResponseBuilder::new().description(cause).content("application/json", body).build().into())
}

/// The answer of operations that support conditional requests.
#[derive(Debug, IntoResponses)]
#[response(status = 304, description = "Not changed since the `ETag` that was sent in `If-None-Match`.")]
pub struct NotModified;

impl Refusal {
    fn referred(&self) -> (String, RefOr<Response>) {
        (self.1.to_owned(), Ref::from_response_name(self.0).into())
    }

    fn response(&self) -> Response {
        let Self(_, _, headers, cause) = self;
        let request_id = ("x-request-id", Type::String, "The id of the request.");
        let body = ContentBuilder::new().schema(Some(SchemaRef::from_schema_name("ErrorBody"))).build();
        [request_id]
            .iter()
            .chain(*headers)
            .fold(
                ResponseBuilder::new().description(*cause).content("application/json", body),
                |response, (name, kind, description)| {
                    let least = (*kind == Type::Integer).then_some(0);
                    let schema = ObjectBuilder::new().schema_type(kind.clone()).minimum(least).build();
                    response.header(*name, HeaderBuilder::new().schema(Some(schema)).description(Some(*description)).build())
                },
            )
            .build()
    }
}

/// Adds the shared responses to the document.
pub struct SharedResponses;

impl Modify for SharedResponses {
    fn modify(&self, document: &mut OpenApi) {
        let Components { responses, .. } = document.components.get_or_insert_default();
        responses.extend(ALL.iter().map(|refusal| (refusal.0.to_owned(), refusal.response().into())));
    }
}
