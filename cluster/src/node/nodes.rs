//! The nodes of a cluster: where they are, and which are live.
//!
//! Each node renews a key of its own. What this says decides where requests are sent and who takes a free partition, and nothing else: who owns a partition, its lease says.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::kv::Store;
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use futures_util::TryStreamExt as _;
use headcount_storage::boot_time::boot_time;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::timing::NodeError;
use crate::connection::Connection;

/// The first part of the keys of nodes.
const PREFIX: &str = "node.";

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announcement {
    /// Where it answers HTTP.
    pub(super) address: String,
    /// Its version of the program.
    pub(super) version: String,
}

impl Announcement {
    /// Returns that of a node of this version.
    pub(super) fn new(address: String) -> Self {
        Self { address, version: env!("CARGO_PKG_VERSION").to_owned() }
    }
}

/// The keys of all nodes.
pub(super) struct Announcements {
    store: Store,
    /// Each node with the last revision of its key, and when it was seen first.
    seen: BTreeMap<String, (u64, Duration, Announcement)>,
    /// How long a node is live after its key changed.
    live_for: Duration,
}

/// The nodes that were live at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LiveNodes {
    /// Their addresses.
    nodes: BTreeMap<String, Arc<str>>,
}

impl Announcements {
    pub(super) async fn open(connection: &Connection, bucket: &str, live_for: Duration) -> Result<Self, NodeError> {
        let store = connection.context.get_key_value(bucket).await.map_err(NodeError::unavailable)?;
        Ok(Self { store, seen: BTreeMap::new(), live_for })
    }

    /// Says what a node says of itself, once more.
    pub(super) async fn announce(&self, node: &str, announcement: &Announcement) -> Result<(), NodeError> {
        let value = serde_json::to_vec(announcement).map_err(NodeError::unavailable)?;
        self.store.put(format!("{PREFIX}{node}"), value.into()).await.map(drop).map_err(NodeError::unavailable)
    }

    /// Says that a node is about to stop.
    pub(super) async fn withdraw(&self, node: &str) -> Result<(), NodeError> {
        self.store.delete(format!("{PREFIX}{node}")).await.map_err(NodeError::unavailable)
    }

    /// Reads the keys of all nodes, and returns those that are live: that have renewed their key lately, as far as this function has seen.
    pub(super) async fn live(&mut self) -> Result<LiveNodes, NodeError> {
        let prefix = format!("{}{PREFIX}", self.store.prefix);
        let subjects = self.store.stream.info_with_subjects(format!("{prefix}>")).await.map_err(NodeError::unavailable)?;
        let subjects: Vec<(String, usize)> = subjects.try_collect().await.map_err(NodeError::unavailable)?;
        let mut seen = BTreeMap::new();
        for (subject, _) in subjects {
            let Some(node) = subject.strip_prefix(&prefix) else { continue };
            let Some((revision, announcement)) = read(&self.store.stream, &subject).await? else { continue };
            let since = match self.seen.get(node) {
                Some((known, since, _)) if *known == revision => *since,
                _ => boot_time(),
            };
            seen.insert(node.to_owned(), (revision, since, announcement));
        }
        self.seen = seen;
        let is_live = |since: Duration| boot_time() - since < self.live_for;
        let live = self.seen.iter().filter(|(_, (_, since, _))| is_live(*since));
        Ok(LiveNodes { nodes: live.map(|(node, (.., said))| (node.clone(), said.address.as_str().into())).collect() })
    }
}

/// Reads the key of a node. `None`: it is withdrawn, or another version wrote it.
async fn read(stream: &Stream, subject: &str) -> Result<Option<(u64, Announcement)>, NodeError> {
    match stream.get_last_raw_message_by_subject(subject).await {
        Ok(message) => Ok(serde_json::from_slice(&message.payload).ok().map(|announcement| (message.sequence, announcement))),
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
        Err(error) => Err(NodeError::unavailable(error)),
    }
}

impl LiveNodes {
    /// Returns their names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Returns where a node answers HTTP, if it is live.
    pub(super) fn address(&self, node: &str) -> Option<Arc<str>> {
        self.nodes.get(node).cloned()
    }

    /// Returns the node that is to have a partition, out of the live ones but `without`, unless there is no other one. All nodes that know of the same ones choose the same.
    pub(super) fn choose(&self, partition: u16, without: Option<&str>) -> Option<&str> {
        let best = |without: Option<&str>| {
            let others = self.nodes.keys().filter(|node| Some(node.as_str()) != without);
            others.max_by_key(|node| xxh3_64_with_seed(node.as_bytes(), u64::from(partition))).map(String::as_str)
        };
        best(without).or_else(|| best(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> LiveNodes {
        LiveNodes { nodes: names.iter().map(|name| ((*name).to_owned(), Arc::from(*name))).collect() }
    }

    #[test]
    fn partitions_are_shared_and_few_move() {
        let (three, two) = (nodes(&["a", "b", "c"]), nodes(&["a", "c"]));
        let of = |live: &LiveNodes, name: &str| (0..64).filter(|number| live.choose(*number, None) == Some(name)).count();
        for name in ["a", "b", "c"] {
            assert!((10..=35).contains(&of(&three, name)), "{name} has {}", of(&three, name));
        }
        for partition in 0..64 {
            // Only those of the node that is gone move, and all know where.
            let chosen = three.choose(partition, None).unwrap();
            assert!(chosen == "b" || two.choose(partition, None) == Some(chosen));
            assert_eq!(three.choose(partition, Some("b")), two.choose(partition, None));
        }
        assert_eq!(nodes(&["a"]).choose(1, Some("a")), Some("a"), "there is no other one");
        assert_eq!(nodes(&[]).choose(1, None), None);
    }
}
