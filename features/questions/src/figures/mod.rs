//! `POST /projects/{project_id}/analytics/report` and `…/breakdown`

pub(crate) mod breakdown;
mod compare;
pub(crate) mod report;
