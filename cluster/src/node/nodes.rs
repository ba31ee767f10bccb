//! The nodes of a cluster, their addresses, which of them are live, and which are asked to drain.
//!
//! Each node renews its own key. The keys decide where requests are sent and which node takes a
//! free partition, and nothing else: only a lease says which node owns a partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::answers_version;
use headcount_storage::boot_time::boot_time;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::timing::{NodeError, NodeTiming};
use crate::agreed::LevelsKey;
use crate::cells::{Cell, KvCells};
use crate::connection::Connection;
use crate::lease::Timing;
use crate::levels::Levels;

/// The prefix of the keys of nodes.
const PREFIX: &str = "node.";
/// How often the nodes' keys are read while it is unknown which nodes are live.
const INTERVAL: Duration = Duration::from_millis(500);

/// The announcement of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Announcement {
    /// The address where it answers HTTP.
    pub(super) address: String,
    /// The version of its program.
    pub(super) version: String,
    /// Whether it drains: it hands its partitions over, and takes none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) drains: bool,
    /// The reason why it can't serve partitions, if there is one. It drains until it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ailment: Option<String>,
    /// Whether it answers no requests, because it lacks changes of other nodes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_behind: bool,
    /// The levels of its program; absent for versions before levels existed.
    #[serde(default = "Levels::first")]
    pub(super) levels: Levels,
}

/// A node with a key. It need not be live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KnownNode {
    /// The id of the node.
    pub node: String,
    /// The address where it answers HTTP.
    pub address: String,
    /// The version of its program.
    pub version: String,
    /// Whether it drains: it hands its partitions over, and takes none.
    pub drains: bool,
    /// The reason why it can't serve partitions, if there is one. It drains until it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ailment: Option<String>,
    /// The levels of its program.
    pub levels: Levels,
}

/// A node, with its key as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SeenNode {
    pub(crate) known: KnownNode,
    revision: u64,
}

impl SeenNode {
    /// Whether the node has not renewed its key in between.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.known.node == other.known.node && self.revision == other.revision
    }
}

impl Announcement {
    /// Returns the announcement of a node of this program version.
    pub(super) fn new(address: String, levels: Levels) -> Self {
        Self { address, version: answers_version().to_owned(), drains: false, ailment: None, is_behind: false, levels }
    }
}

/// The key of a node.
struct NodeKey {
    node: String,
    revision: u64,
    /// The announcement. `None` if it is withdrawn, or another version wrote it.
    said: Option<Announcement>,
}

/// The keys of all nodes.
pub(super) struct Announcements {
    cells: KvCells,
    /// Each node with its key, and when that was seen first.
    seen: BTreeMap<String, (Duration, NodeKey)>,
    /// How long a node is live after its key changed.
    live_for: Duration,
    /// How long after that its key is removed.
    forgotten_after: Duration,
}

/// The nodes that were live at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LiveNodes {
    nodes: BTreeMap<String, LiveNode>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct LiveNode {
    address: Arc<str>,
    drains: bool,
    is_behind: bool,
    fold: u32,
}

/// Returns all nodes that have a key.
pub(crate) async fn listed(cells: &KvCells) -> Result<Vec<KnownNode>, NodeError> {
    Ok(seen(cells).await?.into_iter().map(|seen| seen.known).collect())
}

/// Returns all nodes that have a key, and how it is.
pub(crate) async fn seen(cells: &KvCells) -> Result<Vec<SeenNode>, NodeError> {
    let seen = |NodeKey { node, revision, said, .. }| {
        let Announcement { address, version, drains, ailment, levels, .. } = said?;
        Some(SeenNode { known: KnownNode { node, address, version, drains, ailment, levels }, revision })
    };
    Ok(read_all(cells).await?.into_iter().filter_map(seen).collect())
}

