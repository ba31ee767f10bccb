//! Keeps the events that a backup reads from being removed meanwhile.
//!
//! Events are removed once their project has a base. The owner of a partition holds first bases back for some time after a backup asks for that, and after it takes the partition over, since it does not
//! know what its predecessor was asked. A backup asks again until it ends.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tokio::task::AbortHandle;

use super::questions::HoldQuestion;
use crate::engine::handle::Engine;
use crate::shard::AskError;

/// How long first bases are held back after a question.
const HELD_FOR: Duration = Duration::from_secs(30);
/// The pause before all partitions are asked again, and the most that an answer may take.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// How many partitions are asked at once: all of them in less time than bases are held back, even if none has an answer.
const ASKED_AT_ONCE: usize = 16;
/// How long first bases are held back in a partition that was taken over, or began here: several of these pauses.
pub(in crate::engine) const HELD_AT_FIRST: Duration = Duration::from_secs(15);

/// Has owners hold first bases back while it exists.
#[derive(Debug)]
pub(super) struct FirstBasesHold(AbortHandle);

impl Drop for FirstBasesHold {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Engine {
    /// Begins to have the owners of partitions hold first bases back. Call it where a runtime is.
    pub(super) fn hold_bases_of(&self, partitions: BTreeSet<u16>) -> FirstBasesHold {
        let engine = self.clone();
        let holding = async move {
            loop {
                let ask = |partition| tokio::time::timeout(AGAIN_AFTER, engine.ask_about_partition(HoldQuestion { partition }));
                // An owner that gives no answer is asked again, and whether events were removed is known in the end.
                stream::iter(partitions.iter().copied())
                    .map(ask)
                    .buffer_unordered(ASKED_AT_ONCE)
                    .for_each(async |_held| {})
                    .await;
                tokio::time::sleep(AGAIN_AFTER).await;
            }
        };
        FirstBasesHold(tokio::spawn(holding).abort_handle())
    }

    /// Holds the first bases of a partition back that is here.
    pub(super) async fn hold_first_bases(&self, partition: u16) -> Result<(), AskError> {
        let sealed = self.inner.archives.of(partition);
        // One may be being listed.
        let hold = move || sealed.first_bases().hold(HELD_FOR);
        tokio::task::spawn_blocking(hold).await.map_err(|_| AskError::NoAnswer)
    }
}
