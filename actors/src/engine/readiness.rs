//! Whether an engine is ready for new work.

use std::time::Duration;

use super::handle::Engine;
use crate::shard::AskError;
use crate::shard::Condition;

/// A checkpoint may hang without failing. This is assumed after this many intervals without a
/// checkpoint, and at least this time.
const HANGING_AFTER_INTERVALS: u32 = 15;
const MIN_HANGING: Duration = Duration::from_secs(15 * 60);

fn doubted(ahead: Duration) -> String {
    let days = ahead.as_secs().div_ceil(24 * 60 * 60);
    format!("the clock is {days} days ahead of the last known time: set it, or confirm it by `headcount clock confirm`")
}

impl Engine {
    /// Checks that every shard answers and events can be taken, for `/readyz`.
    ///
    /// # Errors
    /// The reason, in words.
    pub async fn ready(&self) -> Result<(), String> {
        if self.admission.is_draining() {
            return Err("the server is shutting down".to_owned());
        }
        if !self.owners().is_live() {
            return Err("the brokers of the cluster don't answer".to_owned());
        }
        if let Some(why) = self.admission.unavailable() {
            return Err(why.to_owned());
        }
        if let Some(ahead) = self.clock_ahead() {
            return Err(doubted(ahead));
        }
        if let Some(why) = self.late_checkpoints() {
            return Err(why);
        }
        if let Some((partition, condition, _)) = self.admission.health.not_working().first() {
            return Err(match condition {
                Condition::Failed => format!("partition {partition} has failed; the log says why"),
                _ => format!("partition {partition} is being rebuilt"),
            });
        }
        self.questions.shards.check().await.map_err(|error| match error {
            AskError::Busy => "too many questions are waiting".to_owned(),
            _ => "a shard does not answer".to_owned(),
        })
    }

    /// Whether a shard fails to answer although its turn has come. A restart cures that, unlike the
    /// reasons of [`Engine::ready`].
    pub async fn is_stalled(&self) -> bool {
        !matches!(self.questions.shards.check().await, Ok(()) | Err(AskError::Busy))
    }

    /// Returns the reason why the next start would have too much to replay, if there is one.
    fn late_checkpoints(&self) -> Option<String> {
        let progress = &self.admission.checkpoints;
        let failing = progress.failing();
        if failing > 0 {
            return Some(format!("the checkpoints of {failing} partitions can't be written"));
        }
        let longest = progress.longest_unsaved()?;
        let limit = MIN_HANGING.max(self.inner.config.checkpoints.interval.saturating_mul(HANGING_AFTER_INTERVALS));
        (longest > limit).then(|| format!("no checkpoint was written for {} seconds", longest.as_secs()))
    }
}
