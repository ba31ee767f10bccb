//! What becomes of a running engine whose checkpoints are late: the log has everything, but memory is bounded, and the next
//! start has to replay what no checkpoint has.

use std::time::Duration;

use headcount_domain::ids::ProjectId;

use crate::engine::Engine;
use crate::shard::partition_of;

/// Besides failing, checkpoints may hang: how many intervals something may be unsaved before that is taken for it.
const HANGING_AFTER: u32 = 15;
const LEAST_HANGING: Duration = Duration::from_secs(15 * 60);

impl Engine {
    /// Whether events of a project can be taken, as far as its partition is concerned.
    ///
    /// # Errors
    /// Why not.
    pub fn accepts(&self, project: ProjectId) -> Result<(), &'static str> {
        match self.progress().accepts(partition_of(project)) {
            true => Ok(()),
            false => Err("the state of this project can't be written to disk"),
        }
    }

    /// Why the next start would have more to replay than it should, if so.
    pub(crate) fn checkpoints_late(&self) -> Option<String> {
        let progress = self.progress();
        let failing = progress.failing();
        if failing > 0 {
            return Some(format!("the checkpoints of {failing} partitions can't be written"));
        }
        let longest = progress.longest_unsaved()?;
        let limit = LEAST_HANGING.max(self.config().checkpoints.interval.saturating_mul(HANGING_AFTER));
        (longest > limit).then(|| format!("no checkpoint was written for {} seconds", longest.as_secs()))
    }
}
