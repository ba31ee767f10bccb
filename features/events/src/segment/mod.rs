//! Segment's HTTP API: what its SDKs send and ask. `docs/SEGMENT.md` describes it.

pub(crate) mod calls;
pub(crate) mod settings;
mod write_key;

use actix_web::http::Method;
use headcount_api::routes::Router;

use crate::cors;

/// Adds the paths that are not in the document: the short names of calls, slashes at the end, and the preflights.
pub(crate) fn add_further_paths(router: &mut Router) {
    calls::add_further_paths(router);
    router.on("/v1/m/", Method::POST, |call| Box::pin(settings::sdk_metrics(call)));
    for path in ["/v1/m", "/v1/m/", settings::PATH] {
        router.on(path, Method::OPTIONS, cors::segment_preflight);
    }
}