/// Returns the live nodes that `wanted` selects. `first` are the nodes that were seen before. A
/// killed node keeps its key, so it counts as live until it has not renewed the key for as long as
/// other nodes wait for its leases.
pub(crate) async fn live(
    cells: &KvCells,
    first: &[SeenNode],
    is_wanted: impl Fn(&SeenNode) -> bool,
    timing: Timing,
) -> Result<Vec<KnownNode>, NodeError> {
    let began = Instant::now();
    loop {
        let wanted = seen(cells).await?.into_iter().filter(&is_wanted);
        let has_renewed = |seen: &SeenNode| !first.iter().any(|first| first.is_same(seen));
        let (live, silent): (Vec<SeenNode>, Vec<SeenNode>) = wanted.partition(has_renewed);
        if silent.is_empty() || began.elapsed() >= timing.taken_after {
            return Ok(live.into_iter().map(|seen| seen.known).collect());
        }
        sleep(INTERVAL).await;
    }
}

/// Reads the keys of all nodes.
async fn read_all(cells: &KvCells) -> Result<Vec<NodeKey>, NodeError> {
    let mut found = Vec::new();
    for node in cells.keys(PREFIX).await? {
        let Some(Cell { value, revision }) = cells.read(&key_of(&node)).await? else { continue };
        found.push(NodeKey { node, revision, said: serde_json::from_slice(&value).ok() });
    }
    found.sort_by(|one, other| one.node.cmp(&other.node));
    Ok(found)
}

impl Announcements {
    pub(super) async fn open(connection: &Connection, bucket: &str, timing: &NodeTiming) -> Result<Self, NodeError> {
        let cells = KvCells::existing(connection, bucket);
        cells.open().await?;
        let (live_for, forgotten_after) = (timing.leases.taken_after, timing.forgotten_after);
        Ok(Self { cells, seen: BTreeMap::new(), live_for, forgotten_after })
    }

    /// Renews the announcement of a node.
    pub(super) async fn announce(&self, node: &str, announcement: &Announcement) -> Result<(), NodeError> {
        let value = serde_json::to_vec(announcement).map_err(NodeError::unavailable)?;
        Ok(self.cells.put(&key_of(node), value).await.map(drop)?)
    }

    /// Whether a node is to drain.
    pub(super) async fn is_to_drain(&self, node: &str) -> Result<bool, NodeError> {
        // According to the leader. A deleted key is empty.
        Ok(self.cells.read(&drain_key_of(node)).await?.is_some_and(|cell| !cell.value.is_empty()))
    }

    /// Reads the agreed levels for a node with the levels `own`. The connection writes them from
    /// now on.
    pub(super) async fn follow_levels(&self, connection: &Connection, own: Levels) -> Result<(), NodeError> {
        Ok(LevelsKey(&self.cells).follow(connection, own).await.map(drop)?)
    }

    /// Deletes the request to drain a node.
    pub(super) async fn forget_drain(&self, node: &str) -> Result<(), NodeError> {
        if self.is_to_drain(node).await? {
            self.cells.delete(&drain_key_of(node)).await?;
        }
        Ok(())
    }

    /// Announces that a node is about to stop.
    pub(super) async fn withdraw(&self, node: &str) -> Result<(), NodeError> {
        Ok(self.cells.delete(&key_of(node)).await?)
    }

    /// Reads the keys of all nodes. Returns the live nodes: those whose key has changed recently,
    /// as far as this function has seen.
    pub(super) async fn live(&mut self) -> Result<LiveNodes, NodeError> {
        let mut seen = BTreeMap::new();
        for key in read_all(&self.cells).await? {
            let since = match self.seen.get(&key.node) {
                Some((since, known)) if known.revision == key.revision => *since,
                _ => boot_time(),
            };
            seen.insert(key.node.clone(), (since, key));
        }
        self.seen = seen;
        self.forget_dead().await;
        let is_live = |since: Duration| boot_time() - since < self.live_for;
        let live = self.seen.values().filter(|(since, _)| is_live(*since));
        let node = |(_, key): &(Duration, NodeKey)| {
            let said = key.said.as_ref()?;
            let (address, drains, is_behind, fold) =
                (said.address.as_str().into(), said.drains, said.is_behind, said.levels.fold);
            Some((key.node.clone(), LiveNode { address, drains, is_behind, fold }))
        };
        Ok(LiveNodes { nodes: live.filter_map(node).collect() })
    }

