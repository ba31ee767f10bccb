//! Whether events are applied.

use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::{Position, ProjectId};

use super::Questions;
use crate::shard::AskError;

/// The first pause between two checks, and the longest. A caller that waits for long checks less
/// often.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(320);

impl Questions {
    /// Returns whether all events of a project up to a position are applied.
    ///
    /// # Errors
    /// Returns an [`AskError`]: the answer is unknown.
    pub async fn has_applied(&self, project: ProjectId, position: Position) -> Result<bool, AskError> {
        self.ask_shard(project, move |shard| Ok(shard.has_applied(project, position))).await
    }

    /// Waits until all events of a project up to a position are applied, for at most `patience`.
    /// Returns whether they are. It asks less often the longer it waits.
    ///
    /// # Errors
    /// Returns an [`AskError`]: the answer is unknown.
    pub async fn wait_until_applied(&self, project: ProjectId, position: Position, patience: Duration) -> Result<bool, AskError> {
        let (began, mut pause) = (Stopwatch::now(), FIRST_PAUSE);
        loop {
            if self.has_applied(project, position).await? {
                return Ok(true);
            }
            let left = patience.saturating_sub(began.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            tokio::time::sleep(pause.min(left)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}
