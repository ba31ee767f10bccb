//! Decides when events are sealed.

use std::ops::ControlFlow;

use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;

use super::sources::Sources;
use crate::history::{HistoryError, HistoryPiece, Wanted};
use crate::partitions::PARTITIONS;

/// When the first event after some position was received.
#[derive(Debug, Default)]
pub(super) struct Oldest {
    /// The position, and the event's time of receipt.
    known: Option<(Position, Instant)>,
}

impl Oldest {
    /// Returns the age of the first event after the position `after` in milliseconds; 0 if there is none.
    pub(super) fn age_ms(&mut self, sources: &Sources, after: Position) -> Result<u64, HistoryError> {
        let received = match self.known {
            Some((known_after, received)) if known_after == after => received,
            _ => {
                let Some(received) = first_received(sources, after)? else { return Ok(0) };
                self.known = Some((after, received));
                received
            }
        };
        Ok(u64::try_from(sources.settings.clock.now().0.saturating_sub(received.0)).unwrap_or(0))
    }
}

fn first_received(sources: &Sources, after: Position) -> Result<Option<Instant>, HistoryError> {
    if sources.logged.last_position() <= after {
        return Ok(None);
    }
    let wanted: Vec<Wanted> = (0..PARTITIONS).map(|partition| Wanted::partition(partition, after)).collect();
    let mut received = None;
    sources.logged.read(&wanted, &mut |piece: HistoryPiece| {
        received = piece.events.first().map(|(_, event)| event.received);
        if received.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(received)
}

/// Whether a project that waits can go on: its list of files is intact again.
pub(super) fn can_resume(sources: &Sources) -> bool {
    let catalog = sources.sealed.catalog();
    catalog.waiting().keys().any(|project| sources.existing_archive(&catalog, *project).is_none_or(|opened| opened.is_ok()))
}

/// Whether events are to be sealed.
pub(super) fn is_due(sources: &Sources, age_ms: u64) -> bool {
    let unsealed =
        sources.delivered.load(std::sync::atomic::Ordering::Acquire).saturating_sub(sources.sealed.catalog().sealed_until());
    let after_ms = u64::try_from(sources.settings.policy.seal_after.as_millis()).unwrap_or(u64::MAX);
    unsealed > 0 && (unsealed >= sources.settings.policy.seal_events || age_ms >= after_ms)
}