    /// Removes one key: of a node that has not renewed it for so long that it won't come back, or
    /// of a withdrawn node, because all keys are read each time. If the node does come back, it
    /// gets a new key.
    async fn forget_dead(&self) {
        let is_dead = |since: Duration| boot_time() - since >= self.live_for + self.forgotten_after;
        // Removes one at a time, so that the next sign of life need not wait.
        let Some((_, dead)) = self.seen.values().find(|(since, _)| is_dead(*since)) else { return };
        let NodeKey { node, revision, .. } = dead;
        // Spares a key that was renewed meanwhile.
        match self.cells.purge(&key_of(node), Some(*revision)).await {
            Ok(()) => tracing::info!(node, "the key of a node is removed that was not renewed for long"),
            Err(error) => tracing::debug!(node, %error, "the key of a node is not removed yet"),
        }
    }
}

fn key_of(node: &str) -> String {
    format!("{PREFIX}{node}")
}

impl LiveNodes {
    /// Returns the names of the live nodes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.keys().map(String::as_str)
    }

    /// Returns the names of the nodes that announce that they answer requests.
    pub(super) fn answering(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter(|(_, node)| !node.is_behind).map(|(name, _)| name.as_str())
    }

    /// Returns the address where a live node answers HTTP.
    pub(super) fn address(&self, node: &str) -> Option<Arc<str>> {
        self.nodes.get(node).map(|node| Arc::clone(&node.address))
    }

    /// Whether a node drains.
    pub(super) fn drains(&self, node: &str) -> bool {
        self.nodes.get(node).is_some_and(|node| node.drains)
    }

    /// Chooses a live node for a partition whose last owner had the fold version `fold`, avoiding
    /// `without`.
    ///
    /// - A node of an earlier fold version gets the partition only if all are earlier.
    /// - A node that could not serve it gets it only if no node could.
    /// - A node that drains gets it only if all nodes that could serve it drain.
    ///
    /// All nodes that know the same live nodes choose the same one.
    pub(super) fn choose(&self, partition: u16, without: Option<&str>, failed: &[&str], fold: u32) -> Option<&str> {
        let latest = self.nodes.values().map(|node| node.fold).max().unwrap_or(0);
        let fold = fold.min(latest);
        let best = |without: Option<&str>, failed: &[&str], may_drain: bool| {
            let is_candidate = |name: &str, node: &LiveNode| {
                node.fold >= fold && Some(name) != without && !failed.contains(&name) && (may_drain || !node.drains)
            };
            let candidates = self.nodes.iter().filter(|(name, node)| is_candidate(name, node)).map(|(name, _)| name.as_str());
            candidates.max_by_key(|name| xxh3_64_with_seed(name.as_bytes(), u64::from(partition)))
        };
        // A node that drains is better than a node that could not serve it.
        [failed, &[]].into_iter().find_map(|failed| {
            let attempts = [(without, false), (None, false), (without, true), (None, true)];
            attempts.into_iter().find_map(|(without, may_drain)| best(without, failed, may_drain))
        })
    }
}

