//! What senders hear about their events.

use headcount_domain::ids::{ProjectId, event_id};
use headcount_domain::intake::admission::DropReason;
use headcount_domain::intake::event::Position;
use headcount_domain::intake::submission::Invalid;
use headcount_domain::intake::warning::Warning;

use crate::intake_counts::{DropCounts, RepairCounts};
use crate::shard::Outcome;

/// How many warnings the receipt of a batch has.
pub const MAX_BATCH_WARNINGS: usize = 100;

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
    /// The places in the batch of those that were recorded with the time of receipt, as their own lay too far ahead.
    pub clamped: Vec<usize>,
    /// What was repaired, by the place in the batch: the first [`MAX_BATCH_WARNINGS`].
    pub warnings: Vec<(usize, Warning)>,
    /// The invalid ones and those that exceed a quota, by their place in the batch. All others need no resending.
    pub errors: Vec<(usize, Invalid)>,
}

/// The result of recording a part of an imported file.
#[derive(Debug)]
pub struct ImportReceipt {
    /// What became of the lines.
    pub batch: BatchReceipt,
    /// The position of the last event. Absent if the log has none of the part.
    pub position: Option<Position>,
}

/// Where an event of a batch comes from.
pub(crate) struct BatchPlace {
    /// Its place in the batch.
    pub(crate) index: usize,
    /// Its time lay too far ahead.
    pub(crate) is_clamped: bool,
}

impl BatchReceipt {
    /// Counts what became of the events of a batch that were sent to the log.
    pub(crate) fn apply(&mut self, outcomes: Vec<Outcome>, places: &[BatchPlace], drops: &mut DropCounts) {
        for (outcome, place) in outcomes.into_iter().zip(places) {
            match outcome {
                Outcome { is_dropped: true, .. } => self.drop_one(DropReason::Retention, drops),
                outcome if outcome.is_duplicate() => self.duplicates += 1,
                _ => {
                    self.recorded += 1;
                    self.clamped.extend(place.is_clamped.then_some(place.index));
                }
            }
        }
    }

    /// Counts what was repaired of an event, and notes it while there is room.
    pub(crate) fn warn(&mut self, index: usize, warnings: Vec<Warning>, drops: &mut DropCounts) {
        drops.repaired.add(&RepairCounts::of(&warnings));
        let room = MAX_BATCH_WARNINGS - self.warnings.len();
        self.warnings.extend(warnings.into_iter().take(room).map(|warning| (index, warning)));
    }

    /// Counts an event that is not recorded.
    pub(crate) fn drop_one(&mut self, reason: DropReason, drops: &mut DropCounts) {
        self.dropped += 1;
        drops.count(reason);
    }
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
