//! The endpoints that are no feature's: one file for each, or for each small family, and their
//! table.

pub(crate) mod docs;
pub(crate) mod events;
pub(crate) mod health;
pub(crate) mod intake;
pub(crate) mod metrics;
mod node_metrics;
pub(crate) mod page;
pub(crate) mod privacy_artifact;
pub(crate) mod privacy_download;
pub(crate) mod privacy_requests;
pub(crate) mod segment;
pub(crate) mod tracker;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

/// The endpoints that are no feature's.
pub(crate) const ENDPOINTS: Endpoints = endpoints! {
    events::track => track_alias: Open, ByHandler;
    events::pixel => pixel: Open, ByHandler;
    events::track => track: Open, ByHandler;
    events::track => batch: Open, ByHandler;
    events::track => server_track: Project(EventsWrite, Member), ProjectOwner(Records);
    events::track => server_batch: Project(EventsWrite, Member), ProjectOwner(Records);
    // An import says what was decided about events, and so can write any figure.
    events::track => import: Project(EventsWrite, Admin), ProjectOwner(Records);
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
    privacy_requests => list: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_requests => create: Organization(PrivacyRequestsWrite, Admin), Home(Records);
    privacy_requests => show: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_download => download: Organization(PrivacyRequestsRead, Member), Home(ReadsForLong);
    health => healthz: Open;
    health => readyz: Open;
    health => version: Open;
    metrics => metrics: Open;
    tracker => tracker: Open;
    docs => openapi_json: Open;
    docs => docs: Open;
};
