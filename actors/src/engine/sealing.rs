//! Sealing and merging on demand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::nodes::{AskNodeError, encode_answer};
use headcount_common::{Owner, PARTITIONS};
use headcount_domain::{Fault, OrganizationId};
use tokio::task::JoinSet;

use super::handle::Engine;
use crate::archiver::Sealed;

/// The tag of the request to seal a node's events.
pub(super) const SEAL: u16 = 1010;
/// How long a node may take to seal its events: it waits for checkpoints, and writes all unsealed
/// events.
const SEAL_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// The reason why not everything is sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// This machine can't seal its events.
    #[error("{0}")]
    Here(Fault),
    /// The cluster has no place for files.
    #[error("nodes that have no place for files (--files) seal no events")]
    NoFiles,
    /// Another node gives no answer. The events of the other nodes are sealed.
    #[error("the node at {address} has not sealed what it has: {reason}")]
    Node {
        /// The address of the node.
        address: String,
        /// The error.
        reason: AskNodeError,
    },
    /// Some partitions have no known owner, or moved meanwhile. All others are sealed.
    #[error("the partitions {0:?} are on no node that is known, or moved meanwhile")]
    Partitions(Vec<u16>),
}

impl Engine {
    /// Seals all events recorded before the call into the archive, on all machines, after writing
    /// checkpoints of them. Partitions that move afterwards are sealed, too.
    ///
    /// # Errors
    /// Returns a [`SealError`]. Events that are not sealed are still in the log. Other machines may
    /// still seal theirs.
    pub async fn seal_archive(&self) -> Result<Sealed, SealError> {
        if !self.partitions.archiver.files().seals() {
            return Err(SealError::NoFiles);
        }
        let owners = (0..PARTITIONS).map(|partition| self.owners().of(partition));
        let others = owners.filter_map(|owner| if let Owner::There(address) = owner { Some(address) } else { None });
        let mut asked = JoinSet::new();
        for address in others.collect::<BTreeSet<_>>() {
            let refused = |reason| SealError::Node { address: address.to_string(), reason };
            let node = self.node(&address, OrganizationId(0)).map_err(refused)?;
            asked.spawn(async move {
                let sealed = node.ask::<(), Sealed>(SEAL, Vec::new(), &(), SEAL_TIMEOUT).await;
                sealed.map_err(|reason| SealError::Node { address: address.to_string(), reason })
            });
        }
        let mut sum = self.seal_here().await.map_err(SealError::Here);
        while let Some(sealed) = asked.join_next().await {
            let sealed = sealed.unwrap_or_else(|_| Err(SealError::Here(Fault::io("the engine is shutting down"))));
            // Waits for all answers, so that no work continues after the return.
            sum = sum.and_then(|sum| sealed.map(|sealed| sum.and(sealed)));
        }
        let sum = sum?;
        let missing: Vec<u16> = (0..PARTITIONS).filter(|partition| !sum.partitions.contains(partition)).collect();
        if missing.is_empty() { Ok(sum) } else { Err(SealError::Partitions(missing)) }
    }

    /// Seals the events of this machine's partitions.
    async fn seal_here(&self) -> Result<Sealed, Fault> {
        let archiver = Arc::clone(&self.partitions.archiver);
        match tokio::task::spawn_blocking(move || archiver.seal_all()).await {
            Ok(sealed) => sealed,
            Err(_) => Err(Fault::io("the engine is shutting down")),
        }
    }

    /// Seals the events that another node asks for.
    pub(super) async fn answer_seal(&self) -> Result<Vec<u8>, AskNodeError> {
        let sealed = self.seal_here().await.map_err(|fault| {
            tracing::warn!(%fault, "another node wanted the archives to be sealed, which they could not be");
            AskNodeError::NoAnswer(fault.message)
        })?;
        encode_answer(SEAL, &sealed)
    }

    /// Merges the sorted files of the store now. Usually this happens when nothing changes for a
    /// minute. Returns `false` if some files are left: the disk has too little room, a merge
    /// failed, or the engine stops.
    pub async fn merge_tables(&self) -> bool {
        let archiver = Arc::clone(&self.partitions.archiver);
        tokio::task::spawn_blocking(move || archiver.merge_tables()).await.unwrap_or(false)
    }
}
