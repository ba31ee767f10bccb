//! Publishes the states of the partitions that a node has, and fetches those of others.

use std::sync::Arc;
use std::time::Duration;

use headcount_actors::CopiedState;
use headcount_storage::log::ReadLog as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::shared::Shared;
use crate::files::{SharedStates, copy_dir, remove_copy};
use crate::log::LogReader;

/// How long a partition is kept for its state to be published before another node gets it.
const LAST_TIMEOUT: Duration = Duration::from_secs(5);

/// The state of a partition, on its way to other nodes.
pub(super) struct Publishing {
    shared: Arc<Shared>,
    partition: u16,
    running: Option<JoinHandle<()>>,
    looked: Instant,
}

impl Publishing {
    pub(super) fn new(shared: &Arc<Shared>, partition: u16) -> Self {
        Self { shared: Arc::clone(shared), partition, running: None, looked: Instant::now() }
    }

    /// Begins to publish the state if that is due.
    pub(super) fn look(&mut self) {
        let is_running = self.running.as_ref().is_some_and(|running| !running.is_finished());
        if self.shared.files.is_none() || is_running || self.looked.elapsed() < self.shared.timing.states.looked_every {
            return;
        }
        self.looked = Instant::now();
        let (shared, partition, runtime) = (Arc::clone(&self.shared), self.partition, Handle::current());
        self.running = Some(tokio::task::spawn_blocking(move || publish_if_due(&shared, partition, &runtime)));
    }

    /// Publishes the state once more if another node would have to replay much, for a short time. The partition is still served.
    pub(super) async fn finish(self) {
        let partition = self.partition;
        if self.shared.files.is_some() && timeout(LAST_TIMEOUT, self.publish_last()).await.is_err() {
            tracing::info!(partition, "the last state is not published in time; the next owner replays more");
        }
    }

    async fn publish_last(self) {
        let Self { shared, partition, running, .. } = self;
        if let Some(running) = running {
            // Its failure is in the log.
            drop(running.await);
        }
        let Some(states) = states(&shared) else { return };
        if !states.is_behind(partition, shared.log.last_position(partition), &shared.timing.states).await {
            return;
        }
        if let Err(error) = shared.engine.save(partition).await {
            tracing::debug!(partition, %error, "the last state can't be saved");
        }
        let (shared, runtime) = (Arc::clone(&shared), Handle::current());
        drop(tokio::task::spawn_blocking(move || publish(&shared, partition, &runtime)).await);
    }
}

fn publish_if_due(shared: &Shared, partition: u16, runtime: &Handle) {
    let Some(states) = states(shared) else { return };
    match shared.engine.saved_position(partition) {
        Ok(saved) if runtime.block_on(states.is_due(partition, saved, &shared.timing.states)) => {
            publish(shared, partition, runtime);
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(partition, %error, "the saved state can't be read"),
    }
}

fn publish(shared: &Shared, partition: u16, runtime: &Handle) {
    let Some(states) = states(shared) else { return };
    // Before the state is read: it is in memory in part.
    let _turn = runtime.block_on(states.turn());
    let withdrawals = runtime.block_on(states.withdrawals(partition));
    let saved = match shared.engine.saved_state(partition) {
        Ok(Some(saved)) if saved.mark.is_some() => saved,
        // Or without a mark: nobody could compare it with the log. A later checkpoint has one.
        Ok(_) => return runtime.block_on(states.put_off(partition)),
        Err(error) => {
            tracing::warn!(partition, %error, "the saved state can't be read; a new owner would replay more");
            return runtime.block_on(states.put_off(partition));
        }
    };
    match runtime.block_on(states.publish(partition, &saved, withdrawals)) {
        Ok(()) => tracing::debug!(partition, position = saved.position, "a state is published"),
        Err(error) => tracing::warn!(partition, %error, "a state is not published; a new owner would replay more"),
    }
}

fn states(shared: &Shared) -> Option<&SharedStates> {
    Some(shared.files.as_ref()?.states())
}

/// Fetches the published state of a partition that is taken over, if that saves replaying much.
pub(super) async fn fetch(shared: &Shared, partition: u16, reader: &LogReader) -> Option<CopiedState> {
    let (states, engine) = (states(shared)?, shared.engine.clone());
    let own = tokio::task::spawn_blocking(move || engine.saved_position(partition)).await;
    // What can't be read is replaced or rebuilt.
    let own = own.ok().and_then(Result::ok).unwrap_or(0);
    let dir = copy_dir(shared.engine.data_dir(), partition);
    states.fetch((partition, reader), own, &dir, &shared.timing.states).await
}

/// Removes what was fetched of a partition that is given up, also while it was taken over.
pub(super) async fn forget(shared: &Shared, partition: u16) {
    let dir = copy_dir(shared.engine.data_dir(), partition);
    // If it does not run, the next copy of the partition removes it.
    drop(tokio::task::spawn_blocking(move || remove_copy(&dir)).await);
}

/// Removes what was fetched of a partition.
pub(super) async fn forget_copy(copied: CopiedState) {
    // If it does not run, the next copy of the partition removes it.
    drop(tokio::task::spawn_blocking(move || remove_copy(&copied.dir)).await);
}
