//! What the commands that look after a cluster have in common: how they begin, and why they fail.

use std::io;

use crate::agreed::LevelsError;
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::LeaseError;
use crate::levels::Levels;
use crate::log::LogError;
use crate::node::{KnownNode, NodeError};
use crate::record::{ClusterRecord, RecordError};

/// The reason why a command fails.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no cluster.
    #[error("these brokers have no cluster: `headcount cluster init` makes one")]
    NoCluster,
    /// There is no cluster, but a restored one was expected.
    #[error("these brokers have no cluster: put their disks back first")]
    NotPutBack,
    /// The record of the cluster can't be read or written.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The agreed levels can't be read or written, or the program is not the latest one.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The nodes can't be listed or asked. They may be asked all the same.
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// A lease can't be read.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The stream of a partition can't be looked at.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A stream can't be read.
    #[error("the stream {stream} can't be read: {error}")]
    Stream {
        /// The stream.
        stream: String,
        /// The error.
        error: LogError,
    },
    /// No node has that id or address.
    #[error("no node is {name:?}; known are: {known}")]
    NoNode {
        /// What was asked for.
        name: String,
        /// The ids and addresses of all nodes.
        known: String,
    },
    /// Several nodes had that address, and it is not known which of them runs there.
    #[error("several nodes had the address {name}: {known}; name one by its id")]
    Several {
        /// What was asked for.
        name: String,
        /// The ids and addresses of these nodes.
        known: String,
    },
    /// Some nodes are running, and still use the former entity tags.
    #[error("some nodes run: {}; stop them, and run this again", addresses(.0))]
    Running(Vec<KnownNode>),
    /// The operating system gives no random number.
    #[error("no random number: {0}")]
    Random(io::Error),
    /// Some nodes have an earlier version. Nothing was changed.
    #[error("some nodes do not have {wanted} yet: {}; upgrade or stop them, and run this again", versions(.nodes))]
    Behind {
        /// The levels of this version.
        wanted: Levels,
        /// These nodes.
        nodes: Vec<KnownNode>,
    },
    /// Some nodes have a later version. Nothing was changed.
    #[error("some nodes have a later version than this program, which has {own}: {}; run this with their version", versions(.nodes))]
    Ahead {
        /// The levels of this version.
        own: Levels,
        /// These nodes.
        nodes: Vec<KnownNode>,
    },
    /// No node has this version. Nothing was changed.
    #[error("no node runs with this version: start the nodes first")]
    NoneRuns,
    /// Somebody else changed the levels meanwhile.
    #[error("the levels were changed by somebody else: run this again")]
    Changed,
}

/// Connects to the brokers of a cluster, and reads its record.
pub(crate) async fn open(brokers: &[String], credentials: &Credentials) -> Result<(Connection, ClusterRecord), ClusterError> {
    let connection = Connection::open(brokers, credentials).await?;
    let record = ClusterRecord::read(&connection).await?.ok_or(ClusterError::NoCluster)?;
    Ok((connection, record))
}

/// Says which nodes they are.
pub(crate) fn addresses<'n>(nodes: impl IntoIterator<Item = &'n KnownNode>) -> String {
    let one = |node: &KnownNode| format!("{} at {}", node.node, node.address);
    nodes.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

fn versions(nodes: &[KnownNode]) -> String {
    let one = |KnownNode { node, address, version, levels, .. }: &KnownNode| {
        format!("{node} at {address} (version {version}: {levels})")
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}