/// The key that says that a node is to drain.
pub(crate) fn drain_key_of(node: &str) -> String {
    format!("drain.{node}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(names: &[&str]) -> LiveNodes {
        let node = |name: &str| LiveNode { address: Arc::from(name), drains: false, is_behind: false, fold: 1 };
        LiveNodes { nodes: names.iter().map(|name| ((*name).to_owned(), node(name))).collect() }
    }

    #[test]
    fn partitions_are_shared_and_few_move() {
        let (three, two) = (nodes(&["a", "b", "c"]), nodes(&["a", "c"]));
        let of = |live: &LiveNodes, name: &str| (0..64).filter(|number| live.choose(*number, None, &[], 1) == Some(name)).count();
        for name in ["a", "b", "c"] {
            assert!((10..=35).contains(&of(&three, name)), "{name} has {}", of(&three, name));
        }
        for partition in 0..64 {
            // Only the partitions of the node that is gone move, and all nodes know where.
            let chosen = three.choose(partition, None, &[], 1).unwrap();
            assert!(chosen == "b" || two.choose(partition, None, &[], 1) == Some(chosen));
            assert_eq!(three.choose(partition, Some("b"), &[], 1), two.choose(partition, None, &[], 1));
        }
        assert_eq!(nodes(&["a"]).choose(1, Some("a"), &[], 1), Some("a"), "there is no other one");
        assert_eq!(nodes(&[]).choose(1, None, &[], 1), None);
    }

    #[test]
    fn partitions_do_not_move_to_an_earlier_fold_unless_no_other_node_is_left() {
        let folding = |names: &[&str], later: &[&str]| {
            let mut live = nodes(names);
            live.nodes.iter_mut().for_each(|(name, node)| node.fold += u32::from(later.contains(&name.as_str())));
            live
        };
        let (live, equal, later) = (folding(&["a", "b", "c"], &["b", "c"]), nodes(&["a", "b", "c"]), nodes(&["b", "c"]));
        for partition in 0..64 {
            // A partition of the earlier fold version may be anywhere; one of the later version may
            // not.
            assert_eq!(live.choose(partition, None, &[], 1), equal.choose(partition, None, &[], 1));
            assert_eq!(live.choose(partition, None, &[], 2), later.choose(partition, None, &[], 1));
            assert_eq!(folding(&["a", "b"], &["b"]).choose(partition, Some("b"), &[], 2), Some("b"), "it keeps what it has");
            assert_eq!(
                equal.choose(partition, Some("b"), &[], 2),
                equal.choose(partition, Some("b"), &[], 1),
                "rather than nobody"
            );
            assert_eq!(live.choose(partition, None, &[], 3), live.choose(partition, None, &[], 2), "the latest that there is");
        }
        let mut drained = folding(&["a", "b"], &["b"]);
        drained.nodes.get_mut("b").unwrap().drains = true;
        assert_eq!(drained.choose(1, None, &[], 2), Some("b"), "draining moves nothing to an earlier fold");
    }

    #[test]
    fn those_that_drain_have_no_partitions_unless_all_do() {
        let draining = |names: &[&str], drain: &[&str]| {
            let mut live = nodes(names);
            live.nodes.iter_mut().for_each(|(name, node)| node.drains = drain.contains(&name.as_str()));
            live
        };
        let (live, others) = (draining(&["a", "b", "c"], &["b"]), nodes(&["a", "c"]));
        assert!(live.drains("b") && !live.drains("a") && !live.drains("d"));
        for partition in 0..64 {
            assert_eq!(live.choose(partition, None, &[], 1), others.choose(partition, None, &[], 1));
            assert_eq!(live.choose(partition, Some("b"), &[], 1), others.choose(partition, None, &[], 1));
            assert_eq!(draining(&["a", "b"], &["b"]).choose(partition, Some("a"), &[], 1), Some("a"));
            let all = draining(&["a", "b"], &["a", "b"]);
            assert_eq!(
                all.choose(partition, None, &[], 1),
                nodes(&["a", "b"]).choose(partition, None, &[], 1),
                "rather than nobody"
            );
        }
    }

    #[test]
    fn those_that_could_not_serve_a_partition_do_not_have_it_unless_no_other_can() {
        let (live, others) = (nodes(&["a", "b", "c"]), nodes(&["a", "c"]));
        for partition in 0..64 {
            let chosen = others.choose(partition, None, &[], 1);
            assert_eq!(live.choose(partition, None, &["b"], 1), chosen);
            assert_eq!(live.choose(partition, Some("b"), &["b"], 1), chosen);
            // The node that gave it up takes it again, since the others could not serve it.
            assert_eq!(live.choose(partition, Some("a"), &["b", "c"], 1), Some("a"));
            assert_eq!(live.choose(partition, None, &["a", "b", "c"], 1), live.choose(partition, None, &[], 1));
            let next = live.choose(partition, Some("a"), &["a", "b", "c"], 1);
            assert!(next.is_some() && next != Some("a"), "they take turns");
        }
        let mut draining = nodes(&["a", "b"]);
        draining.nodes.get_mut("a").unwrap().drains = true;
        assert_eq!(draining.choose(1, None, &["b"], 1), Some("a"), "rather one that drains");
    }
}
