//! Compacts the control log while a node runs.

use std::time::Duration;

use headcount_actors::Engine;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::timeout;

use super::timing::{NodeError, stopped};
use crate::compaction::{Compaction, CompactionPace};
use crate::connection::Connection;

const INTERVAL: Duration = Duration::from_secs(30);

/// Shares snapshots of the control data until the node stops.
pub(super) async fn compact(connection: Connection, replicas: usize, engine: Engine, mut stop: watch::Receiver<bool>) {
    let mut kept: Option<Compaction> = None;
    while timeout(INTERVAL, stopped(&mut stop)).await.is_err() {
        let (former, connection, engine, stops) = (kept.take(), connection.clone(), engine.clone(), stop.clone());
        let run = move || {
            let open = || Compaction::open(&Handle::current(), (&connection, replicas), CompactionPace::default());
            let mut compaction = former.map_or_else(open, Ok).map_err(NodeError::unavailable)?;
            compaction.run(engine.registry(), &|| !*stops.borrow())?;
            Ok::<_, NodeError>(compaction)
        };
        let ran = tokio::task::spawn_blocking(run).await.map_err(NodeError::unavailable).flatten();
        let warn = |error: &NodeError| tracing::warn!(%error, "the control log could not be compacted: will try again");
        kept = ran.inspect_err(warn).ok();
    }
}
