//! Draining a node: it hands its partitions over and takes none, while it goes on running and passes requests on.
//!
//! A key of the bucket says that a node is to. The node reads it, and says so with the key that it renews, so that all others know. It removes the key when it starts.

use crate::cells::KvCells;
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::{self, LeaseError, Timing};
use crate::log::{LogError, LogReader};
use crate::node::{self, KnownNode, NodeError, SeenNode, drain_key_of};
use crate::record::{BUCKET, ClusterRecord, RecordError};
use crate::stream::StreamName;

/// Has nodes drain.
#[derive(Debug)]
pub struct Drain {
    connection: Connection,
    cluster: ClusterRecord,
    cells: KvCells,
}

/// Why a node can't be drained.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no cluster.
    #[error("these brokers have no cluster: `headcount cluster init` makes one")]
    NoCluster,
    /// The record of the cluster can't be read.
    #[error(transparent)]
    Record(#[from] RecordError),
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
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// A lease can't be read.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The stream of a partition can't be looked at.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The brokers do not answer; the node may be asked to drain all the same.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
}

impl Drain {
    /// Connects to the cluster of these brokers.
    ///
    /// # Errors
    /// [`DrainError`].
    pub async fn open(brokers: &[String], credentials: &Credentials) -> Result<Self, DrainError> {
        let connection = Connection::open(brokers, credentials).await?;
        let cluster = ClusterRecord::read(&connection).await?.ok_or(DrainError::NoCluster)?;
        let cells = KvCells::existing(&connection, BUCKET);
        Ok(Self { connection, cluster, cells })
    }

    /// Returns the id of the node with this id or address. Of several nodes with the address, those count that run: one that was replaced may have had it.
    ///
    /// # Errors
    /// [`DrainError`].
    pub async fn find(&self, name: &str) -> Result<String, DrainError> {
        let seen = node::seen(&self.cells).await?;
        let address = name.trim_end_matches('/');
        if let Some(found) = seen.iter().find(|seen| seen.known.node == name) {
            return Ok(found.known.node.clone());
        }
        let has_address = |seen: &SeenNode| seen.known.address == address;
        let with_address: Vec<&KnownNode> = seen.iter().filter(|seen| has_address(seen)).map(|seen| &seen.known).collect();
        match with_address[..] {
            [] => {
                let known = if seen.is_empty() { "none".to_owned() } else { list(seen.iter().map(|seen| &seen.known)) };
                Err(DrainError::NoNode { name: name.to_owned(), known })
            }
            [found] => Ok(found.node.clone()),
            _ => match &node::live(&self.cells, &seen, has_address, Timing::default()).await?[..] {
                [found] => Ok(found.node.clone()),
                _ => Err(DrainError::Several { name: name.to_owned(), known: list(with_address.into_iter()) }),
            },
        }
    }

    /// Asks a node to hand its partitions over.
    ///
    /// # Errors
    /// [`DrainError::Unavailable`].
    pub async fn begin(&self, node: &str) -> Result<(), DrainError> {
        self.cells.put(&drain_key_of(node), "{}").await.map(drop).map_err(unavailable)
    }

    /// Asks a node to take partitions again.
    ///
    /// # Errors
    /// [`DrainError::Unavailable`].
    pub async fn undo(&self, node: &str) -> Result<(), DrainError> {
        self.cells.delete(&drain_key_of(node)).await.map_err(unavailable)
    }

    /// Whether a node says that it hands its partitions over. Before that, it may still take some.
    ///
    /// # Errors
    /// [`DrainError::Nodes`].
    pub async fn is_known_to(&self, node: &str) -> Result<bool, DrainError> {
        Ok(node::listed(&self.cells).await?.iter().any(|known| known.node == node && known.drains))
    }

    /// Returns the partitions whose leases a node holds, or held last.
    ///
    /// # Errors
    /// [`DrainError`].
    pub async fn held_by(&self, node: &str) -> Result<Vec<u16>, DrainError> {
        let mut held = Vec::new();
        for partition in 0..self.cluster.partitions {
            let key = lease::key_of(partition);
            let cell = self.cells.read(&key).await.map_err(unavailable)?;
            let holder = cell.map(|cell| lease::holder_of(&key, &cell.value)).transpose()?.flatten();
            held.extend((holder.as_deref() == Some(node)).then_some(partition));
        }
        Ok(held)
    }

    /// Returns those of some partitions whose streams are full: they stay where they are, since no other node could begin to write them.
    ///
    /// # Errors
    /// [`DrainError::Log`].
    pub async fn full_of(&self, partitions: &[u16]) -> Result<Vec<u16>, DrainError> {
        let mut full = Vec::new();
        for partition in partitions {
            let reader = LogReader::open(&self.connection, &StreamName::of_partition(*partition).stream).await?;
            full.extend((!reader.has_room().await?).then_some(*partition));
        }
        Ok(full)
    }
}

fn list<'n>(nodes: impl Iterator<Item = &'n KnownNode>) -> String {
    nodes.map(|node| format!("{} at {}", node.node, node.address)).collect::<Vec<_>>().join(", ")
}

fn unavailable(error: impl std::fmt::Display) -> DrainError {
    DrainError::Unavailable(error.to_string())
}
