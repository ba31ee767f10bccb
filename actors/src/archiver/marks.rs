//! Makes messages leave the log of brokers. They leave in order, some hours after they were sealed,
//! and the last sealed one stays.

use headcount_common::partition_of;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use super::error::SealingError;
use super::sealing::seal_all;
use super::sources::Sources;

/// The marks that push messages out of the log of brokers.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The position up to which messages can leave the log of brokers, because other messages
    /// follow.
    marked: Position,
    /// The position up to which the marks are sealed.
    marks_sealed: Position,
}

impl Marks {
    /// Seals the log of a project's partition up to a position, and returns whether its events have
    /// left the log. A message leaves only if others follow. If there are none, two marks are
    /// written.
    pub(super) fn push_out(&mut self, sources: &Sources, project: ProjectId, until: Position) -> Result<bool, Fault> {
        if self.marked < until {
            let last = sources.logged.last_position(partition_of(project));
            // The last sealed message stays, and the one before it may stay, too.
            if !(sources.removal.mark)(project) || !(sources.removal.mark)(project) {
                return Ok(false);
            }
            self.marked = last;
        }
        if self.marks_sealed < self.marked {
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
