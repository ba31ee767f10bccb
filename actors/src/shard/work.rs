//! Committed events on their way into the state.

use headcount_domain::{Position, ProjectId};

use crate::admission_gate::Permit;
use crate::event_codec::LogRecord;

/// The result of applying one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The position of the event.
    pub position: Position,
    /// The position of the event with its `external_id`: its own, unless it is a duplicate.
    pub first: Position,
    /// Whether its day is below the project's floor, so that no figure counts it.
    pub is_dropped: bool,
}

impl Outcome {
    /// Returns the outcome of an event that counts, or is skipped.
    pub(crate) fn at(position: Position) -> Self {
        Self { position, first: position, is_dropped: false }
    }

    /// Whether an earlier event has its `external_id`.
    pub fn is_duplicate(self) -> bool {
        self.first != self.position
    }
}

/// A committed record of one project.
pub(crate) struct Work {
    pub(crate) partition: u16,
    pub(crate) project: ProjectId,
    pub(crate) first: Position,
    pub(crate) record: LogRecord,
    /// The event's permits of the admission gate, until it is applied.
    pub(crate) permits: Vec<Permit>,
    /// Called when all events are applied; dropped if the outcome is unknown.
    pub(crate) reply: Box<dyn FnOnce(Vec<Outcome>) + Send>,
}

/// Work with the outcomes of the events already applied.
pub(super) struct QueuedWork {
    pub(super) work: Work,
    pub(super) outcomes: Vec<Outcome>,
}

impl QueuedWork {
    pub(super) fn new(work: Work) -> Self {
        Self { outcomes: Vec::with_capacity(work.record.count()), work }
    }

    /// The position of its first event that is not applied.
    pub(super) fn next(&self) -> Position {
        self.work.first + self.outcomes.len() as u64
    }

    pub(super) fn is_done(&self) -> bool {
        self.outcomes.len() >= self.work.record.count()
    }

    /// Returns the permits and replies.
    pub(super) fn finish(self) {
        let Self { work, outcomes } = self;
        drop(work.permits);
        (work.reply)(outcomes);
    }
}
