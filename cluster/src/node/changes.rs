//! Changes of the control data by other nodes. A node applies them soon, and a node that makes a
//! change waits until all nodes have applied it.
//!
//! A node that has recorded a change notifies the other nodes, which apply it and answer. It need
//! not wait for nodes that don't answer. A node stops answering requests when it has not read the
//! control log to its end for [`Timing::held`](crate::lease::Timing::held), so after
//! [`Timing::taken_after`](crate::lease::Timing::taken_after) no node that lacks the change answers
//! requests.
//!
//! If a node announces that it answers no requests, other nodes don't wait for it. Before it
//! answers requests again, it announces that first, and then reads the log to its end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, Subject, Subscriber};
use futures_util::StreamExt as _;
use headcount_actors::Engine;
use headcount_common::ControlError;
use headcount_control::RegistryError;
use headcount_storage::boot_time::boot_time;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, timeout_at};

use super::liveness::Liveness;
use super::nodes::Announcements;
use super::timing::{NodeError, NodeTiming, stopped};
use crate::connection::Connection;

/// The subject on which a node announces a recorded change.
const SUBJECT: &str = "hc.changed";
/// How often a node asks for changes that it was not notified of.
const INTERVAL: Duration = Duration::from_millis(500);

/// The kinds of documents whose changes nodes wait for, in the order of announcements.
pub(super) const KINDS: [&str; 2] = ["profiles", "webhooks"];

/// The last changes that a node has recorded: the position of the last control record, and the
/// number of the last change of each kind of documents.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Made(pub(super) [u64; 1 + KINDS.len()]);

impl Made {
    fn to_bytes(self) -> Vec<u8> {
        self.0.map(u64::to_le_bytes).concat()
    }

    /// Decodes an announcement. A node of an earlier version sends the position alone.
    fn of_bytes(bytes: &[u8]) -> Self {
        let mut numbers = bytes.chunks_exact(8).map(|number| number.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)));
        Self([(); 1 + KINDS.len()].map(|()| numbers.next().unwrap_or(0)))
    }

    /// Whether these changes include all of `made`.
    fn has(self, made: Self) -> bool {
        self.0.iter().zip(made.0).all(|(own, made)| *own >= made)
    }

    fn with(mut self, made: Self) -> Self {
        self.0.iter_mut().zip(made.0).for_each(|(own, made)| *own = made.max(*own));
        self
    }
}

/// Applies the changes of other nodes.
pub(super) struct Follower {
    engine: Engine,
    liveness: Arc<Liveness>,
    client: Client,
    heard: Subscriber,
    node: String,
    /// The changes that other nodes have announced.
    made: Made,
    /// The nodes that wait until the changes are applied here.
    waiting: Vec<Subject>,
    stop: watch::Receiver<bool>,
}

impl Follower {
    pub(super) async fn new(
        (engine, liveness): (Engine, Arc<Liveness>),
        connection: &Connection,
        node: &str,
        stop: watch::Receiver<bool>,
    ) -> Result<Self, NodeError> {
        let client = connection.client.clone();
        let heard = client.subscribe(SUBJECT).await.map_err(NodeError::unavailable)?;
        Ok(Self { engine, liveness, client, heard, node: node.to_owned(), made: Made::default(), waiting: Vec::new(), stop })
    }

    /// Applies all changes up to now, and all announced changes. From then on, this node answers
    /// requests for a while.
    pub(super) async fn follow(&self) -> Result<(), NodeError> {
        let (engine, began) = (self.engine.clone(), boot_time());
        let follow = move || {
            let mut made = Made([engine.partitions.follow()?; 1 + KINDS.len()]);
            for (number, kind) in made.0.iter_mut().skip(1).zip(KINDS) {
                *number = engine.partitions.follow_documents(kind)?;
            }
            Ok::<_, RegistryError>(made)
        };
        let followed = tokio::task::spawn_blocking(follow).await.map_err(NodeError::unavailable)?;
        if !followed?.has(self.made) {
            return Err(NodeError::Unavailable("an answer about what nodes have made is out of date".to_owned()));
        }
        self.liveness.followed(began);
        Ok(())
    }

    pub(super) async fn run(mut self) {
        loop {
            let heard = tokio::select! {
                heard = self.heard.next() => heard,
                () = sleep(INTERVAL) => None,
                () = stopped(&mut self.stop) => return,
            };
            if let Some(message) = heard {
                self.made = self.made.with(Made::of_bytes(&message.payload));
                self.waiting.extend(message.reply);
            }
            match self.follow().await {
                Ok(()) => self.reply().await,
                Err(NodeError::Control(RegistryError::Storage(error @ ControlError::Compacted { .. }))) => {
                    tracing::error!(%error, "this node stops, and answers nobody");
                    return self.liveness.end();
                }
                Err(error) => tracing::debug!(%error, "the control log can't be read"),
            }
        }
    }

    /// Answers the waiting nodes whose changes are applied here.
    async fn reply(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            if let Err(error) = self.client.publish(waiting, self.node.clone().into()).await {
                tracing::debug!(%error, "a node that has made a change does not hear that it is applied here");
            }
        }
    }
}

/// Waits until all live nodes have applied the changes of this node.
#[derive(Clone)]
pub(super) struct Propagating {
    pub(super) client: Client,
    pub(super) announcements: Arc<Mutex<Announcements>>,
    pub(super) node: String,
    pub(super) timing: NodeTiming,
}

impl Propagating {
    pub(super) async fn propagate(&self, made: Made) {
        let until = Instant::now() + self.timing.leases.taken_after;
        let asked = timeout_at(until, self.ask(made, until)).await;
        if let Err(error) = asked.unwrap_or_else(|_| Err(NodeError::Unavailable("they do not answer in time".to_owned()))) {
            tracing::warn!(%error, "whether all nodes know of a change can't be asked; it is answered when those that don't answer nobody");
            tokio::time::sleep_until(until).await;
        }
    }

    async fn ask(&self, made: Made, until: Instant) -> Result<(), NodeError> {
        let inbox = self.client.new_inbox();
        let mut replies = self.client.subscribe(inbox.clone()).await.map_err(NodeError::unavailable)?;
        // Sent before the nodes are listed: a node that is announced later reads the log after
        // that.
        let asked = self.client.publish_with_reply(SUBJECT, inbox, made.to_bytes().into()).await;
        asked.map_err(NodeError::unavailable)?;
        let live = self.announcements.lock().await.live().await?;
        if live.address(&self.node).is_none() {
            return Err(NodeError::Unavailable("the keys of nodes are out of date".to_owned()));
        }
        let mut waiting: BTreeSet<String> = live.answering().filter(|name| *name != self.node).map(str::to_owned).collect();
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
