//! The endpoints of the interface: their routes and the OpenAPI document, which both follow from
//! the tables of the features.

use std::io;
use std::sync::LazyLock;

use actix_web::HttpResponse;
use headcount_api::call::{ApiCall, at_once};
use headcount_api::extra_paths::ExtraPaths;
use headcount_api::extract::auth;
use headcount_api::node;
use headcount_api::openapi::modifiers::{Closed, Credentials, RateLimits};
use headcount_api::openapi::responses::{ImpliedErrors, SharedResponses};
use headcount_api::respond::code::CodeTable;
use headcount_api::respond::error::{ApiError, ErrorBody, Result, SegmentErrorBody};
use headcount_api::routes::{Router, Routes};
use utoipa::{Modify, OpenApi};

use crate::http::features::ENDPOINTS;
use crate::http::resources::{docs, health, metrics, page};

/// What the document says besides the endpoints.
#[derive(OpenApi)]
#[openapi(
    info(title = "headcount", version = health::API_SEMVER, description = include_str!("description.md")),
    components(schemas(ErrorBody, SegmentErrorBody)),
    security(("api_token" = []), ("session" = [])),
    tags(
        (name = "events", description = "Recording what happens."),
        (name = "segment", description = "Segment's HTTP API, for its SDKs. Their write key is the public key."),
        (name = "analytics", description = "Counting events and users of a project."),
        (name = "data", description = "The recorded events themselves."),
        (name = "revenue", description = "Money of a project."),
        (name = "identities", description = "What single users did, over all projects."),
        (name = "companies", description = "What companies did, over all projects."),
        (name = "groups", description = "What groups of other types did, over all projects."),
        (name = "definitions", description = "Segments, goals and annotations of a project."),
        (name = "management", description = "The organization, its members, projects, keys and tokens."),
        (name = "sign-in", description = "Browsers that sign in, and links that share figures."),
        (name = "profiles", description = "What the organization knows of companies."),
        (name = "webhooks", description = "Where notifications are sent."),
        (name = "channels", description = "Where messages for people are sent: chats."),
        (name = "alerts", description = "Thresholds of figures, and the messages when they are passed."),
        (name = "privacy", description = "What is recorded of one person, and its removal."),
        (name = "operations", description = "The process itself."),
    ),
)]
struct Frame;

/// Makes the document of all operations.
fn document() -> utoipa::openapi::OpenApi {
    let frame = Frame::openapi();
    let mut document = ENDPOINTS.iter().fold(frame, |document, endpoints| document.merge_from((endpoints.document)()));
    let modifiers: [&dyn Modify; 6] = [&CodeTable, &SharedResponses, &ImpliedErrors, &Credentials, &Closed, &RateLimits];
    modifiers.iter().for_each(|modifier| modifier.modify(&mut document));
    document
}

/// What paths begin with that the server keeps for itself, besides those of the document.
const RESERVED: [&str; 5] = ["v1", "ui", "assets", "session", "node"];

/// Returns the routes of every endpoint, and of the further names of some.
pub(crate) fn routes(extra: &ExtraPaths) -> io::Result<Routes> {
    metrics::start();
    let mut router = Router::default();
    for (path, methods, endpoint) in ENDPOINTS.iter().flat_map(|endpoints| (endpoints.operations)()) {
        router.operation(&path, &methods, endpoint);
    }
    for add in ENDPOINTS.iter().filter_map(|endpoints| endpoints.paths) {
        add(&mut router, extra);
    }
    docs::add_assets(&mut router);
    page::add_page(&mut router);
    // For other nodes: any other request finds nothing there, whatever its method.
    router.on_all(node::ASK_PATH, |call| Box::pin(node::ask(call)));
    router.routes(|call| at_once(not_found(&call)))
}

fn not_found(call: &ApiCall) -> Result<HttpResponse> {
    if call.request.path().starts_with("/admin/") {
        auth::operator(&call.state, &call.request)?;
    }
    Err(ApiError::not_found("path"))
}

/// Returns a path that can't be used, if any: both are the same, or it begins as a path of the interface does, which may have it one day.
pub(crate) fn taken(extra: &ExtraPaths) -> Option<&str> {
    // The document takes a while to make, and few servers have further paths.
    extra.paths().next()?;
    let interface = document().paths.paths;
    let first_segment = |path: &str| path.split('/').nth(1).unwrap_or_default().to_owned();
    let is_same = extra.script == extra.collect;
    let is_known = |first: &str| interface.keys().any(|known| first_segment(known) == first) || RESERVED.contains(&first);
    extra.paths().find(|path| is_same || is_known(&first_segment(path)))
}

/// Returns the document as JSON, which is made once.
pub(crate) fn json() -> &'static str {
    static JSON: LazyLock<String> = LazyLock::new(|| {
        document().to_json().unwrap_or_else(|error| {
            tracing::error!(%error, "the OpenAPI document can't be written as JSON");
            "{}".to_owned()
        })
    });
    &JSON
}
