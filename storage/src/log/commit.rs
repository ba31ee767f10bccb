//! Recording events: submissions and their outcomes.

use std::sync::Arc;

use super::Position;
use super::error::LogError;

/// Records submissions in order, per partition. Outcomes go to the sink that was passed at the
/// start.
pub trait Commit<T>: Send + Sync {
    /// Queues `count` events of a partition. Exactly one [`Outcome`] follows, with the `ticket`.
    ///
    /// # Errors
    /// Returns the ticket if the queue is closed: nothing was recorded.
    fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: T) -> Result<(), T>;

    /// Ends the current segment if it has events up to the position `until`. Logs failures: call
    /// again while such a segment exists. Returns `false` if the log has no segments: then events
    /// leave it only if others follow.
    fn end_segment(&self, until: Position) -> bool;

    /// Refuses further submissions, records the queued ones, reports their outcomes, and stops. A
    /// second call does nothing.
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
    /// The ticket of the submission.
    pub ticket: T,
}

/// A submission that was not recorded, and never will be.
#[derive(Debug, Clone)]
pub struct Refused<T> {
    /// The reason, shared by all submissions that were refused together.
    pub reason: Arc<LogError>,
    /// The ticket of the submission.
    pub ticket: T,
}

/// The result of a submission.
#[derive(Debug, Clone)]
pub enum Outcome<T> {
    /// It is durable.
    Committed(Committed<T>),
    /// It was not recorded.
    Refused(Refused<T>),
    /// It may or may not have been recorded; reading the log decides.
    Undecided(T),
}
