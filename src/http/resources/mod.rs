//! The endpoints that are no feature's: one file for each, or for each small family, and their
//! table.

pub(crate) mod docs;
pub(crate) mod health;
pub(crate) mod metrics;
mod node_metrics;
pub(crate) mod page;

use headcount_api::endpoints;
use headcount_api::endpoints::Endpoints;

/// The endpoints that are no feature's.
pub(crate) const ENDPOINTS: Endpoints = endpoints! {
    health => healthz: Open;
    health => readyz: Open;
    health => version: Open;
    metrics => metrics: Open;
    docs => openapi_json: Open;
    docs => docs: Open;
};
