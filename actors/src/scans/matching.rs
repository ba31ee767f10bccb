//! Which events of a scan match a predicate, conditions on their sessions included.

use std::io;

use super::error::Result;
use headcount_domain::intake::fields::Entry;
use headcount_domain::{Event, Position, Predicate, Window};

use super::decided::{flags, visit_matching};
use super::events::Scan;
use super::record_sort::{RecordSorter, SortedRecords};
use super::sessions::Sessions;

/// The events that match a predicate, for a pass in the order of positions.
pub(super) struct Matching<'p> {
    window: Option<Window>,
    predicate: &'p Predicate,
    /// The positions of the matching events, if the predicate has conditions on sessions.
    found: Option<Positions>,
}

impl<'p> Matching<'p> {
    /// Prepares to match events. Costs a pass over the project's events if the predicate has
    /// conditions on sessions.
    pub(super) fn new(scan: &Scan<'_>, window: Option<Window>, predicate: &'p Predicate, sort_bytes: usize) -> Result<Self> {
        let found = predicate.needs_session().then(|| find(scan, window, predicate, sort_bytes)).transpose()?;
        Ok(Self { window, predicate, found })
    }

    /// Whether an event matches. Positions must rise from call to call.
    pub(super) fn has(&mut self, position: Position, event: &Event) -> io::Result<bool> {
        match &mut self.found {
            Some(positions) => positions.has(position),
            None => Ok(is_on_day(self.window, event) && self.predicate.matches_event(event)),
        }
    }
}

fn is_on_day(window: Option<Window>, event: &Event) -> bool {
    window.is_none_or(|window| window.contains(event.day))
}

/// Returns the positions of matching events in matching sessions. An event without ids has no
/// session.
fn find(scan: &Scan<'_>, window: Option<Window>, predicate: &Predicate, sort_bytes: usize) -> Result<Positions> {
    let scratch = scan.scratch();
    let mut sessions = Sessions::new(scan, sort_bytes);
    let mut found = RecordSorter::new(scratch, sort_bytes);
    scan.visit_events(&mut |position, event| {
        let keys = sessions.keys(position, event)?;
        let matches = is_on_day(window, event) && predicate.matches_event(event);
        let Some(named) = keys.named() else {
            return if matches && predicate.holds_of_nobody(predicate.parts_of(event)) {
                found.push(&[&position.to_be_bytes()])
            } else {
                Ok(())
            };
        };
        let flags = flags(predicate.parts_of(event), &Entry::of(event), event.has_source(), matches);
        let at = (event.time.0, event.interactive);
        // Only events that match carry their position.
        match matches {
            true => sessions.add(named, position, at, &[&flags[..], &position.to_be_bytes()].concat()),
            false => sessions.add(named, position, at, &flags),
        }
    })?;
    visit_matching(sessions, scan, (predicate, None), None, sort_bytes, &mut |_, position| found.push(&[position]))?;
    Ok(Positions { sorted: found.finish()?, next: Some(0) })
}

/// Positions in order.
struct Positions {
    sorted: SortedRecords,
    /// The first position that was not passed yet; `None` at the end.
    next: Option<Position>,
}

impl Positions {
    fn has(&mut self, position: Position) -> io::Result<bool> {
        while self.next.is_some_and(|next| next < position) {
            self.next = self.sorted.next()?.map(|record| record.try_into().map_or(0, Position::from_be_bytes));
        }
        Ok(self.next == Some(position))
    }
}
