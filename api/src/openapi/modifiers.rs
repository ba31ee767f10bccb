//! Changes to the whole document: the credentials, which objects are closed, and the headers of
//! rate limits.

use std::collections::BTreeMap;

use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi, RefOr, Response};
use utoipa::{Modify, ToSchema};

use super::event::EventShape;
use super::segment::MessageShape;

/// How callers say who they are.
pub struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = |format: &str, description: &str| {
            let http = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format(format);
            SecurityScheme::Http(http.description(Some(description)).build())
        };
        let public_key = ApiKeyValue::with_description(
            "x-service-pk",
            "A project's public key, `pk_…`. It can only send events, so that it may be in a page.",
        );
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("api_token", bearer("sk_…", "An API token of the organization. It is a secret."));
        let cookie = ApiKeyValue::with_description(
            "headcount",
            "The cookie of `POST /session`, `__Host-headcount` over https. It counts only in requests of the page itself, and not beside a token.",
        );
        components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
        components
            .add_security_scheme("root_token", bearer("rk_…", "The root token, which makes organizations and nothing else."));
        let operator = "The operator token, in the file `operator-token` of the data directory. Every start makes a new one.";
        components.add_security_scheme("operator_token", bearer("op_…", operator));
        let basic = HttpBuilder::new().scheme(HttpAuthScheme::Basic);
        let basic =
            basic.description(Some("The public key as the user, without a password, as Segment's SDKs send their write key."));
        components.add_security_scheme("write_key", SecurityScheme::Http(basic.build()));
        components.add_security_scheme("public_key", SecurityScheme::ApiKey(ApiKey::Header(public_key)));
    }
}

/// Every object has the properties that it has, and no others. Only events and messages may hold more: older servers meet newer
/// trackers.
pub struct Closed;

impl Modify for Closed {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let schemas = document.components.iter_mut().flat_map(|components| components.schemas.iter_mut());
        for (name, schema) in schemas {
            if *name == EventShape::name() || *name == MessageShape::name() {
                continue;
            }
            if let RefOr::T(Schema::Object(object)) = schema
                && !object.properties.is_empty()
            {
                object.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(false)));
            }
        }
    }
}

/// The paths that accept events by public key.
const PATHS: [&str; 3] = ["/i", "/track", "/i/batch"];
/// The status for an unknown key, which has no limit.
const UNKNOWN_KEY: &str = "401";
const HEADERS: [(&str, &str); 3] = [
    (
        "ratelimit-limit",
        "How many events may be sent with the key at once. Only where the key has a rate limit, as are the next two.",
    ),
    (
        "ratelimit-remaining",
        "How many of these are left. A request needs one, and each of its events takes one; a batch may take more than are left.",
    ),
    ("ratelimit-reset", "In how many seconds all of them will be there again."),
];

/// Adds the headers to every answer that can carry them.
pub struct RateLimits;

impl Modify for RateLimits {
    fn modify(&self, document: &mut OpenApi) {
        let shared = document.components.clone().unwrap_or_default().responses;
        for path in PATHS {
            let Some(item) = document.paths.paths.get_mut(path) else { continue };
            for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
                add(operation, &shared);
            }
        }
    }
}

fn add(operation: &mut Operation, shared: &BTreeMap<String, RefOr<Response>>) {
    for (status, response) in &mut operation.responses.responses {
        if status == UNKNOWN_KEY {
            continue;
        }
        // Operations without limits share these responses, so that each gets a copy of its own
        // here.
        let referred = match &*response {
            RefOr::Ref(reference) => reference.ref_location.rsplit('/').next().and_then(|name| shared.get(name)).cloned(),
            RefOr::T(_) => None,
        };
        if let Some(referred) = referred {
            *response = referred;
        }
        if let RefOr::T(response) = response {
            response.headers.extend(HEADERS.map(|(name, description)| (name.to_owned(), header(description).into())));
        }
    }
}

fn header(description: &str) -> Header {
    let whole = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build();
    HeaderBuilder::new().schema(Some(whole)).description(Some(description)).build()
}
