//! Removes events of days beyond the retention from the log, whose segments have events of all
//! projects.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_domain::{Day, Event, Fault, Position, ProjectId};

use super::error::SealingError;
use super::sealing::seal_all;
use super::sources::Sources;
use crate::history::{HistoryPiece, Wanted};

/// The pause after an attempt, even a failed one, since each attempt seals everything.
const PAUSE: Duration = Duration::from_secs(60 * 60);

/// The floors up to which the log has been emptied.
#[derive(Debug, Default)]
pub(super) struct OldLoggedEvents {
    removed: BTreeMap<ProjectId, Day>,
    /// The start of the last attempt that had something to remove.
    tried: Option<Stopwatch>,
}

impl OldLoggedEvents {
    /// Removes the segments with events of days before the floors, after sealing their events.
    /// Returns whether it sealed any.
    pub(super) fn remove(&mut self, sources: &Sources, floors: &BTreeMap<ProjectId, Day>) -> Result<bool, Fault> {
        let raised: BTreeMap<ProjectId, Day> = floors
            .iter()
            .filter(|(project, day)| self.removed.get(project) < Some(*day))
            .map(|(project, day)| (*project, *day))
            .collect();
        if raised.is_empty() || self.tried.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(false);
        }
        let partitions: BTreeSet<u16> = raised.keys().map(|project| partition_of(*project)).collect();
        let last = last_before(sources, &raised, &partitions)?;
        let Some(last) = last else {
            self.removed.extend(raised);
            return Ok(false);
        };
        self.tried = Some(Stopwatch::now());
        let has_segments = sources.ingest.log.end_segment(last);
        match seal_all(sources) {
            Ok(_) => {}
            // The next pass tries again, with checkpoints or space.
            Err(SealingError::NoAnswer | SealingError::DiskFull) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        sources.done("old events out of the log");
        // Brokers remove sealed messages after some time. The disk of this machine has removed
        // them, unless a reader holds a segment.
        let is_removed = |partition: &u16| !has_segments || sources.logged.first_position(*partition) > last;
        if partitions.iter().all(is_removed) {
            self.removed.extend(raised);
            self.tried = None;
        }
        Ok(true)
    }
}

/// Returns the position of the last event in the log whose day is before the floor of its project,
/// in one of `partitions`. In a cluster, only unsealed events are read: sealed ones leave the
/// brokers in any case, and the first message of the brokers can't be checked against the one
/// before it.
fn last_before(
    sources: &Sources,
    floors: &BTreeMap<ProjectId, Day>,
    partitions: &BTreeSet<u16>,
) -> Result<Option<Position>, Fault> {
    let sealed = if sources.logged.is_in_order() { 0 } else { sources.sealed.catalog().logged_after() };
    let first = |partition| sources.logged.first_position(partition);
    let all = |partition: &u16| Wanted::partition(*partition, first(*partition).saturating_sub(1).max(sealed));
    let wanted: Vec<Wanted> = partitions.iter().map(all).collect();
    let mut last = None;
    let read = sources.logged.read(&wanted, &mut |piece: HistoryPiece| {
        let is_old = |(_, event): &&(Position, Box<Event>)| floors.get(&event.project).is_some_and(|floor| event.day < *floor);
        last = last.max(piece.events.iter().filter(is_old).map(|(position, _)| *position).next_back());
        if sources.is_stopping() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    read.map_err(crate::fault::of_history)?;
    if sources.is_stopping() { Err(Fault::io("the engine is shutting down")) } else { Ok(last) }
}
