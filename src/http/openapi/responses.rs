//! The answers of operations besides their result. Each cause has one response, which all operations that know the cause refer to.

use std::collections::BTreeMap;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Ref as SchemaRef, Type};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, Ref, RefOr, Response};
use utoipa::{IntoResponses, Modify};

type Header = (&'static str, Type, &'static str);
type Responses = BTreeMap<String, RefOr<Response>>;

const CHALLENGE: &[Header] = &[("www-authenticate", Type::String, "`Bearer`.")];
const RETRY: &[Header] = &[("retry-after", Type::Integer, "After how many seconds to try again.")];

/// An error that operations share: its name in the document, its status, its cause, and its headers besides `x-request-id`.
struct Refusal(&'static str, &'static str, &'static str, &'static [Header]);

const BAD_REQUEST: &Refusal = &Refusal(
    "BadRequest",
    "400",
    "The request is malformed: not JSON, or a parameter or field that is missing, unknown or out of its range.",
    &[],
);
const UNAUTHORIZED: &Refusal =
    &Refusal("Unauthorized", "401", "The token is missing, malformed, unknown, expired or revoked.", CHALLENGE);
const KEY_UNKNOWN: &Refusal = &Refusal("KeyUnknown", "401", "The public key is missing or unknown.", CHALLENGE);
const FORBIDDEN: &Refusal = &Refusal(
    "Forbidden",
    "403",
    "The token is known and does not allow this: `insufficient_role`, `insufficient_scope`, `project_forbidden`, `operator_required`.",
    &[],
);
const ORIGIN_FORBIDDEN: &Refusal =
    &Refusal("OriginForbidden", "403", "The project accepts no events from pages of this origin: `origin_forbidden`.", &[]);
const NOT_FOUND: &Refusal = &Refusal("NotFound", "404", "There is no such thing, or it is another organization's.", &[]);
const CONFLICT: &Refusal = &Refusal("Conflict", "409", "It contradicts the current state; the code names the reason.", &[]);
const TOO_LARGE: &Refusal = &Refusal("TooLarge", "413", "The body is over its limit, as sent or decompressed.", &[]);
const UNSUPPORTED_MEDIA: &Refusal =
    &Refusal("UnsupportedMedia", "415", "The body has a type or an encoding that is not accepted.", &[]);
const TOO_MANY: &Refusal =
    &Refusal("TooMany", "429", "The project has reached a quota: `quota_exceeded`. Nothing was recorded.", RETRY);
const KEY_TOO_MANY: &Refusal = &Refusal(
    "KeyTooMany",
    "429",
    "The rate limit of the public key is used up (`rate_limited`), or the project has reached a quota (`quota_exceeded`). Nothing \
     was recorded.",
    RETRY,
);
const INTERNAL: &Refusal = &Refusal(
    "Internal",
    "500",
    "A fault of the server. With the code `outcome_unknown` an event may or may not have been recorded.",
    &[],
);
const UNAVAILABLE: &Refusal =
    &Refusal("Unavailable", "503", "There is no capacity for it now. Nothing was recorded or changed.", RETRY);

const ALL: [&Refusal; 13] = [
    BAD_REQUEST,
    UNAUTHORIZED,
    KEY_UNKNOWN,
    FORBIDDEN,
    ORIGIN_FORBIDDEN,
    NOT_FOUND,
    CONFLICT,
    TOO_LARGE,
    UNSUPPORTED_MEDIA,
    TOO_MANY,
    KEY_TOO_MANY,
    INTERNAL,
    UNAVAILABLE,
];

macro_rules! groups {
    ($($(#[$attribute:meta])* $name:ident: $($refusal:ident),*;)*) => {$(
        $(#[$attribute])*
        #[derive(Debug)]
        pub(crate) struct $name;

        impl IntoResponses for $name {
            fn responses() -> Responses {
                [$($refusal),*].into_iter().map(Refusal::referred).collect()
            }
        }
    )*};
}

groups! {
    /// The errors of every operation.
    RequestErrors: BAD_REQUEST, INTERNAL;
    /// The errors of operations that need a token.
    TokenErrors: BAD_REQUEST, INTERNAL, UNAUTHORIZED, FORBIDDEN;
    /// The errors of operations on one thing.
    NotFoundErrors: NOT_FOUND;
    /// The errors of questions, besides [`NotFoundErrors`].
    QuestionErrors: BAD_REQUEST, INTERNAL, UNAUTHORIZED, FORBIDDEN, UNAVAILABLE;
    /// The errors of changes that the current state can contradict.
    ConflictErrors: CONFLICT;
    /// The errors of operations that have a body.
    BodyErrors: TOO_LARGE, UNSUPPORTED_MEDIA;
    /// The errors of operations that need the engine.
    UnavailableErrors: UNAVAILABLE;
    /// The errors of the pixel.
    PixelErrors: BAD_REQUEST, INTERNAL, KEY_UNKNOWN, ORIGIN_FORBIDDEN, TOO_LARGE, KEY_TOO_MANY, UNAVAILABLE;
    /// The errors of ingestion by public key.
    PublicEventErrors: BAD_REQUEST, INTERNAL, KEY_UNKNOWN, ORIGIN_FORBIDDEN, TOO_LARGE, UNSUPPORTED_MEDIA, KEY_TOO_MANY, UNAVAILABLE;
    /// The errors of ingestion by token.
    ServerEventErrors: BAD_REQUEST, INTERNAL, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_LARGE, UNSUPPORTED_MEDIA, TOO_MANY, UNAVAILABLE;
}

/// The answer of operations that support conditional requests.
#[derive(Debug, IntoResponses)]
#[response(status = 304, description = "Not changed since the `ETag` that was sent in `If-None-Match`.")]
pub(crate) struct NotModified;

impl Refusal {
    fn referred(&self) -> (String, RefOr<Response>) {
        (self.1.to_owned(), Ref::from_response_name(self.0).into())
    }

    fn response(&self) -> Response {
        let Self(_, _, cause, headers) = self;
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
pub(crate) struct SharedResponses;

impl Modify for SharedResponses {
    fn modify(&self, document: &mut OpenApi) {
        let Components { responses, .. } = document.components.get_or_insert_default();
        responses.extend(ALL.map(|refusal| (refusal.0.to_owned(), refusal.response().into())));
    }
}
