//! What senders hear about their events.

use headcount_domain::ids::{ProjectId, event_id};
use headcount_domain::intake::admission::DropReason;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::submission::Invalid;

use crate::shard::Outcome;

/// The result of tracking one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its id; a duplicate has the id of the first. Absent if it was dropped.
    pub id: Option<String>,
    /// Whether it counts.
    pub status: Status,
    /// Its time lay too far ahead, and the time of receipt is used.
    pub clamped: bool,
    /// Its position; a duplicate has that of the first. Absent if it was dropped.
    pub position: Option<Position>,
}

/// Whether an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It is durable, and in every figure.
    Recorded,
    /// An event with its `external_id` is; this one changes nothing.
    Duplicate,
    /// The project's policy is not to record it.
    Dropped(DropReason),
}

/// The result of tracking a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchReceipt {
    /// How many were recorded.
    pub recorded: usize,
    /// How many had an `external_id` that was there already.
    pub duplicates: usize,
    /// How many were dropped by the project's policy, or since their days lie below its floor.
    pub dropped: usize,
    /// The invalid ones and those that exceed a quota, by their place in the batch. All others need no resending.
    pub errors: Vec<(usize, Invalid)>,
}

impl Receipt {
    /// The receipt of an event that is not recorded.
    pub(crate) fn dropped(reason: DropReason) -> Self {
        Self { id: None, status: Status::Dropped(reason), clamped: false, position: None }
    }

    /// The receipt of an event that was applied.
    pub(crate) fn of(project: ProjectId, external_id: Option<&str>, outcome: Outcome, clamped: bool) -> Self {
        if outcome.is_dropped {
            return Self::dropped(DropReason::Retention);
        }
        let id = event_id(project, external_id, outcome.position);
        let status = if outcome.is_duplicate() { Status::Duplicate } else { Status::Recorded };
        Self { id: Some(id), status, clamped, position: Some(outcome.first) }
    }
}
