//! Recorded events as records of another log.

use std::ops::ControlFlow;

use headcount_domain::{Position, ProjectId};
use headcount_storage::codec::CodecError;

use crate::event_codec::{Events, LogRecord, encode};
use crate::history::HistoryPiece;

/// Receives the project of a record, the former positions of its events, and its payload.
pub(crate) type RecordCopy<'v> = dyn FnMut(ProjectId, Vec<Position>, Vec<u8>) -> ControlFlow<()> + 'v;

/// Passes wanted events and floors on as records, each of one project. A record of several events
/// has at most `most_bytes`.
///
/// # Errors
/// An event exceeds the maximum size of a record.
pub(crate) fn copy_records(
    piece: HistoryPiece,
    most_bytes: usize,
    is_wanted: impl Fn(Position, ProjectId) -> bool,
    visit: &mut RecordCopy<'_>,
) -> Result<ControlFlow<()>, CodecError> {
    let (mut of_project, mut positions) = (Events::new(), Vec::new());
    let mut rest = piece.events.into_iter().filter(|(position, event)| is_wanted(*position, event.project)).peekable();
    while let Some((position, event)) = rest.next() {
        let project = event.project;
        of_project.push(event);
        positions.push(position);
        if rest.peek().is_none_or(|(_, next)| next.project != project)
            && copy_in_parts(project, std::mem::take(&mut positions), std::mem::take(&mut of_project), most_bytes, visit)?
                .is_break()
        {
            return Ok(ControlFlow::Break(()));
        }
    }
    match piece.floor.filter(|(position, floor)| is_wanted(*position, floor.project)) {
        Some((position, floor)) => Ok(visit(floor.project, vec![position], LogRecord::Floor(floor).encode()?)),
        None => Ok(ControlFlow::Continue(())),
    }
}

/// Passes events on in records, which are halved until they fit or have a single event.
fn copy_in_parts(
    project: ProjectId,
    mut positions: Vec<Position>,
    mut events: Events,
    most_bytes: usize,
    visit: &mut RecordCopy<'_>,
) -> Result<ControlFlow<()>, CodecError> {
    let (payload, count) = (encode(&events)?, events.len());
    if payload.len() <= most_bytes || count <= 1 {
        return Ok(visit(project, positions, payload));
    }
    let later = (positions.split_off(count / 2), events.split_off(count / 2));
    match copy_in_parts(project, positions, events, most_bytes, visit)? {
        ControlFlow::Continue(()) => copy_in_parts(project, later.0, later.1, most_bytes, visit),
        broken => Ok(broken),
    }
}
