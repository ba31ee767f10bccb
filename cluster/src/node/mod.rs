//! A node: one process of a cluster. It takes partitions that are free and fall to it, serves them while it has their leases, and gives them up.

mod identity;
mod member;
mod nodes;
mod partition;

use std::sync::Arc;
use std::time::Duration;

use headcount_actors::ingest::Ticket;
use headcount_actors::{AskError, Engine, Owners, PARTITIONS};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::connection::Connection;
use crate::lease::{Holder, LeaseError, Leases, Timing};
use crate::log::{LogError, StreamCommit, StreamLog};
use crate::record::BUCKET;
pub use identity::{boot_id, node_id};
pub use member::MemberLog;
use nodes::{Announcement, Announcements, LiveNodes};
use partition::PartitionTask;

/// How many partitions a node takes over at once.
const TURNS: usize = 8;
/// How many partitions of a node move to others at once.
const MOVES: usize = 2;

/// How fast nodes react to each other.
#[derive(Debug, Clone, Copy)]
pub struct NodeTiming {
    /// How long leases last. A node without a sign of life for as long is not live.
    pub leases: Timing,
    /// How often leases and the node's own key are renewed.
    pub renewed_every: Duration,
    /// How long the same nodes must have been live before a partition moves to the one that is to have it.
    pub calm: Duration,
}

impl Default for NodeTiming {
    fn default() -> Self {
        Self { leases: Timing::default(), renewed_every: Duration::from_secs(2), calm: Duration::from_secs(60) }
    }
}

/// Why a node can't do something.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// A lease.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The log of a partition.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The engine does not answer.
    #[error(transparent)]
    Engine(#[from] AskError),
    /// The state of a partition can't be opened.
    #[error("its state can't be opened: {0}")]
    Adoption(String),
    /// The engine was not opened as a member with the node's log.
    #[error("the engine is no member of the cluster")]
    NotAMember,
    /// The brokers do not answer.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
}

impl NodeError {
    fn unavailable(error: impl std::fmt::Display) -> Self {
        Self::Unavailable(error.to_string())
    }
}

/// What a node consists of.
#[derive(Debug)]
pub struct NodeParts {
    /// Its connection to the brokers.
    pub connection: Connection,
    /// Its engine, a member.
    pub engine: Engine,
    /// What the engine was opened with.
    pub member: MemberLog,
    /// Who the node is.
    pub holder: Holder,
    /// Where it answers HTTP for other nodes (`http://host:port`).
    pub address: String,
}

/// What the tasks of a node share.
struct Shared {
    connection: Connection,
    engine: Engine,
    log: Arc<StreamLog>,
    commit: Arc<StreamCommit<Ticket>>,
    owners: Arc<Owners>,
    holder: Holder,
    leases: Leases,
    timing: NodeTiming,
    live: watch::Receiver<Live>,
    /// Of those partitions that are taken over at once.
    turns: Semaphore,
    /// Of those partitions that move to other nodes at once.
    moves: Arc<Semaphore>,
}

/// The live nodes, and since when they are the same.
#[derive(Debug, Clone)]
struct Live {
    nodes: LiveNodes,
    since: Instant,
}

/// A node that runs.
#[derive(Debug)]
pub struct Node {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Node {
    /// Starts a node, whose tasks run on `runtime`. It has no partitions yet.
    ///
    /// # Errors
    /// [`NodeError`]: the brokers do not answer.
    pub async fn start(runtime: &Handle, parts: NodeParts, timing: NodeTiming) -> Result<Self, NodeError> {
        let NodeParts { connection, engine, member, holder, address } = parts;
        let MemberLog { log, commit, owners } = member;
        let commit = commit.get().cloned().ok_or(NodeError::NotAMember)?;
        let leases = Leases::open(&connection, BUCKET, timing.leases).await?;
        let mut announcements = Announcements::open(&connection, BUCKET, timing.leases.taken_after).await?;
        let announcement = Announcement { address, version: env!("CARGO_PKG_VERSION").to_owned() };
        announcements.announce(&holder.node, &announcement).await?;
        let nodes = announcements.live().await?;
        let (changed, live) = watch::channel(Live { nodes, since: Instant::now() });
        let (stop, stopped) = watch::channel(false);
        let node = holder.node.clone();
        let (turns, moves) = (Semaphore::new(TURNS), Arc::new(Semaphore::new(MOVES)));
        let shared = Arc::new(Shared { connection, engine, log, commit, owners, holder, leases, timing, live, turns, moves });
        let announcing = Announcing { announcements, announcement, node, changed, stop: stopped.clone(), timing };
        let mut tasks = vec![runtime.spawn(announcing.run())];
        for partition in 0..PARTITIONS {
            let task = PartitionTask { partition, shared: Arc::clone(&shared), stop: stopped.clone() };
            tasks.push(runtime.spawn(task.run()));
        }
        Ok(Self { stop, tasks })
    }

    /// Gives all partitions up, and stops. The engine stays open, without partitions.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task of the node ended early");
            }
        }
    }
}

/// Returns when a node is to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    // If the sender is gone, so is the node.
    drop(stop.wait_for(|stopped| *stopped).await);
}

/// Renews the key of a node, and finds out which others are live.
struct Announcing {
    announcements: Announcements,
    announcement: Announcement,
    node: String,
    changed: watch::Sender<Live>,
    stop: watch::Receiver<bool>,
    timing: NodeTiming,
}

impl Announcing {
    async fn run(mut self) {
        loop {
            tokio::select! {
                () = sleep(self.timing.renewed_every) => {}
                () = stopped(&mut self.stop) => break,
            }
            if let Err(error) = self.step().await {
                tracing::debug!(%error, "the nodes can't be read");
            }
        }
        if let Err(error) = self.announcements.withdraw(&self.node).await {
            tracing::debug!(%error, "the node could not be withdrawn");
        }
    }

    async fn step(&mut self) -> Result<(), NodeError> {
        self.announcements.announce(&self.node, &self.announcement).await?;
        let nodes = self.announcements.live().await?;
        self.changed.send_if_modified(|live| {
            let has_changed = live.nodes != nodes;
            if has_changed {
                *live = Live { nodes, since: Instant::now() };
            }
            has_changed
        });
        Ok(())
    }
}
