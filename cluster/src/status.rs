//! The status of a cluster, from its brokers.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;

use crate::agreed::{AgreedLevels, LevelsError};
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::{self, LeaseError, Leases, Timing};
use crate::log::{LogError, LogReader};
use crate::node::{self, KnownNode, NodeError};
use crate::record::{self, BUCKET, ClusterRecord, RecordError};
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
    /// The number of control records.
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

/// The reason why the status is unknown.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no cluster.
    #[error("these brokers have no cluster: `headcount cluster init` makes one")]
    NoCluster,
    /// The record of the cluster can't be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A stream can't be read.
    #[error("the stream {stream} can't be read: {error}")]
    Stream {
        /// The stream.
        stream: String,
        /// The error.
        error: LogError,
    },
    /// A lease can't be read.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The agreed levels can't be read.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
}

/// Lets nodes take a stopped partition again. Returns the reason why it was stopped; `None` if it
/// was not.
///
/// # Errors
/// Returns a [`StatusError`].
pub async fn resume(brokers: &[String], credentials: &Credentials, partition: u16) -> Result<Option<String>, StatusError> {
    let connection = Connection::open(brokers, credentials).await?;
    ClusterRecord::read(&connection).await?.ok_or(StatusError::NoCluster)?;
    let leases = Leases::open(&connection, BUCKET, Timing::default()).await?;
    Ok(leases.resume(&lease::key_of(partition)).await?)
}

/// Asks the brokers for the status of the cluster.
///
/// # Errors
/// Returns a [`StatusError`].
pub async fn status(brokers: &[String], credentials: &Credentials) -> Result<Status, StatusError> {
    let connection = Connection::open(brokers, credentials).await?;
    let cluster = ClusterRecord::read(&connection).await?.ok_or(StatusError::NoCluster)?;
    let levels = AgreedLevels::read(&connection).await?;
    let bucket = record::bucket(&connection).await?.ok_or(StatusError::NoCluster)?;
    let counted = async |name: StreamName| {
        let reader = LogReader::open(&connection, &name.stream).await;
        let usage = async { reader?.usage().await }.await;
        usage.map_err(|error| StatusError::Stream { stream: name.stream, error })
    };
    let of_partition = async |partition: u16| {
        let (messages, bytes) = counted(StreamName::of_partition(partition)).await?;
        let key = lease::key_of(partition);
        let value = record::read_from(&bucket, &key).await?;
        let node = value.as_ref().map(|value| lease::holder_of(&key, value)).transpose()?.flatten();
        let stopped = value.as_ref().map(|value| lease::stop_of(&key, value)).transpose()?.flatten();
        Ok::<_, StatusError>(PartitionStatus { partition, messages, bytes, node, stopped })
    };
    let (control_records, _) = counted(StreamName::control()).await?;
    let asked = stream::iter((0..cluster.partitions).map(of_partition));
    let partitions = asked.buffered(AT_ONCE).try_collect().await?;
    let store = connection.context.get_key_value(BUCKET).await.map_err(NodeError::unavailable)?;
    let nodes = node::listed(&store).await?;
    Ok(Status { cluster, levels, control_records, partitions, nodes })
}
