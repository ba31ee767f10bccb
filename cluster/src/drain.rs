//! Draining a node: the node hands its partitions over and takes no others, but keeps running and
//! forwards requests.
//!
//! A key of the bucket asks a node to drain. The node reads the key, and announces that it drains
//! in the key that it renews. It removes the request when it starts.

use async_nats::jetstream::kv::Store;

use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::{self, LeaseError, Timing};
use crate::log::{LogError, LogReader};
use crate::node::{self, KnownNode, NodeError, SeenNode, drain_key_of};
use crate::record::{self, BUCKET, ClusterRecord, RecordError};
use crate::stream::StreamName;

/// Asks nodes to drain.
#[derive(Debug)]
pub struct Drain {
    connection: Connection,
    cluster: ClusterRecord,
    store: Store,
}

/// The reason why a node can't be drained.
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
    /// No node has this id or address.
    #[error("no node is {name:?}; known are: {known}")]
    NoNode {
        /// The id or address.
        name: String,
        /// The ids and addresses of all nodes.
        known: String,
    },
    /// Several nodes had this address, and the one that runs there now is unknown.
    #[error("several nodes had the address {name}: {known}; name one by its id")]
    Several {
        /// The address.
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
    /// The stream of a partition can't be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The brokers don't answer. They may still have recorded the request.
    #[error("the brokers can't answer: {0}")]
    Unavailable(String),
}

impl Drain {
    /// Connects to the cluster of these brokers.
    ///
    /// # Errors
    /// Returns a [`DrainError`].
    pub async fn open(brokers: &[String], credentials: &Credentials) -> Result<Self, DrainError> {
        let connection = Connection::open(brokers, credentials).await?;
        let cluster = ClusterRecord::read(&connection).await?.ok_or(DrainError::NoCluster)?;
        let store = connection.context.get_key_value(BUCKET).await.map_err(unavailable)?;
        Ok(Self { connection, cluster, store })
    }

    /// Returns the id of the node with this id or address. If several nodes had the address, only
    /// running nodes count, since one may have replaced another.
    ///
    /// # Errors
    /// Returns a [`DrainError`].
    pub async fn find(&self, name: &str) -> Result<String, DrainError> {
        let seen = node::seen(&self.store).await?;
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
            _ => match &node::live(&self.store, &seen, has_address, Timing::default()).await?[..] {
                [found] => Ok(found.node.clone()),
                _ => Err(DrainError::Several { name: name.to_owned(), known: list(with_address.into_iter()) }),
            },
        }
    }

    /// Asks a node to hand its partitions over.
    ///
    /// # Errors
    /// Returns [`DrainError::Unavailable`].
    pub async fn begin(&self, node: &str) -> Result<(), DrainError> {
        self.store.put(drain_key_of(node), "{}".into()).await.map(drop).map_err(unavailable)
    }

    /// Asks a node to take partitions again.
    ///
    /// # Errors
    /// Returns [`DrainError::Unavailable`].
    pub async fn undo(&self, node: &str) -> Result<(), DrainError> {
        self.store.delete(drain_key_of(node)).await.map_err(unavailable)
    }

    /// Whether a node has announced that it drains. Until then, it may still take partitions.
    ///
    /// # Errors
    /// Returns [`DrainError::Nodes`].
    pub async fn is_known_to(&self, node: &str) -> Result<bool, DrainError> {
        Ok(node::listed(&self.store).await?.iter().any(|known| known.node == node && known.drains))
    }

    /// Returns the partitions whose leases a node holds, or was the last to hold.
    ///
    /// # Errors
    /// Returns a [`DrainError`].
    pub async fn held_by(&self, node: &str) -> Result<Vec<u16>, DrainError> {
        let bucket = record::bucket(&self.connection).await?.ok_or(DrainError::NoCluster)?;
        let mut held = Vec::new();
        for partition in 0..self.cluster.partitions {
            let key = lease::key_of(partition);
            let value = record::read_from(&bucket, &key).await?;
            let holder = value.map(|value| lease::holder_of(&key, &value)).transpose()?.flatten();
            held.extend((holder.as_deref() == Some(node)).then_some(partition));
        }
        Ok(held)
    }

    /// Returns the partitions whose streams are full. They stay where they are, because no other
    /// node could begin to write them.
    ///
    /// # Errors
    /// Returns [`DrainError::Log`].
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
