//! Decides when events are sealed.

use std::ops::ControlFlow;

use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;

use super::sources::Sources;
use crate::history::{HistoryError, HistoryPiece, Wanted};

/// The time when the first event after a position was received.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    /// The position, and the event's time of receipt.
    known: Option<(Position, Instant)>,
    /// A position without events after it, and the end of the log at that time.
    none: Option<(Position, Position)>,
}

impl Oldest {
    /// Returns the age of the first event after the position `after` in milliseconds; 0 if there is
    /// none.
    pub(super) fn age_ms(&mut self, sources: &Sources, after: Position) -> Result<u64, HistoryError> {
        let received = match self.known {
            Some((known_after, received)) if known_after == after => received,
            _ => {
                let ends = sources.partitions.clone().map(|partition| sources.logged.last_position(partition));
                let end = ends.max().unwrap_or(0);
                if end <= after || self.none == Some((after, end)) {
                    return Ok(0);
                }
                let Some(received) = first_received(sources, after)? else {
                    self.none = Some((after, end));
                    return Ok(0);
                };
                self.known = Some((after, received));
                received
            }
        };
        Ok(u64::try_from(sources.settings.clock.now().0.saturating_sub(received.0)).unwrap_or(0))
    }
}

fn first_received(sources: &Sources, after: Position) -> Result<Option<Instant>, HistoryError> {
    let wanted: Vec<Wanted> = sources.partitions.clone().map(|partition| Wanted::partition(partition, after)).collect();
    let mut received = None;
    sources.logged.read(&wanted, &mut |piece: HistoryPiece| {
        received = piece.events.first().map(|(_, event)| event.received);
        if received.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(received)
}

/// Whether a waiting project can continue, because its list of files is intact again.
pub(super) fn can_resume(sources: &Sources) -> bool {
    let catalog = sources.sealed.catalog();
    catalog.waiting().keys().any(|project| sources.existing_archive(&catalog, *project).is_none_or(|opened| opened.is_ok()))
}

/// Returns how many events must be in durable checkpoints to be sealed now; `None` if it is not
/// time. Sealing few events makes small files that must be merged later, so only old events are
/// sealed whatever their number.
pub(super) fn least_due(sources: &Sources, age_ms: u64) -> Option<u64> {
    let policy = &sources.settings.policy;
    let unsealed = sources.unsealed();
    let after_ms = u64::try_from(policy.seal_after.as_millis()).unwrap_or(u64::MAX);
    match unsealed {
        0 => None,
        _ if age_ms >= after_ms => Some(0),
        _ => (unsealed >= policy.seal_events).then_some(policy.seal_events),
    }
}
