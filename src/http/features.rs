//! The features of the program, a line for each. Their commands are in `cli`.

use headcount_actors::Engine;
use headcount_api::app::FeatureState;
use headcount_api::endpoints::Endpoints;

use crate::http::resources;

/// The endpoints, in the order of the OpenAPI document.
pub(crate) const ENDPOINTS: [Endpoints; 10] = [
    headcount_events::ENDPOINTS,
    headcount_privacy::ENDPOINTS,
    resources::ENDPOINTS,
    headcount_questions::ENDPOINTS,
    headcount_paths::ENDPOINTS,
    headcount_organization::ENDPOINTS,
    headcount_profiles::ENDPOINTS,
    headcount_webhooks::ENDPOINTS,
    headcount_pushed::ENDPOINTS,
    headcount_upkeep::ENDPOINTS,
];

/// Makes the states that the handlers of a server share.
pub(crate) fn states(engine: &Engine) -> Vec<FeatureState> {
    ENDPOINTS.iter().filter_map(|endpoints| Some(endpoints.state?(engine))).collect()
}
