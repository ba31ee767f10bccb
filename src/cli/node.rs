//! A server that is a node of a cluster.

use std::path::Path;
use std::time::Duration;

use headcount_actors::{Engine, Membership};
use headcount_cluster::lease::Holder;
use headcount_cluster::node::{self, MemberLog, Node, NodeParts, NodeTiming};
use headcount_cluster::{ClusterRecord, Connection, boot_id, node_id};
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinSet;

use super::failure::Failure;
use super::runtime::threaded_runtime;
use crate::config::Settings;

/// How long the brokers may take to say that the cluster is there.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node that stops may take to give its partitions up.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a node that stops while it joins may take to say so.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// The threads of a node. They may still wait for brokers when it ends.
struct NodeRuntime(Option<Runtime>);

/// A cluster that a server is about to join, or has joined. The engine needs it until it is closed.
pub(super) struct Joining {
    handle: Handle,
    connection: Connection,
    member: MemberLog,
    record: ClusterRecord,
    /// Dropped last.
    _runtime: NodeRuntime,
}

impl NodeRuntime {
    fn start() -> Result<(Self, Handle), Failure> {
        let runtime = threaded_runtime()?;
        let handle = runtime.handle().clone();
        Ok((Self(Some(runtime)), handle))
    }
}

impl Drop for NodeRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Joining {
    /// Connects to the cluster of the settings. `None`: the server is alone.
    pub(super) async fn begin(settings: &Settings) -> Result<Option<Self>, Failure> {
        if settings.cluster.is_empty() {
            return Ok(None);
        }
        let (runtime, handle) = NodeRuntime::start()?;
        let (brokers, credentials) = (settings.cluster.clone(), settings.broker_credentials());
        let asked = handle.spawn(async move {
            let connection = Connection::open(&brokers, &credentials).await.map_err(Failure::from)?;
            let record = ClusterRecord::read(&connection).await.map_err(Failure::from)?;
            Ok::<_, Failure>((connection, record))
        });
        let answer =
            tokio::time::timeout(ANSWER_TIMEOUT, asked).await.map_err(|_| Failure("the brokers do not answer".into()))?;
        let (connection, record) = answer.map_err(|_| Failure("the connection to the brokers failed".into()))??;
        let record =
            record.ok_or_else(|| Failure("the brokers have no cluster: make one with `headcount cluster init`".into()))?;
        let member = MemberLog::new(&handle);
        Ok(Some(Self { handle, connection, member, record, _runtime: runtime }))
    }

    /// What the engine is opened with.
    pub(super) fn membership(&self) -> Membership {
        self.member.membership(&self.handle, &self.connection, &self.record)
    }

    /// Starts to take partitions over, for an engine that answers at `address`. If the future is dropped, it takes none.
    pub(super) async fn start(&self, engine: &Engine, data_dir: &Path, address: String) -> Result<Node, Failure> {
        let holder = Holder { node: node_id(data_dir)?, boot: boot_id()? };
        tracing::info!(node = holder.node, %address, "joins the cluster");
        let (connection, member, replicas) = (self.connection.clone(), self.member.clone(), self.record.replicas);
        let parts = NodeParts { connection, engine: engine.clone(), member, holder, replicas, address };
        let (mut starting, runtime) = (JoinSet::new(), self.handle.clone());
        starting.spawn_on(async move { Node::start(&runtime, parts, NodeTiming::default()).await }, &self.handle);
        let ended_early = || Failure("the node ended early".into());
        Ok(starting.join_next().await.ok_or_else(ended_early)?.map_err(|_| ended_early())??)
    }

    /// Says that a node is gone that did not start.
    pub(super) async fn leave(&self, data_dir: &Path) {
        let Ok(node) = node_id(data_dir) else { return };
        let connection = self.connection.clone();
        let left = self.handle.spawn(async move { node::withdraw(&connection, &node).await });
        if !matches!(tokio::time::timeout(LEAVE_TIMEOUT, left).await, Ok(Ok(Ok(())))) {
            tracing::info!("the brokers do not confirm that the node is gone; others take it for live for some seconds");
        }
    }

    /// Gives all partitions up, so that other nodes take them over at once.
    pub(super) async fn stop(&self, node: Node) {
        let stopped = self.handle.spawn(node.stop());
        if tokio::time::timeout(STOP_TIMEOUT, stopped).await.is_err() {
            tracing::warn!("some partitions could not be given up in time; other nodes wait until their leases are over");
        }
    }
}
