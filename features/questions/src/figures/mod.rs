//! `POST /projects/{project_id}/analytics/report`, `…/breakdown` and `…/goals`

pub(crate) mod breakdown;
mod compare;
pub(crate) mod goals;
pub(crate) mod report;
