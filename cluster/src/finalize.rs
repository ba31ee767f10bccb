//! Finalizing an upgrade: when all nodes run a later program version, they may write formats that
//! only that version reads.

use serde::Serialize;

use crate::agreed::{AgreedLevels, LevelsError, LevelsKey};
use crate::cells::KvCells;
use crate::commands::{self, ClusterError};
use crate::connection::Credentials;
use crate::lease::Timing;
use crate::levels::Levels;
use crate::node::{self, KnownNode, NodeError, SeenNode};
use crate::record::BUCKET;

/// The result of finalizing an upgrade.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finalized {
    /// The levels that the nodes had agreed on before.
    pub before: Levels,
    /// The levels from now on. They equal `before` if there was nothing to do.
    pub levels: Levels,
}

/// Makes all nodes write the formats of this program version, with the levels `own`. It can be
/// repeated.
///
/// # Errors
/// Returns a [`ClusterError`].
pub async fn finalize(
    brokers: &[String],
    credentials: &Credentials,
    own: Levels,
    timing: Timing,
) -> Result<Finalized, ClusterError> {
    let (connection, _) = commands::open(brokers, credentials).await?;
    let cells = KvCells::existing(&connection, BUCKET);
    let key = LevelsKey(&cells);
    // Read before the nodes: if a node announces other levels later, it was checked elsewhere, or
    // the write below refuses it.
    let (AgreedLevels { levels: before, by, .. }, revision) = key.read().await?;
    if !own.cover(&before) {
        return Err(LevelsError::Later { by, agreed: before.to_string(), own }.into());
    }
    let seen = node::seen(&cells).await?;
    let is_ahead = |seen: &SeenNode| !own.cover(&seen.known.levels);
    let ahead = node::live(&cells, &seen, is_ahead, timing).await?;
    if !ahead.is_empty() {
        return Err(ClusterError::Ahead { own, nodes: ahead });
    }
    if before == own {
        return Ok(Finalized { before, levels: own });
    }
    let nodes = behind(&cells, seen, own, timing).await?;
    if !nodes.is_empty() {
        return Err(ClusterError::Behind { wanted: own, nodes });
    }
    if !node::seen(&cells).await?.iter().any(|seen| seen.known.levels.cover(&own)) {
        return Err(ClusterError::NoneRuns);
    }
    match key.raise(own, revision).await? {
        true => {
            // A node that started in between may have read the former levels. It ends at its next
            // sign of life.
            behind(&cells, node::seen(&cells).await?, own, timing).await?;
            Ok(Finalized { before, levels: own })
        }
        false => Err(ClusterError::Changed),
    }
}

/// Returns the live nodes that do not have the levels `wanted`.
async fn behind(cells: &KvCells, first: Vec<SeenNode>, wanted: Levels, timing: Timing) -> Result<Vec<KnownNode>, NodeError> {
    node::live(cells, &first, |seen| !seen.known.levels.cover(&wanted), timing).await
}
