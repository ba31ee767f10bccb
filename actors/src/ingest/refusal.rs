//! The reasons why events are not recorded.

use std::fmt;

use headcount_domain::Quota;
use headcount_domain::intake::submission::Invalid;

/// The reason why events were not recorded, or why the outcome is unknown.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TrackError {
    /// The engine can't take events now. Nothing was recorded.
    #[error("nothing was recorded: {0}")]
    Unavailable(String),
    /// The event exceeds a quota of its project. Nothing was recorded.
    #[error("{0}")]
    QuotaExceeded(QuotaExceeded),
    /// The events may be in the log, and their shard did not answer: they may or may not be
    /// counted.
    #[error("the outcome is not known yet")]
    OutcomeUnknown,
}

/// An event would create a new item of a kind whose quota its project has reached. Nothing of the
/// event was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotaExceeded {
    /// The kind.
    pub quota: Quota,
    /// The limit per project.
    pub limit: usize,
}

impl QuotaExceeded {
    /// The error code, for programs.
    pub const CODE: &'static str = "quota_exceeded";
}

impl fmt::Display for QuotaExceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, limit) = (self.quota.name(), self.limit);
        write!(f, "the project has reached its quota of {limit} {name}; events that name only known {name} are still recorded")
    }
}

/// The reason why events were not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    /// The event is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The project does not exist.
    #[error("unknown project")]
    UnknownProject,
    /// The engine did not record the event.
    #[error(transparent)]
    Track(#[from] TrackError),
}
