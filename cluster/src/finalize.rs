//! Finalizing an upgrade: when all nodes run a later program version, they may write formats that
//! only that version reads.

use async_nats::jetstream::kv::Store;
use serde::Serialize;

use crate::agreed::{AgreedLevels, LevelsError, LevelsKey};
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::Timing;
use crate::levels::Levels;
use crate::node::{self, KnownNode, NodeError, SeenNode};
use crate::record::{BUCKET, ClusterRecord, RecordError};

/// The result of finalizing an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finalized {
    /// The levels that the nodes had agreed on before.
    pub before: Levels,
    /// The levels from now on. They equal `before` if there was nothing to do.
    pub levels: Levels,
}

/// The reason why an upgrade is not finalized. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum FinalizeError {
    /// The brokers can't be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// There is no cluster.
    #[error("these brokers have no cluster: `headcount cluster init` makes one")]
    NoCluster,
    /// The record of the cluster can't be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The levels can't be read or written, or this program is not the latest version.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// Some nodes run an earlier version.
    #[error("some nodes do not have {wanted} yet: {}; upgrade or stop them, and run this again", list(.nodes))]
    Behind {
        /// The levels of this version.
        wanted: Levels,
        /// These nodes.
        nodes: Vec<KnownNode>,
    },
    /// Some nodes run a later version.
    #[error("some nodes have a later version than this program, which has {own}: {}; run this with their version", list(.nodes))]
    Ahead {
        /// The levels of this version.
        own: Levels,
        /// These nodes.
        nodes: Vec<KnownNode>,
    },
    /// No node runs this version.
    #[error("no node runs with this version: start the nodes first")]
    NoNode,
    /// Another process changed the levels meanwhile.
    #[error("the levels were changed by somebody else: run this again")]
    Changed,
}

fn list(nodes: &[KnownNode]) -> String {
    let one = |KnownNode { node, address, version, levels, .. }: &KnownNode| {
        format!("{node} at {address} (version {version}: {levels})")
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Makes all nodes write the formats of this program version, with the levels `own`. It can be
/// repeated.
///
/// # Errors
/// Returns a [`FinalizeError`].
pub async fn finalize(
    brokers: &[String],
    credentials: &Credentials,
    own: Levels,
    timing: Timing,
) -> Result<Finalized, FinalizeError> {
    let connection = Connection::open(brokers, credentials).await?;
    ClusterRecord::read(&connection).await?.ok_or(FinalizeError::NoCluster)?;
    let store = connection.context.get_key_value(BUCKET).await.map_err(NodeError::unavailable)?;
    let key = LevelsKey(&store);
    // Read before the nodes: if a node announces other levels later, it was checked elsewhere, or
    // the write below refuses it.
    let (AgreedLevels { levels: before, by, .. }, revision) = key.read().await?;
    if !own.cover(&before) {
        return Err(LevelsError::Later { by, agreed: before.to_string(), own }.into());
    }
    let seen = node::seen(&store).await?;
    let is_ahead = |seen: &SeenNode| !own.cover(&seen.known.levels);
    let ahead = node::live(&store, &seen, is_ahead, timing).await?;
    if !ahead.is_empty() {
        return Err(FinalizeError::Ahead { own, nodes: ahead });
    }
    if before == own {
        return Ok(Finalized { before, levels: own });
    }
    let nodes = behind(&store, seen, own, timing).await?;
    if !nodes.is_empty() {
        return Err(FinalizeError::Behind { wanted: own, nodes });
    }
    if !node::seen(&store).await?.iter().any(|seen| seen.known.levels.cover(&own)) {
        return Err(FinalizeError::NoNode);
    }
    match key.raise(&connection, own, revision).await? {
        true => {
            // A node that started in between may have read the former levels. It ends at its next
            // sign of life.
            behind(&store, node::seen(&store).await?, own, timing).await?;
            Ok(Finalized { before, levels: own })
        }
        false => Err(FinalizeError::Changed),
    }
}

/// Returns the live nodes that do not have the levels `wanted`.
async fn behind(store: &Store, first: Vec<SeenNode>, wanted: Levels, timing: Timing) -> Result<Vec<KnownNode>, NodeError> {
    node::live(store, &first, |seen| !seen.known.levels.cover(&wanted), timing).await
}
