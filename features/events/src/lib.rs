//! Events: `POST /i`, `/track`, `/i/batch`, the pixel `GET /i`, and the same for servers; Segment's
//! HTTP API; the tracker; and what arrived at a project.

#![forbid(unsafe_code)]

mod cors;
mod ingest;
mod intake;
mod pixel;
mod segment;
mod track;
mod tracker;

use actix_web::http::Method;
use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;
use headcount_api::extra_paths::ExtraPaths;
use headcount_api::routes::Router;

/// The endpoints.
pub const ENDPOINTS: Endpoints = endpoints! {
    track => track_alias: Open, ByHandler;
    pixel => pixel: Open, ByHandler;
    track => track: Open, ByHandler;
    track => batch: Open, ByHandler;
    track => server_track: Project(EventsWrite, Member), ProjectOwner(Records);
    track => server_batch: Project(EventsWrite, Member), ProjectOwner(Records);
    // An import says what was decided about events, and so can write any figure.
    track => import: Project(EventsWrite, Admin), ProjectOwner(Records);
    segment::calls => track: Open, ByHandler;
    segment::calls => identify: Open, ByHandler;
    segment::calls => page: Open, ByHandler;
    segment::calls => screen: Open, ByHandler;
    segment::calls => group: Open, ByHandler;
    segment::calls => alias: Open, ByHandler;
    segment::calls => batch: Open, ByHandler;
    segment::calls => import: Open, ByHandler;
    segment::settings => sdk_metrics: Open;
    segment::settings => settings: Open;
    intake => intake: Project(AnalyticsRead, Member), ProjectOwner(Reads);
    tracker => tracker: Open;
}
.with_paths(add_further_paths);

/// Adds the paths that are not in the document: those that an operator names, and preflights.
fn add_further_paths(router: &mut Router, extra: &ExtraPaths) {
    if let Some(path) = &extra.collect {
        router.on(path, Method::POST, |call| Box::pin(track::track_alias(call)));
        router.on(path, Method::GET, |call| Box::pin(pixel::pixel(call)));
    }
    for path in ["/i", "/track", "/i/batch"].into_iter().chain(extra.collect.as_deref()) {
        router.on(path, Method::OPTIONS, cors::preflight);
    }
    if let Some(path) = &extra.script {
        for method in [Method::GET, Method::HEAD] {
            router.on(path, method, |call| Box::pin(tracker::tracker(call)));
        }
    }
    segment::add_further_paths(router);
}
