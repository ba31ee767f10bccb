//! A cluster whose brokers and files were put back from copies: its positions stand for other events than before.

use std::io;

use headcount_storage::format::Incarnation;

use crate::cells::KvCells;
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::Timing;
use crate::node::{self, KnownNode, NodeError};
use crate::record::{BUCKET, ClusterRecord, RecordError};

/// Why a cluster does not get other entity tags. They are the same as before, unless the brokers did not answer.
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
    /// Some nodes run, and go on with the tags that they have.
    #[error("some nodes run: {}; stop them, and run this again", addresses(.0))]
    Running(Vec<KnownNode>),
    /// The operating system gives no random number.
    #[error("no random number: {0}")]
    Random(io::Error),
}

fn addresses(nodes: &[KnownNode]) -> String {
    let one = |KnownNode { node, address, .. }: &KnownNode| format!("{node} at {address}");
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Gives the answers of a cluster that was restored from copies another incarnation, so that no entity tag or cursor of the time that is lost stands for what nodes answer from
/// now on. It can be repeated: each time, clients ask anew. Waits until nodes that do not run any more are known to be gone.
///
/// # Errors
/// [`RestoredError`].
pub async fn restored(brokers: &[String], credentials: &Credentials, timing: Timing) -> Result<ClusterRecord, RestoredError> {
    let connection = Connection::open(brokers, credentials).await?;
    let record = ClusterRecord::read(&connection).await?.ok_or(RestoredError::NoCluster)?;
    let cells = KvCells::existing(&connection, BUCKET);
    let first = node::seen(&cells).await?;
    let running = node::live(&cells, &first, |_| true, timing).await?;
    if !running.is_empty() {
        return Err(RestoredError::Running(running));
    }
    let answers = Incarnation::random().map_err(RestoredError::Random)?;
    Ok(record.restore(&connection, answers).await?)
}
