//! Publishes the states of a node's partitions, and fetches the states of other nodes.

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

/// How long a partition that moves waits for its state to be published.
const LAST_TIMEOUT: Duration = Duration::from_secs(5);

/// The publication of a partition's state for other nodes.
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

    /// Starts to publish the state if it is due.
    pub(super) fn look(&mut self) {
        let is_running = self.running.as_ref().is_some_and(|running| !running.is_finished());
        if self.shared.files.is_none() || is_running || self.looked.elapsed() < self.shared.timing.states.looked_every {
            return;
        }
        self.looked = Instant::now();
        let (shared, partition, runtime) = (Arc::clone(&self.shared), self.partition, Handle::current());
        self.running = Some(tokio::task::spawn_blocking(move || publish_if_due(&shared, partition, &runtime)));
    }

    /// Publishes the state again if another node would have to replay much, within a short time.
    /// The partition is still served.
    pub(super) async fn finish(self) {
        let partition = self.partition;
        if self.shared.files.is_some() && timeout(LAST_TIMEOUT, self.publish_last()).await.is_err() {
            tracing::info!(partition, "the last state is not published in time; the next owner replays more");
        }
    }

    async fn publish_last(self) {
        let Self { shared, partition, running, .. } = self;
        if let Some(running) = running {
            // The task logs its own failure.
            drop(running.await);
        }
        let Some(states) = states(&shared) else { return };
        if !states.is_behind(partition, shared.log.last_position(partition), &shared.timing.states).await {
            return;
        }
        if let Err(error) = shared.engine.partitions.save(partition).await {
            tracing::debug!(partition, %error, "the last state can't be saved");
        }
        let (shared, runtime) = (Arc::clone(&shared), Handle::current());
        drop(tokio::task::spawn_blocking(move || publish(&shared, partition, &runtime)).await);
    }
}

fn publish_if_due(shared: &Shared, partition: u16, runtime: &Handle) {
    let Some(states) = states(shared) else { return };
    match shared.engine.partitions.saved_positions(partition) {
        Ok(saved) if runtime.block_on(states.is_due(partition, saved.position, &shared.timing.states)) => {
            publish(shared, partition, runtime);
        }
        Ok(_) => {}
        Err(error) => tracing::debug!(partition, %error, "the saved state can't be read"),
    }
}

fn publish(shared: &Shared, partition: u16, runtime: &Handle) {
    let Some(states) = states(shared) else { return };
    // Taken before the state is read, since part of it is in memory.
    let _turn = runtime.block_on(states.turn());
    let withdrawals = runtime.block_on(states.withdrawals(partition));
    let saved = match shared.engine.partitions.saved_state(partition) {
        Ok(Some(saved)) if saved.mark.is_some() => saved,
        // No mark: other nodes could not compare the state with the log. A later checkpoint has
        // one.
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
    Some(&shared.files.as_ref()?.states)
}

/// Fetches the published state of a partition during a takeover, if that saves much replay.
pub(super) async fn fetch(shared: &Shared, partition: u16, reader: &LogReader) -> Option<CopiedState> {
    let (states, engine) = (states(shared)?, shared.engine.clone());
    let own = tokio::task::spawn_blocking(move || engine.partitions.saved_positions(partition)).await;
    // A state that can't be read is replaced or rebuilt.
    let own = own.ok().and_then(Result::ok).unwrap_or_default().position;
    let dir = copy_dir(shared.engine.data_dir(), partition);
    states.fetch((partition, reader), own, &dir, &shared.timing.states).await
}

/// Removes the fetched state of a partition that is given up, perhaps during its takeover.
pub(super) async fn forget(shared: &Shared, partition: u16) {
    let dir = copy_dir(shared.engine.data_dir(), partition);
    // If the task does not run, the next copy of the partition removes it.
    drop(tokio::task::spawn_blocking(move || remove_copy(&dir)).await);
}

/// Removes the fetched state of a partition.
pub(super) async fn forget_copy(copied: CopiedState) {
    // If the task does not run, the next copy of the partition removes it.
    drop(tokio::task::spawn_blocking(move || remove_copy(&copied.dir)).await);
}
