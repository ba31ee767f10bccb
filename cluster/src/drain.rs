//! Draining a node: it hands its partitions over and takes none, while it goes on running and passes requests on.
//!
//! A key of the bucket says that a node is to. The node reads it, and says so with the key that it renews, so that all others know. It removes the key when it starts.

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::LastRawMessageErrorKind;

use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::{self, LeaseError};
use crate::node::{self, NodeError};
use crate::record::{self, BUCKET, ClusterRecord, RecordError};

/// The first part of the keys of nodes that are to drain.
const PREFIX: &str = "drain.";

/// What nodes are told.
#[derive(Debug)]
pub struct Drain {
    connection: Connection,
    cluster: ClusterRecord,
    store: Store,
}

/// Why a node can't be told to drain.
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
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// A lease can't be read.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// The brokers do not answer; the node may have been told.
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
        let store = connection.context.get_key_value(BUCKET).await.map_err(unavailable)?;
        Ok(Self { connection, cluster, store })
    }

    /// Returns the id of the node with this id or address.
    ///
    /// # Errors
    /// [`DrainError`].
    pub async fn find(&self, name: &str) -> Result<String, DrainError> {
        let nodes = node::listed(&self.store).await?;
        let address = name.trim_end_matches('/');
        if let Some(found) = nodes.iter().find(|node| node.node == name || node.address == address) {
            return Ok(found.node.clone());
        }
        let known: Vec<String> = nodes.iter().map(|node| format!("{} at {}", node.node, node.address)).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Err(DrainError::NoNode { name: name.to_owned(), known })
    }

    /// Tells a node to hand its partitions over.
    ///
    /// # Errors
    /// [`DrainError::Unavailable`].
    pub async fn begin(&self, node: &str) -> Result<(), DrainError> {
        self.store.put(key_of(node), "{}".into()).await.map(drop).map_err(unavailable)
    }

    /// Tells a node to take partitions again.
    ///
    /// # Errors
    /// [`DrainError::Unavailable`].
    pub async fn undo(&self, node: &str) -> Result<(), DrainError> {
        self.store.delete(key_of(node)).await.map_err(unavailable)
    }

    /// Whether a node says that it hands its partitions over. Before that, it may still take some.
    ///
    /// # Errors
    /// [`DrainError::Nodes`].
    pub async fn is_known_to(&self, node: &str) -> Result<bool, DrainError> {
        Ok(node::listed(&self.store).await?.iter().any(|known| known.node == node && known.drains))
    }

    /// Returns how many leases a node holds, or held last.
    ///
    /// # Errors
    /// [`DrainError`].
    pub async fn held_by(&self, node: &str) -> Result<usize, DrainError> {
        let bucket = record::bucket(&self.connection).await?.ok_or(DrainError::NoCluster)?;
        let mut held = 0;
        for partition in 0..self.cluster.partitions {
            let key = lease::key_of(partition);
            let value = record::read_from(&bucket, &key).await?;
            let holder = value.map(|value| lease::holder_of(&key, &value)).transpose()?.flatten();
            held += usize::from(holder.as_deref() == Some(node));
        }
        Ok(held)
    }
}

/// Whether a node is told to drain, as the leader says it.
pub(crate) async fn is_wanted(store: &Store, node: &str) -> Result<bool, NodeError> {
    let subject = format!("{}{}", store.prefix, key_of(node));
    match store.stream.get_last_raw_message_by_subject(&subject).await {
        // A key that is deleted is an empty message.
        Ok(message) => Ok(!message.payload.is_empty()),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
        Err(error) => Err(NodeError::unavailable(error)),
    }
}

/// Forgets that a node is to drain: it starts.
pub(crate) async fn forget(store: &Store, node: &str) -> Result<(), NodeError> {
    if is_wanted(store, node).await? {
        store.delete(key_of(node)).await.map_err(NodeError::unavailable)?;
    }
    Ok(())
}

fn key_of(node: &str) -> String {
    format!("{PREFIX}{node}")
}

fn unavailable(error: impl std::fmt::Display) -> DrainError {
    DrainError::Unavailable(error.to_string())
}
