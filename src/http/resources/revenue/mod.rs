//! `GET /projects/{project_id}/revenue/…`

pub(crate) mod attribution;
pub(crate) mod cohorts;
pub(crate) mod metrics;
pub(crate) mod timeseries;
pub(crate) mod unconverted;
