//! The status of a cluster, from its brokers.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;

use crate::agreed::AgreedLevels;
use crate::cells::KvCells;
use crate::commands::{self, ClusterError};
use crate::connection::Credentials;
use crate::lease::{self, Leases, Timing};
use crate::log::LogReader;
use crate::node::{self, KnownNode, NodeError};
use crate::record::{BUCKET, ClusterRecord};
use crate::stream::StreamName;

/// The number of partitions asked for at once.
const AT_ONCE: usize = 8;

/// The status of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The record of the cluster.
    pub cluster: ClusterRecord,
    /// The levels that the nodes have agreed on.
    pub levels: AgreedLevels,
    /// The number of control records that are kept.
    pub control_records: u64,
    /// All partitions, in order.
    pub partitions: Vec<PartitionStatus>,
    /// The nodes that have started, and have not been stopped properly.
    pub nodes: Vec<KnownNode>,
}

/// The status of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionStatus {
    /// The number of the partition.
    pub partition: u16,
    /// The number of messages in its stream.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The node that holds its lease, or was the last to hold it; `None` if no node has taken it,
    /// or its holder gave it up.
    pub node: Option<String>,
    /// The reason why no node may take it, if it is stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// Lets nodes take a stopped partition again. Returns the reason why it was stopped; `None` if it
/// was not.
///
/// # Errors
/// Returns a [`ClusterError`].
pub async fn resume(brokers: &[String], credentials: &Credentials, partition: u16) -> Result<Option<String>, ClusterError> {
    let (connection, _) = commands::open(brokers, credentials).await?;
    let leases = Leases::open(&connection, BUCKET, Timing::default()).await?;
    Ok(leases.resume(&lease::key_of(partition)).await?)
}

/// Asks the brokers for the status of the cluster.
///
/// # Errors
/// Returns a [`ClusterError`].
pub async fn status(brokers: &[String], credentials: &Credentials) -> Result<Status, ClusterError> {
    let (connection, cluster) = commands::open(brokers, credentials).await?;
    let levels = AgreedLevels::read(&connection).await?;
    let cells = KvCells::existing(&connection, BUCKET);
    let counted = async |name: StreamName| {
        let reader = LogReader::open(&connection, &name.stream).await;
        let usage = async { reader?.usage().await }.await;
        usage.map_err(|error| ClusterError::Stream { stream: name.stream, error })
    };
    let of_partition = async |partition: u16| {
        let (messages, bytes) = counted(StreamName::of_partition(partition)).await?;
        let key = lease::key_of(partition);
        let cell = cells.read(&key).await.map_err(NodeError::from)?;
        let node = cell.as_ref().map(|cell| lease::holder_of(&key, &cell.value)).transpose()?.flatten();
        let stopped = cell.as_ref().map(|cell| lease::stop_of(&key, &cell.value)).transpose()?.flatten();
        Ok::<_, ClusterError>(PartitionStatus { partition, messages, bytes, node, stopped })
    };
    let (control_records, _) = counted(StreamName::control()).await?;
    let asked = stream::iter((0..cluster.partitions).map(of_partition));
    let partitions = asked.buffered(AT_ONCE).try_collect().await?;
    let nodes = node::listed(&cells).await?;
    Ok(Status { cluster, levels, control_records, partitions, nodes })
}
