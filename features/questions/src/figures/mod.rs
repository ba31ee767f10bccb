//! `POST /projects/{project_id}/analytics/report`, `…/breakdown`, `…/goals`, `…/funnel` and
//! `…/journeys`

pub(crate) mod breakdown;
mod compare;
pub(crate) mod funnel;
pub(crate) mod funnel_people;
pub(crate) mod goals;
pub(crate) mod journeys;
pub(crate) mod report;
