//! The endpoints of the interface. One line each: the module and the handler. The routes and the OpenAPI document follow from the list.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::http::Method;
use actix_web::web::{Data, ServiceConfig};
use utoipa::{OpenApi, Path as _};

use crate::http::app::AppState;
use crate::http::call::{ApiCall, at_once};
use crate::http::extra_paths::ExtraPaths;
use crate::http::extract::auth;
use crate::http::openapi::modifiers::{Closed, Credentials};
use crate::http::openapi::rate_limits::RateLimits;
use crate::http::openapi::responses::SharedResponses;
use crate::http::resources;
use crate::http::resources::docs::DocumentJson;
use crate::http::resources::events::cors;
use crate::http::resources::{docs, metrics, node, page, version};
use crate::http::respond::code::CodeTable;
use crate::http::respond::error::{ApiError, ErrorBody, SegmentErrorBody};
use crate::http::routes::Router;

macro_rules! endpoints {
    ($($($module:ident)::+ => $handler:ident;)*) => {
        fn add_operations(router: &mut Router) {
            pastey::paste! {
                $({
                    use resources::$($module)::+::{[<__path_ $handler>] as Documented, $handler};
                    router.operation(&Documented::path(), Documented::methods(), |call| Box::pin($handler(call)));
                })*
            }
        }

        /// The document of all operations.
        #[derive(OpenApi)]
        #[openapi(
            info(title = "headcount", version = version::API_SEMVER, description = include_str!("openapi/description.md")),
            paths($(resources::$($module)::+::$handler),*),
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
        (name = "management", description = "The organization, its members, projects, keys and tokens."),
        (name = "sign-in", description = "Browsers that sign in, and links that share figures."),
        (name = "profiles", description = "What the organization knows of companies."),
        (name = "webhooks", description = "Where notifications are sent."),
        (name = "privacy", description = "What is recorded of one person, and its removal."),
        (name = "operations", description = "The process itself."),
    ),
            modifiers(&CodeTable, &SharedResponses, &Credentials, &Closed, &RateLimits),
        )]
        pub(crate) struct Document;
    };
}

// The router tries paths nearly in this order (`routes.rs`), and most requests are events.
endpoints! {
    events::track => track_alias;
    events::pixel => pixel;
    events::track => track;
    events::track => batch;
    events::track => server_track;
    events::track => server_batch;
    events::track => import;
    segment::calls => track;
    segment::calls => identify;
    segment::calls => page;
    segment::calls => screen;
    segment::calls => group;
    segment::calls => alias;
    segment::calls => batch;
    segment::calls => import;
    segment::sdk_metrics => sdk_metrics;
    segment::settings => settings;
    unique_users => count_unique_users_per_day;
    aggregate => aggregate;
    retention => retention;
    metadata_fields => fields;
    figures::report => report;
    figures::breakdown => breakdown;
    traffic => traffic;
    explain::figure => explain;
    intake => intake;
    live => live;
    raw_events::list => list;
    raw_events::export => export;
    revenue::metrics => metrics;
    revenue::timeseries => timeseries;
    revenue::attribution => by_attribution;
    revenue::cohorts => ltv_cohorts;
    identities => profile;
    identities => referrers;
    identities => top_pages;
    identities => top;
    companies => lookup;
    companies => top;
    companies => metrics;
    companies => top_users;
    groups => metrics;
    groups => top;
    organizations => create;
    archive => seal;
    clock => show;
    clock => confirm;
    organization => show;
    organization => change;
    actions => list;
    profile_builds => build;
    profile_builds => show;
    company_profiles => list;
    company_profiles => create;
    company_profiles => show;
    company_profiles => change;
    company_profiles => remove;
    members => list;
    members => create;
    members => show;
    members => change;
    members => remove;
    projects => list;
    projects => create;
    projects => show;
    projects => change;
    projects => remove;
    public_keys => list;
    public_keys => create;
    public_keys => change;
    public_keys => remove;
    shares => list;
    shares => create;
    shares => revoke;
    session => sign_in;
    session => show;
    session => sign_out;
    session => create_code;
    webhooks => list;
    webhooks => create;
    webhooks => show;
    webhooks => change;
    webhooks => remove;
    webhooks => rotate_secret;
    webhooks => deliveries;
    webhooks => replay;
    api_tokens => list;
    api_tokens => create;
    api_tokens => change;
    api_tokens => revoke;
    audit_log => list;
    privacy_requests => list;
    privacy_requests => create;
    privacy_requests => show;
    privacy_download => download;
    backups => backup;
    verifications => verify;
    health => healthz;
    health => readyz;
    version => version;
    metrics => metrics;
    tracker => tracker;
    docs => openapi_json;
    docs => docs;
}

/// What paths begin with that the server keeps for itself, besides those of the document.
const RESERVED: [&str; 5] = ["v1", "ui", "assets", "session", "node"];

/// Registers every endpoint, and the further names of some.
pub(crate) fn routes(config: &mut ServiceConfig, state: &Data<AppState>) {
    metrics::start();
    let extra = &state.extra_paths;
    let mut router = Router::new(state);
    add_operations(&mut router);
    if let Some(path) = &extra.collect {
        router.on(path, Method::POST, |call| Box::pin(resources::events::track::track_alias(call)));
        router.on(path, Method::GET, |call| Box::pin(resources::events::pixel::pixel(call)));
    }
    for path in ["/i", "/track", "/i/batch"].into_iter().chain(extra.collect.as_deref()) {
        router.on(path, Method::OPTIONS, cors::preflight);
    }
    if let Some(path) = &extra.script {
        for method in [Method::GET, Method::HEAD] {
            router.on(path, method, |call| Box::pin(resources::tracker::tracker(call)));
        }
    }
    resources::segment::add_further_paths(&mut router);
    docs::add_assets(&mut router);
    page::add_page(&mut router);
    // For other nodes: any other request finds nothing there, whatever its method.
    router.on_all(node::ASK_PATH, |call| Box::pin(node::ask(call)));
    router.register(config, |call| at_once(not_found(&call)));
    config.app_data(Data::new(DocumentJson(json())));
}

fn not_found(call: &ApiCall) -> Result<HttpResponse, ApiError> {
    if call.request.path().starts_with("/admin/") {
        auth::operator(&call.state, &call.request)?;
    }
    Err(ApiError::not_found("path"))
}

/// Returns a path that can't be used, if any: both are the same, or it begins as a path of the interface does, which may have it one day.
pub(crate) fn taken(extra: &ExtraPaths) -> Option<&str> {
    // The document takes a while to make, and few servers have further paths.
    extra.paths().next()?;
    let interface = Document::openapi().paths.paths;
    let first_segment = |path: &str| path.split('/').nth(1).unwrap_or_default().to_owned();
    let is_same = extra.script == extra.collect;
    let is_known = |first: &str| interface.keys().any(|known| first_segment(known) == first) || RESERVED.contains(&first);
    extra.paths().find(|path| is_same || is_known(&first_segment(path)))
}

/// Returns the document as JSON, which is made once.
pub(crate) fn json() -> &'static str {
    static JSON: LazyLock<String> = LazyLock::new(|| {
        Document::openapi().to_json().unwrap_or_else(|error| {
            tracing::error!(%error, "the OpenAPI document can't be written as JSON");
            "{}".to_owned()
        })
    });
    &JSON
}
