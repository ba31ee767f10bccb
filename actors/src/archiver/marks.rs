//! Has messages leave the log of brokers: they go in their order, some hours after they were sealed, and the last one that is sealed stays.

use headcount_common::partition_of;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;

use super::error::SealingError;
use super::sealing::seal_all;
use super::sources::Sources;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The position up to which everything can leave the log of brokers: there are messages behind that have nothing of what is removed.
    marked: Position,
    /// As far as that is sealed.
    marks_sealed: Position,
}

impl Marks {
    /// Seals what is in the log of a project's partition up to a position, and returns whether that has left it. A message goes only with what lies behind it: if there is nothing, two more are
    /// written.
    pub(super) fn push_out(&mut self, sources: &Sources, project: ProjectId, until: Position) -> Result<bool, Fault> {
        if self.marked < until {
            let last = sources.logged.last_position(partition_of(project));
            // The last message that is sealed stays, and so may the one before.
            if !(sources.removal.mark)(project) || !(sources.removal.mark)(project) {
                return Ok(false);
            }
            self.marked = last;
        }
        if self.marks_sealed < self.marked {
            match seal_all(sources) {
                Ok(_) => self.marks_sealed = self.marked,
                // Checkpoints are on their way.
                Err(SealingError::NoAnswer) => return Ok(false),
                Err(_) if sources.is_stopping() => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(is_out_of_log(sources, project, until))
    }
}

/// Whether the log has nothing of a project's partition up to a position.
pub(super) fn is_out_of_log(sources: &Sources, project: ProjectId, until: Position) -> bool {
    sources.logged.first_position(partition_of(project)) > until
}
