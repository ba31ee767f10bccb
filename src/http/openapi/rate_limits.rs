//! The documentation of rate limits: the headers that report the remaining limit.

use std::collections::BTreeMap;

use utoipa::Modify;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{OpenApi, RefOr, Response};

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
pub(crate) struct RateLimits;

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
        // Operations without limits share these responses, so that each gets a copy of its own here.
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
