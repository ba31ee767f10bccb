//! Draining a node: the node hands its partitions over and takes no others, but keeps running and
//! forwards requests.
//!
//! A key of the bucket asks a node to drain. The node reads the key, and announces that it drains
//! in the key that it renews. It removes the request when it starts.

use crate::cells::KvCells;
use crate::commands::{self, ClusterError, addresses};
use crate::connection::{Connection, Credentials};
use crate::lease::{self, Timing};
use crate::log::LogReader;
use crate::node::{self, KnownNode, NodeError, SeenNode, drain_key_of};
use crate::record::{BUCKET, ClusterRecord};
use crate::stream::StreamName;

/// Asks nodes to drain.
#[derive(Debug)]
pub struct Drain {
    connection: Connection,
    cluster: ClusterRecord,
    cells: KvCells,
}

impl Drain {
    /// Connects to the cluster of these brokers.
    ///
    /// # Errors
    /// Returns a [`ClusterError`].
    pub async fn open(brokers: &[String], credentials: &Credentials) -> Result<Self, ClusterError> {
        let (connection, cluster) = commands::open(brokers, credentials).await?;
        let cells = KvCells::existing(&connection, BUCKET);
        Ok(Self { connection, cluster, cells })
    }

    /// Returns the id of the node with this id or address. If several nodes had the address, only
    /// running nodes count, since one may have replaced another.
    ///
    /// # Errors
    /// Returns a [`ClusterError`].
    pub async fn find(&self, name: &str) -> Result<String, ClusterError> {
        let seen = node::seen(&self.cells).await?;
        let address = name.trim_end_matches('/');
        if let Some(found) = seen.iter().find(|seen| seen.known.node == name) {
            return Ok(found.known.node.clone());
        }
        let has_address = |seen: &SeenNode| seen.known.address == address;
        let with_address: Vec<&KnownNode> = seen.iter().filter(|seen| has_address(seen)).map(|seen| &seen.known).collect();
        match with_address[..] {
            [] => {
                let known = if seen.is_empty() { "none".to_owned() } else { addresses(seen.iter().map(|seen| &seen.known)) };
                Err(ClusterError::NoNode { name: name.to_owned(), known })
            }
            [found] => Ok(found.node.clone()),
            _ => match &node::live(&self.cells, &seen, has_address, Timing::default()).await?[..] {
                [found] => Ok(found.node.clone()),
                _ => Err(ClusterError::Several { name: name.to_owned(), known: addresses(with_address) }),
            },
        }
    }

    /// Asks a node to hand its partitions over.
    ///
    /// # Errors
    /// Returns [`ClusterError::Nodes`].
    pub async fn begin(&self, node: &str) -> Result<(), ClusterError> {
        Ok(self.cells.put(&drain_key_of(node), "{}").await.map(drop).map_err(NodeError::from)?)
    }

    /// Asks a node to take partitions again.
    ///
    /// # Errors
    /// Returns [`ClusterError::Nodes`].
    pub async fn undo(&self, node: &str) -> Result<(), ClusterError> {
        Ok(self.cells.delete(&drain_key_of(node)).await.map_err(NodeError::from)?)
    }

    /// Whether a node has announced that it drains. Until then, it may still take partitions.
    ///
    /// # Errors
    /// Returns [`ClusterError::Nodes`].
    pub async fn is_known_to(&self, node: &str) -> Result<bool, ClusterError> {
        Ok(node::listed(&self.cells).await?.iter().any(|known| known.node == node && known.drains))
    }

    /// Returns the partitions whose leases a node holds, or was the last to hold.
    ///
    /// # Errors
    /// Returns a [`ClusterError`].
    pub async fn held_by(&self, node: &str) -> Result<Vec<u16>, ClusterError> {
        let mut held = Vec::new();
        for partition in 0..self.cluster.partitions {
            let key = lease::key_of(partition);
            let cell = self.cells.read(&key).await.map_err(NodeError::from)?;
            let holder = cell.map(|cell| lease::holder_of(&key, &cell.value)).transpose()?.flatten();
            held.extend((holder.as_deref() == Some(node)).then_some(partition));
        }
        Ok(held)
    }

    /// Returns the partitions whose streams are full. They stay where they are, because no other
    /// node could begin to write them.
    ///
    /// # Errors
    /// Returns [`ClusterError::Log`].
    pub async fn full_of(&self, partitions: &[u16]) -> Result<Vec<u16>, ClusterError> {
        let mut full = Vec::new();
        for partition in partitions {
            let reader = LogReader::open(&self.connection, &StreamName::of_partition(*partition).stream).await?;
            full.extend((!reader.has_room().await?).then_some(*partition));
        }
        Ok(full)
    }
}
