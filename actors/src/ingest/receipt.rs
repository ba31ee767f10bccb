//! The answers to senders about their events.

use headcount_domain::ids::event_id;
use headcount_domain::intake::admission::DropReason;
use headcount_domain::intake::submission::Invalid;
use headcount_domain::intake::warning::Warning;
use headcount_domain::{Position, ProjectId};

use crate::intake_counts::{DropCounts, RepairCounts};
use crate::shard::Outcome;

/// The maximum number of warnings in the receipt of a batch.
pub const MAX_BATCH_WARNINGS: usize = 100;

/// The result of tracking one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The id of the event; a duplicate has the id of the first. Absent if it was dropped.
    pub id: Option<String>,
    /// Whether the event counts.
    pub status: Status,
    /// Whether its time was too far ahead, so that the time of receipt is used.
    pub clamped: bool,
    /// The position of the event; a duplicate has the position of the first. Absent if it was
    /// dropped.
    pub position: Option<Position>,
}

/// Whether an event counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The event is durable, and in every figure.
    Recorded,
    /// An earlier event has its `external_id`. This one changes nothing.
    Duplicate,
    /// The project's policy drops the event.
    Dropped(DropReason),
}

/// The result of tracking a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BatchReceipt {
    /// The number of recorded events.
    pub recorded: usize,
    /// The number of events with a known `external_id`.
    pub duplicates: usize,
    /// The number of events dropped by the project's policy, or because their days are below its
    /// floor.
    pub dropped: usize,
    /// The indexes of the recorded events whose time was too far ahead, so that the time of receipt
    /// is used.
    pub clamped: Vec<usize>,
    /// The first [`MAX_BATCH_WARNINGS`] warnings, each with the index of its event.
    pub warnings: Vec<(usize, Warning)>,
    /// The invalid events and those that exceed a quota, each with its index. All other events need
    /// no resending.
    pub errors: Vec<(usize, Invalid)>,
}

/// The result of recording a part of an imported file.
#[derive(Debug)]
pub struct ImportReceipt {
    /// The receipt of the lines.
    pub batch: BatchReceipt,
    /// The position of the last event. Absent if the log has no event of the part.
    pub position: Option<Position>,
}

/// The place of an event in its batch.
pub(crate) struct BatchPlace {
    /// The index of the event in its batch.
    pub(crate) index: usize,
    /// Whether its time was too far ahead.
    pub(crate) is_clamped: bool,
}

impl BatchReceipt {
    /// Counts the outcomes of the events of a batch that were sent to the log.
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

    /// Counts the repairs of an event, and keeps its warnings while there is room.
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
    /// Returns the receipt of an event that is not recorded.
    pub(crate) fn dropped(reason: DropReason) -> Self {
        Self { id: None, status: Status::Dropped(reason), clamped: false, position: None }
    }

    /// Returns the receipt of an applied event.
    pub(crate) fn of(project: ProjectId, external_id: Option<&str>, outcome: Outcome, clamped: bool) -> Self {
        if outcome.is_dropped {
            return Self::dropped(DropReason::Retention);
        }
        let id = event_id(project, external_id, outcome.position);
        let status = if outcome.is_duplicate() { Status::Duplicate } else { Status::Recorded };
        Self { id: Some(id), status, clamped, position: Some(outcome.first) }
    }
}
