//! Keeps the events that a backup reads from being removed meanwhile.
//!
//! Events are removed once their project has a base. When a backup asks for it, the owner of a
//! partition holds first bases back for some time. It also does so after a takeover, since it does
//! not know the questions to its predecessor. A backup repeats the question until it ends.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tokio::task::AbortHandle;

use super::questions::HoldQuestion;
use crate::engine::handle::Engine;
use crate::shard::AskError;

/// How long first bases are held back after a question.
const HELD_FOR: Duration = Duration::from_secs(30);
/// The pause before all partitions are asked again, and the time limit of an answer.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The number of partitions asked at once. Even if none answers, all are asked before bases are
/// released.
const ASKED_AT_ONCE: usize = 16;

/// Makes owners hold first bases back while it exists.
#[derive(Debug)]
pub(super) struct FirstBasesHold(AbortHandle);

impl Drop for FirstBasesHold {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Engine {
    /// Begins to make the owners of partitions hold first bases back. Call it inside a runtime.
    pub(super) fn hold_bases_of(&self, partitions: BTreeSet<u16>) -> FirstBasesHold {
        let engine = self.clone();
        let holding = async move {
            loop {
                let ask = |partition| tokio::time::timeout(AGAIN_AFTER, engine.ask_about_partition(HoldQuestion { partition }));
                // An owner without an answer is asked again, and the end of the backup finds out
                // whether events were removed.
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

    /// Holds the first bases of a partition on this machine back.
    pub(super) async fn hold_first_bases(&self, HoldQuestion { partition }: HoldQuestion) -> Result<(), AskError> {
        let sealed = self.partitions.archives.of(partition);
        // A base may be in the middle of being listed.
        let hold = move || sealed.first_bases.hold(HELD_FOR);
        tokio::task::spawn_blocking(hold).await.map_err(|_| AskError::NoAnswer)
    }
}
