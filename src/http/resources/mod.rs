//! The endpoints that are no feature's: one file for each, or for each small family, and their
//! table.

pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod metrics;
mod node_metrics;
pub(crate) mod page;
pub(crate) mod privacy_artifact;
pub(crate) mod privacy_download;
pub(crate) mod privacy_requests;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

/// The endpoints that are no feature's.
pub(crate) const ENDPOINTS: Endpoints = endpoints! {
    privacy_requests => list: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_requests => create: Organization(PrivacyRequestsWrite, Admin), Home(Records);
    privacy_requests => show: Organization(PrivacyRequestsRead, Member), Home(Reads);
    privacy_download => download: Organization(PrivacyRequestsRead, Member), Home(ReadsForLong);
    health => healthz: Open;
    health => readyz: Open;
    health => version: Open;
    metrics => metrics: Open;
    docs => openapi_json: Open;
    docs => docs: Open;
};
