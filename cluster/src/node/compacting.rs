//! Compacts the control log while a node runs.

use std::time::Duration;

use headcount_control::{Registry, RegistryError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::timing::stopped;
use crate::compaction::{Compaction, CompactionPace};
use crate::connection::Connection;

const INTERVAL: Duration = Duration::from_secs(30);

/// Shares snapshots of the control data until the node stops. Blocking.
pub(super) fn compact(
    runtime: &Handle,
    (connection, replicas): (&Connection, usize),
    registry: &Registry,
    mut stop: watch::Receiver<bool>,
) {
    let (mut compaction, stops) = (None, stop.clone());
    while runtime.block_on(async { timeout(INTERVAL, stopped(&mut stop)).await }).is_err() {
        let open = || Compaction::open(runtime, (connection, replicas), CompactionPace::default());
        let opened = compaction.take().map_or_else(open, Ok).map_err(RegistryError::from);
        let ran = opened.and_then(|mut opened| opened.run(registry, &|| !*stops.borrow()).map(|()| opened));
        let warn = |error: &RegistryError| tracing::warn!(%error, "the control log could not be compacted: will try again");
        compaction = ran.inspect_err(warn).ok();
    }
}
