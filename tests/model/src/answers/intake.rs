//! What arrived. Drops, duplicates and invalid events are no events, so that the model does not
//! know them.

use super::params::Params;
use super::{Asked, Wrong};
use crate::json::Json;
use crate::time::day_of;

/// Answers `GET /projects/{project_id}/intake`.
pub(super) fn intake(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.range(asked)?;
    params.done()?;
    let of_project = || asked.facts.events.iter().filter(|event| event.project == project && !event.erased);
    let received = || of_project().filter(|event| window.holds(day_of(event.received_ms, asked.timezone)));
    Ok(Json::object([
        ("recorded", Json::from(received().count())),
        ("without_consent", Json::from(received().filter(|event| !event.consent).count())),
    ]))
}
