//! Makes events leave the log. A segment on this machine's disk leaves as soon as its events are
//! sealed and nobody reads it. Messages leave brokers in order, some hours after they were sealed,
//! and the last sealed one stays.

use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_domain::{Fault, Position, ProjectId};

use super::error::SealingError;
use super::sealing::seal_all;
use super::sources::Sources;

/// The minimum time between two attempts with brokers, since clients decide how much is deleted and
/// erased.
const PAUSE: Duration = Duration::from_secs(10);

/// The removal of events from the log of an archive.
#[derive(Debug, Default)]
pub(super) struct LogRemoval {
    /// The position up to which messages can leave the log of brokers, because other messages
    /// follow.
    marked: Position,
    /// The position up to which these marks are sealed.
    marks_sealed: Position,
    /// The last attempt with brokers.
    tried: Option<Stopwatch>,
}

impl LogRemoval {
    /// Seals the log of a project's partition up to a position, and returns whether its events have
    /// left the log. A message of brokers leaves only if others follow, so two marks are written.
    pub(super) fn remove(&mut self, sources: &Sources, project: ProjectId, until: Position) -> Result<bool, Fault> {
        if is_out_of_log(sources, project, until) {
            return Ok(true);
        }
        if self.tried.is_some_and(|at| at.elapsed() < PAUSE) {
            return Ok(false);
        }
        let has_segments = sources.ingest.log.end_segment(until);
        if !has_segments {
            self.tried = Some(Stopwatch::now());
            if self.marked < until {
                let last = sources.logged.last_position(partition_of(project));
                // The last sealed message stays, and the one before it may stay, too.
                if !(sources.mark)(project) || !(sources.mark)(project) {
                    return Ok(false);
                }
                self.marked = last;
            }
        }
        if has_segments || self.marks_sealed < self.marked {
            match seal_all(sources) {
                Ok(_) => self.marks_sealed = self.marked,
                // Checkpoints are being written.
                Err(SealingError::NoAnswer) => return Ok(false),
                Err(_) if sources.is_stopping() => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(is_out_of_log(sources, project, until))
    }
}

/// Whether the log of a project's partition has no event up to a position.
pub(super) fn is_out_of_log(sources: &Sources, project: ProjectId, until: Position) -> bool {
    sources.logged.first_position(partition_of(project)) > until
}
