//! A server that is a node of a cluster.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::{Common, Engine, OpenError};
use headcount_api::command::Failure;
use headcount_cluster::files::{Bucket, SharedFiles};
use headcount_cluster::lease::Holder;
use headcount_cluster::node::{self, MemberLog, Node, NodeError, NodeParts, NodeTiming};
use headcount_cluster::{AgreedLevels, ClusterRecord, Connection, Levels, boot_id, node_id};
use tokio::task::JoinSet;

use super::threads::ThreadedRuntime;
use crate::config::Settings;

/// How long the brokers may take to confirm the cluster.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a node tries to join, and the pause between attempts.
const JOIN_TIMEOUT: Duration = Duration::from_secs(120);
const JOIN_PAUSE: Duration = Duration::from_millis(500);
/// How long a stopping node may take to release its partitions.
const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a node may take to report that it stops while joining.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

/// A cluster that a server joins. The engine needs it until the engine is closed.
pub(super) struct Joining {
    runtime: ThreadedRuntime,
    connection: Connection,
    member: MemberLog,
}

impl Joining {
    /// Connects to the cluster of the settings. Returns `None` for a single server.
    pub(super) async fn begin(settings: &Settings) -> Result<Option<Self>, Failure> {
        if settings.cluster.is_empty() {
            return Ok(None);
        }
        let runtime = ThreadedRuntime::start()?;
        let (brokers, credentials) = (settings.cluster.clone(), settings.broker_credentials());
        let (bucket, log_kept) = (settings.files.clone(), settings.log_kept);
        let asked = runtime.handle.spawn(async move {
            let connection = Connection::open(&brokers, &credentials).await.map_err(Failure::from)?;
            let record = ClusterRecord::read(&connection).await.map_err(Failure::from)?;
            let record =
                record.ok_or_else(|| Failure("the brokers have no cluster: create one with `headcount cluster init`".into()))?;
            AgreedLevels::join(&connection, Levels::own()).await?;
            let files = shared_files(&connection, &record, bucket.as_ref(), log_kept).await?;
            Ok::<_, Failure>((connection, record, files))
        });
        let answer =
            tokio::time::timeout(ANSWER_TIMEOUT, asked).await.map_err(|_| Failure("the brokers do not answer".into()))?;
        let (connection, record, files) = answer.map_err(|_| Failure("the connection to the brokers failed".into()))??;
        let member = MemberLog::new(&runtime.handle, &connection, &record, files);
        Ok(Some(Self { runtime, connection, member }))
    }

    /// Returns the function that opens the parts of the engine in a data directory.
    pub(super) fn opener(&self) -> impl FnOnce(&Path) -> Result<Common, OpenError> + Send + 'static {
        let member = self.member.clone();
        move |data_dir| member.open(data_dir)
    }

    /// Starts to take partitions over for an engine that other nodes reach at `address`. Dropping
    /// the future stops it.
    pub(super) async fn start(&self, engine: &Engine, data_dir: &Path, address: String) -> Result<Node, Failure> {
        let holder = Holder { node: node_id(data_dir)?, boot: boot_id()? };
        tracing::info!(node = holder.node, %address, "joins the cluster");
        let (engine, member, levels) = (engine.clone(), self.member.clone(), Levels::own());
        let parts = NodeParts { engine, member, holder, levels, address };
        let (handle, began) = (&self.runtime.handle, Instant::now());
        let ended_early = || Failure("the node ended early".into());
        loop {
            let (mut starting, with, parts) = (JoinSet::new(), handle.clone(), parts.clone());
            starting.spawn_on(async move { Node::start(&with, parts, NodeTiming::default()).await }, handle);
            match starting.join_next().await.ok_or_else(ended_early)?.map_err(|_| ended_early())? {
                Ok(node) => return Ok(node),
                Err(error @ NodeError::Levels(_)) => return Err(error.into()),
                // Such as when brokers elect a leader, or have just been started.
                Err(error) if began.elapsed() < JOIN_TIMEOUT => tracing::warn!(%error, "the node can't join yet"),
                Err(error) => return Err(error.into()),
            }
            tokio::time::sleep(JOIN_PAUSE).await;
        }
    }

    /// Tells the brokers that a node that did not start is gone.
    pub(super) async fn leave(&self, data_dir: &Path) {
        let Ok(node) = node_id(data_dir) else { return };
        let connection = self.connection.clone();
        let left = self.runtime.handle.spawn(async move { node::withdraw(&connection, &node).await });
        if !matches!(tokio::time::timeout(LEAVE_TIMEOUT, left).await, Ok(Ok(Ok(())))) {
            tracing::info!("the brokers did not confirm that this node left; other nodes consider it alive for some seconds");
        }
    }

    /// Releases all partitions, so that other nodes take them over at once.
    pub(super) async fn stop(&self, node: Node) {
        let stopped = self.runtime.handle.spawn(node.stop());
        if tokio::time::timeout(STOP_TIMEOUT, stopped).await.is_err() {
            tracing::warn!("some partitions were not released in time; other nodes take them over when their leases expire");
        }
    }
}

/// Logs an error if the files can't be written or read, for example with wrong credentials. The
/// node starts anyway, since it can serve the data on its own disk.
async fn try_out(bucket: Bucket) {
    match bucket.try_out().await {
        Ok(()) => tracing::info!(place = bucket.address(), "files can be written and read"),
        Err(error) => tracing::error!(
            place = bucket.address(),
            %error,
            "files can't be written or read: until this is fixed, no events are sealed, and take-overs of partitions may fail"
        ),
    }
}

/// The place where all nodes of the cluster keep sealed events. `None`: events stay on the brokers.
async fn shared_files(
    connection: &Connection,
    record: &ClusterRecord,
    bucket: Option<&Bucket>,
    log_kept: Duration,
) -> Result<Option<Arc<SharedFiles>>, Failure> {
    if let Some(bucket) = bucket {
        tokio::spawn(try_out(bucket.clone()));
        return Ok(Some(Arc::new(SharedFiles::open(connection, record, bucket, log_kept).await?)));
    }
    match SharedFiles::place(connection).await? {
        None => Ok(None),
        Some(place) => {
            Err(Failure(format!("the nodes of this cluster keep files at {place}: start this node with --files {place}")))
        }
    }
}
