//! Gives a cluster new entity tags after its brokers and files were restored from copies, because
//! its positions then stand for other events.

use std::io;

use headcount_storage::format::Incarnation;

use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::Timing;
use crate::node::{self, KnownNode, NodeError};
use crate::record::{BUCKET, ClusterRecord, RecordError};

/// The reason why a cluster does not get new entity tags. The tags are unchanged, unless the
/// brokers did not answer.
#[derive(Debug, thiserror::Error)]
pub enum RestoredError {
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no cluster.
    #[error("these brokers have no cluster: put their disks back first")]
    NoCluster,
    /// The record of the cluster can't be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// Some nodes are running, and still use the former tags.
    #[error("some nodes run: {}; stop them, and run this again", addresses(.0))]
    Running(Vec<KnownNode>),
    /// The operating system gave no random number.
    #[error("no random number: {0}")]
    Random(io::Error),
}

fn addresses(nodes: &[KnownNode]) -> String {
    let one = |KnownNode { node, address, .. }: &KnownNode| format!("{node} at {address}");
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Gives the answers of a restored cluster another incarnation, so that entity tags and cursors
/// from the lost time don't match any new answer. It can be repeated: each time, clients load
/// everything again. Waits until nodes that stopped are known to be gone.
///
/// # Errors
/// Returns a [`RestoredError`].
pub async fn restored(brokers: &[String], credentials: &Credentials, timing: Timing) -> Result<ClusterRecord, RestoredError> {
    let connection = Connection::open(brokers, credentials).await?;
    let record = ClusterRecord::read(&connection).await?.ok_or(RestoredError::NoCluster)?;
    let store = connection.context.get_key_value(BUCKET).await.map_err(NodeError::unavailable)?;
    let first = node::seen(&store).await?;
    let running = node::live(&store, &first, |_| true, timing).await?;
    if !running.is_empty() {
        return Err(RestoredError::Running(running));
    }
    let answers = Incarnation::random().map_err(RestoredError::Random)?;
    Ok(record.restore(&connection, answers).await?)
}
