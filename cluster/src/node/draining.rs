//! The key of the bucket that asks a node to drain.

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::LastRawMessageErrorKind;

use super::timing::NodeError;

/// The prefix of the keys of nodes that are to drain.
const PREFIX: &str = "drain.";

/// Whether a node is to drain, according to the leader.
pub(super) async fn is_wanted(store: &Store, node: &str) -> Result<bool, NodeError> {
    let subject = format!("{}{}", store.prefix, drain_key_of(node));
    match store.stream.get_last_raw_message_by_subject(&subject).await {
        // A deleted key is an empty message.
        Ok(message) => Ok(!message.payload.is_empty()),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(false),
        Err(error) => Err(NodeError::unavailable(error)),
    }
}

/// Deletes the request to drain, because the node starts.
pub(super) async fn forget(store: &Store, node: &str) -> Result<(), NodeError> {
    if is_wanted(store, node).await? {
        store.delete(drain_key_of(node)).await.map_err(NodeError::unavailable)?;
    }
    Ok(())
}

/// The key that asks a node to drain.
pub(crate) fn drain_key_of(node: &str) -> String {
    format!("{PREFIX}{node}")
}
