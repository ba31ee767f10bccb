//! Whether a node is to drain: a key of the bucket.

use super::timing::NodeError;
use crate::cells::KvCells;

/// The first part of the keys of nodes that are to drain.
const PREFIX: &str = "drain.";

/// Whether a node is to drain, as the leader says it.
pub(super) async fn is_wanted(cells: &KvCells, node: &str) -> Result<bool, NodeError> {
    Ok(cells.read(&drain_key_of(node)).await?.is_some_and(|cell| !cell.value.is_empty()))
}

/// Forgets that a node is to drain: it starts.
pub(super) async fn forget(cells: &KvCells, node: &str) -> Result<(), NodeError> {
    if is_wanted(cells, node).await? {
        cells.delete(&drain_key_of(node)).await?;
    }
    Ok(())
}

/// The key that says that a node is to drain.
pub(crate) fn drain_key_of(node: &str) -> String {
    format!("{PREFIX}{node}")
}
