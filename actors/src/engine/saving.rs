//! Saves partitions, for callers that may block.

use std::collections::BTreeMap;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::Position;

use super::handle::Engine;
use crate::shard::AskError;

const POLL: Duration = Duration::from_millis(10);
/// The time before checkpoints are requested again: one request is not enough if a round was in
/// progress.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Saves all applied events of some partitions, unless `is_over` becomes true. Does not wait
    /// for a partition that moves to another machine meanwhile.
    ///
    /// # Errors
    /// [`AskError::NoAnswer`]: a partition is no longer here, is being rebuilt at the call, its
    /// shard does not answer, or `is_over`.
    pub(super) fn save_blocking(
        &self,
        partitions: impl IntoIterator<Item = u16>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), AskError> {
        let applied = |partition: u16| Some((partition, self.questions.shards.applied_until_of(partition)?));
        let applied: Option<_> = partitions.into_iter().map(applied).collect();
        self.save_until(applied.ok_or(AskError::NoAnswer)?, |left| {
            if is_over() || !left.iter().all(|(partition, _)| self.owners().is_here(*partition)) {
                return Err(AskError::NoAnswer);
            }
            Ok(())
        })
    }

    /// Requests checkpoints until partitions are saved up to these positions. `check` may remove a
    /// partition, or end the wait.
    pub(super) fn save_until<E>(
        &self,
        mut left: BTreeMap<u16, Position>,
        mut check: impl FnMut(&mut BTreeMap<u16, Position>) -> Result<(), E>,
    ) -> Result<(), E> {
        let shards = &self.questions.shards;
        let mut asked = None::<Stopwatch>;
        loop {
            // Without an answer, it may still be saved in a moment.
            left.retain(|partition, applied| shards.durable_until_of(*partition).is_none_or(|until| until < *applied));
            if left.is_empty() {
                return Ok(());
            }
            check(&mut left)?;
            if asked.is_none_or(|at| at.elapsed() >= ASK_AGAIN) {
                shards.want_checkpoints();
                asked = Some(Stopwatch::now());
            }
            std::thread::sleep(POLL);
        }
    }
}
