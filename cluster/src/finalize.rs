//! Finalizing an upgrade: once all nodes have a later version of the program, they may write what only that version reads.

use serde::Serialize;

use crate::agreed::{AgreedLevels, LevelsError, LevelsKey};
use crate::cells::KvCells;
use crate::connection::{ConnectError, Connection, Credentials};
use crate::lease::Timing;
use crate::levels::Levels;
use crate::node::{self, KnownNode, NodeError, SeenNode};
use crate::record::{BUCKET, ClusterRecord, RecordError};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finalized {
    /// The levels that the nodes had agreed on before.
    pub before: Levels,
    /// Those that hold from now on. The same: nothing was to be done.
    pub levels: Levels,
}

/// Why an upgrade is not finalized. Nothing was changed.
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
    /// The levels can't be read or written, or the program is not the latest one.
    #[error(transparent)]
    Levels(#[from] LevelsError),
    /// The nodes can't be listed.
    #[error(transparent)]
    Nodes(#[from] NodeError),
    /// Some nodes have an earlier version.
    #[error("some nodes do not have {wanted} yet: {}; upgrade or stop them, and run this again", list(.nodes))]
    Behind {
        /// The levels of this version.
        wanted: Levels,
        /// Those nodes.
        nodes: Vec<KnownNode>,
    },
    /// Some nodes have a later version.
    #[error("some nodes have a later version than this program, which has {own}: {}; run this with their version", list(.nodes))]
    Ahead {
        /// The levels of this version.
        own: Levels,
        /// Those nodes.
        nodes: Vec<KnownNode>,
    },
    /// No node has this version.
    #[error("no node runs with this version: start the nodes first")]
    NoNode,
    /// Somebody else changed the levels meanwhile.
    #[error("the levels were changed by somebody else: run this again")]
    Changed,
}

fn list(nodes: &[KnownNode]) -> String {
    let one = |KnownNode { node, address, version, levels, .. }: &KnownNode| {
        format!("{node} at {address} (version {version}: {levels})")
    };
    nodes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Has all nodes write what this version of the program, with the levels `own`, reads and writes. It can be repeated.
///
/// # Errors
/// [`FinalizeError`].
pub async fn finalize(
    brokers: &[String],
    credentials: &Credentials,
    own: Levels,
    timing: Timing,
) -> Result<Finalized, FinalizeError> {
    let connection = Connection::open(brokers, credentials).await?;
    ClusterRecord::read(&connection).await?.ok_or(FinalizeError::NoCluster)?;
    let cells = KvCells::existing(&connection, BUCKET);
    let key = LevelsKey(&cells);
    // Before the nodes: what they announce later was checked by somebody else, or is refused by what is written here.
    let (AgreedLevels { levels: before, by, .. }, revision) = key.read().await?;
    if !own.cover(&before) {
        return Err(LevelsError::Later { by, agreed: before.to_string(), own }.into());
    }
    let seen = node::seen(&cells).await?;
    let is_ahead = |seen: &SeenNode| !own.cover(&seen.known.levels);
    let ahead = node::live(&cells, &seen, is_ahead, timing).await?;
    if !ahead.is_empty() {
        return Err(FinalizeError::Ahead { own, nodes: ahead });
    }
    if before == own {
        return Ok(Finalized { before, levels: own });
    }
    let nodes = behind(&cells, seen, own, timing).await?;
    if !nodes.is_empty() {
        return Err(FinalizeError::Behind { wanted: own, nodes });
    }
    if !node::seen(&cells).await?.iter().any(|seen| seen.known.levels.cover(&own)) {
        return Err(FinalizeError::NoNode);
    }
    match key.raise(own, revision).await? {
        true => {
            // One that started in between may have read the levels before they were raised: it ends with its next sign of life.
            behind(&cells, node::seen(&cells).await?, own, timing).await?;
            Ok(Finalized { before, levels: own })
        }
        false => Err(FinalizeError::Changed),
    }
}

/// Returns the live nodes that do not have the levels `wanted`.
async fn behind(cells: &KvCells, first: Vec<SeenNode>, wanted: Levels, timing: Timing) -> Result<Vec<KnownNode>, NodeError> {
    node::live(cells, &first, |seen| !seen.known.levels.cover(&wanted), timing).await
}
