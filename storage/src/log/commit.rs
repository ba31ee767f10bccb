//! Committing events: submissions and their outcomes.

use std::sync::Arc;

use super::Position;
use super::error::LogError;

/// Records submissions in order, per partition. Outcomes go to the sink that the implementation was started with.
pub trait Commit<T>: Send + Sync {
    /// Queues `count` events of a partition. Exactly one [`Outcome`] follows, with the `ticket`.
    ///
    /// # Errors
    /// Returns the ticket if nothing can be queued any more: nothing was recorded.
    fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: T) -> Result<(), T>;

    /// Has the current segment ended if it has events up to the position `until`. Failures are logged: ask again while such a segment is there.
    fn end_segment(&self, until: Position);

    /// Refuses further submissions, records those that are queued, hands out their outcomes, and stops. Does nothing the
    /// second time.
    fn close(&self);
}

/// A submission that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed<T> {
    /// Its partition.
    pub partition: u16,
    /// Position of its first event; the others follow.
    pub first: Position,
    /// Number of its events.
    pub count: u32,
    /// The ticket that it was submitted with.
    pub ticket: T,
}

/// A submission that was not recorded, and never will be.
#[derive(Debug, Clone)]
pub struct Refused<T> {
    /// The reason; the same for all that were refused together.
    pub reason: Arc<LogError>,
    /// The ticket that it was submitted with.
    pub ticket: T,
}

/// The result of a submission.
#[derive(Debug, Clone)]
pub enum Outcome<T> {
    /// It is durable.
    Committed(Committed<T>),
    /// It was not recorded.
    Refused(Refused<T>),
    /// It may or may not have been recorded; readers of the log find out.
    Undecided(T),
}
