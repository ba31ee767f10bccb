//! What the brokers have of a cluster.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::Serialize;

use crate::agreed::{AgreedLevels, LevelsError};
use crate::cells::KvCells;
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::{self, LeaseError, Leases, Timing};
use crate::log::{LogError, LogReader};
use crate::node::{self, KnownNode, NodeError};
use crate::record::{BUCKET, ClusterRecord, RecordError};
use crate::stream::StreamName;

/// How many partitions are asked for at once.
const AT_ONCE: usize = 8;

/// What the brokers have of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The record of the cluster.
    pub cluster: ClusterRecord,
    /// What the nodes have agreed on.
    pub levels: AgreedLevels,
    /// The number of control records.
    pub control_records: u64,
    /// All partitions, in order.
    pub partitions: Vec<PartitionStatus>,
    /// The nodes that have started, and not stopped in good order.
    pub nodes: Vec<KnownNode>,
}

/// What the brokers have of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartitionStatus {
    /// Its number.
    pub partition: u16,
    /// The messages that its stream has.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The node that holds its lease, or held it last; `None` if no node has taken it, or its holder gave it up.
    pub node: Option<String>,
    /// Why no node may take it, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

/// Why the status is not known.
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
        /// Why not.
        error: LogError,
    },
    /// A lease can't be read.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// What the nodes have agreed on can't be read.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
}

/// Has nodes take a partition again that was stopped. Returns why it was; `None` if it was not.
///
/// # Errors
/// [`StatusError`].
pub async fn resume(brokers: &[String], credentials: &Credentials, partition: u16) -> Result<Option<String>, StatusError> {
    let connection = Connection::open(brokers, credentials).await?;
    ClusterRecord::read(&connection).await?.ok_or(StatusError::NoCluster)?;
    let leases = Leases::open(&connection, BUCKET, Timing::default()).await?;
    Ok(leases.resume(&lease::key_of(partition)).await?)
}

/// Asks the brokers for everything that they have of the cluster.
///
/// # Errors
/// [`StatusError`].
pub async fn status(brokers: &[String], credentials: &Credentials) -> Result<Status, StatusError> {
    let connection = Connection::open(brokers, credentials).await?;
    let cluster = ClusterRecord::read(&connection).await?.ok_or(StatusError::NoCluster)?;
    let levels = AgreedLevels::read(&connection).await?;
    let cells = KvCells::existing(&connection, BUCKET);
    let counted = async |name: StreamName| {
        let reader = LogReader::open(&connection, &name.stream).await;
        let usage = async { reader?.usage().await }.await;
        usage.map_err(|error| StatusError::Stream { stream: name.stream, error })
    };
    let of_partition = async |partition: u16| {
        let (messages, bytes) = counted(StreamName::of_partition(partition)).await?;
        let key = lease::key_of(partition);
        let cell = cells.read(&key).await.map_err(NodeError::from)?;
        let node = cell.as_ref().map(|cell| lease::holder_of(&key, &cell.value)).transpose()?.flatten();
        let stopped = cell.as_ref().map(|cell| lease::stop_of(&key, &cell.value)).transpose()?.flatten();
        Ok::<_, StatusError>(PartitionStatus { partition, messages, bytes, node, stopped })
    };
    let (control_records, _) = counted(StreamName::control()).await?;
    let asked = stream::iter((0..cluster.partitions).map(of_partition));
    let partitions = asked.buffered(AT_ONCE).try_collect().await?;
    let nodes = node::listed(&cells).await?;
    Ok(Status { cluster, levels, control_records, partitions, nodes })
}
