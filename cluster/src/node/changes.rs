//! Changes of the control data that other nodes make: a node applies them soon, and whoever makes one waits until all have.
//!
//! A node that has recorded a change tells the others, which apply it and answer. It need not wait for nodes that don't: each of them stops answering requests when it has not read
//! the control log to its end for [`Timing::held`](crate::lease::Timing::held), so that after [`Timing::taken_after`](crate::lease::Timing::taken_after) none is left that does not know the
//! change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Subscriber};
use futures_util::StreamExt as _;
use headcount_actors::{Engine, Owners};
use headcount_storage::boot_time::boot_time;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::nodes::Announcements;
use super::timing::{NodeError, NodeTiming, stopped};
use crate::connection::Connection;

/// Where a node says that it has recorded a change.
const SUBJECT: &str = "hc.changed";
/// How often a node asks for changes that it did not hear of.
const INTERVAL: Duration = Duration::from_millis(500);

/// Applies what other nodes change.
pub(super) struct Follower {
    engine: Engine,
    owners: Arc<Owners>,
    client: Client,
    heard: Subscriber,
    node: String,
    timing: NodeTiming,
    stop: watch::Receiver<bool>,
}

impl Follower {
    pub(super) async fn new(
        (engine, owners): (Engine, Arc<Owners>),
        connection: &Connection,
        node: &str,
        timing: NodeTiming,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, NodeError> {
        let client = connection.client.clone();
        let heard = client.subscribe(SUBJECT).await.map_err(NodeError::unavailable)?;
        Ok(Self { engine, owners, client, heard, node: node.to_owned(), timing, stop })
    }

    /// Applies everything up to now. From then on this node answers requests for a while.
    pub(super) async fn follow(&self) -> Result<(), NodeError> {
        let (engine, began) = (self.engine.clone(), boot_time());
        let followed = tokio::task::spawn_blocking(move || engine.follow()).await.map_err(NodeError::unavailable)?;
        followed.map_err(NodeError::unavailable)?;
        self.owners.live(began + self.timing.leases.held);
        Ok(())
    }

    pub(super) async fn run(mut self) {
        loop {
            let heard = tokio::select! {
                heard = self.heard.next() => heard,
                () = sleep(INTERVAL) => None,
                () = stopped(&mut self.stop) => return,
            };
            if let Err(error) = self.follow().await {
                tracing::debug!(%error, "the control log can't be read");
                continue;
            }
            // It was recorded before it was said.
            if let Some(reply) = heard.and_then(|message| message.reply)
                && let Err(error) = self.client.publish(reply, self.node.clone().into()).await
            {
                tracing::debug!(%error, "a node that has made a change does not hear that it is applied here");
            }
        }
    }
}

/// Waits until all live nodes have applied what this node has recorded.
pub(super) struct Propagating {
    pub(super) client: Client,
    pub(super) announcements: Arc<Mutex<Announcements>>,
    pub(super) node: String,
    pub(super) timing: NodeTiming,
}

impl Propagating {
    pub(super) async fn propagate(&self) {
        let until = Instant::now() + self.timing.leases.taken_after;
        if let Err(error) = self.ask(until).await {
            tracing::warn!(%error, "whether all nodes know of a change can't be asked; it is answered when those that don't answer nobody");
            tokio::time::sleep_until(until).await;
        }
    }

    async fn ask(&self, until: Instant) -> Result<(), NodeError> {
        let inbox = self.client.new_inbox();
        let mut replies = self.client.subscribe(inbox.clone()).await.map_err(NodeError::unavailable)?;
        // Asked before the nodes are listed: one that is announced later reads the log after that.
        let asked = self.client.publish_with_reply(SUBJECT, inbox, Vec::new().into()).await;
        asked.map_err(NodeError::unavailable)?;
        let live = self.announcements.lock().await.live().await?;
        let mut waiting: BTreeSet<String> = live.names().filter(|name| *name != self.node).map(str::to_owned).collect();
        while !waiting.is_empty() {
            match timeout_at(until, replies.next()).await {
                Ok(Some(reply)) => drop(waiting.remove(&*String::from_utf8_lossy(&reply.payload))),
                Ok(None) => return Err(NodeError::Unavailable("the connection is closed".to_owned())),
                Err(_) => {
                    tracing::info!(
                        ?waiting,
                        "some nodes do not say that they know of a change; by now they do, or answer nobody"
                    );
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}
