//! The counts of dropped events, which follow their partition from node to node.

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::IntakeQuery;
use headcount_actors::domain::time::{Timezone, Window};
use headcount_actors::ingest::Status;
use headcount_common::PARTITIONS;

use crate::node::{Cluster, ClusterNode, record, wait_until, wait_until_nothing_moves};

/// Returns the duplicates of a project today and yesterday, and whether some may be missing.
fn duplicates(nodes: &[ClusterNode], project: ProjectId) -> (u64, bool) {
    let node = nodes.iter().find(|node| node.has(project)).unwrap();
    let window = Window::last_days(2, Timezone::UTC, node.engine.clock().now());
    let asked = node.engine.ingest.intake(project, IntakeQuery { window, timezone: Timezone::UTC });
    let intake = node.block_on(asked).unwrap();
    (intake.dropped.duplicates, intake.is_approximate)
}

/// Sends two events of each project again.
fn repeat(cluster: &Cluster, nodes: &[ClusterNode]) {
    for project in &cluster.projects {
        let node = nodes.iter().find(|node| node.has(*project)).unwrap();
        (0..2).for_each(|user| assert_eq!(node.order(*project, user), Some(Status::Duplicate)));
    }
}

#[test]
fn counts_of_dropped_events_follow_partitions() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 2));
    repeat(&cluster, &nodes);
    nodes.push(cluster.join("b"));
    nodes.remove(0).stop();
    wait_until("the other one has all", || nodes[0].serves() == usize::from(PARTITIONS));
    for project in &cluster.projects {
        assert_eq!(duplicates(&nodes, *project), (2, false), "moved in order");
    }
    repeat(&cluster, &nodes);
    nodes.push(cluster.join("c"));
    wait_until("another one has its part", || nodes[1].serves() >= 16);
    wait_until_nothing_moves(&nodes);
    let (killed, kept): (Vec<ProjectId>, Vec<ProjectId>) = cluster.projects.iter().partition(|project| nodes[0].has(**project));
    assert!(!killed.is_empty() && !kept.is_empty());
    nodes.remove(0).kill();
    wait_until("the other one has all", || nodes[0].serves() == usize::from(PARTITIONS));
    kept.iter().for_each(|project| assert_eq!(duplicates(&nodes, *project), (4, false)));
    // The last counts are lost, unless they were just written.
    let left = killed.iter().map(|project| duplicates(&nodes, *project));
    let left: Vec<u64> = left
        .map(|(count, is_approximate)| {
            assert!(is_approximate && (count == 2 || count == 4), "{count}");
            count
        })
        .collect();
    repeat(&cluster, &nodes);
    // A stop in order, and a node with nothing but its key.
    nodes.remove(0).stop();
    nodes.push(cluster.join("d"));
    wait_until("the last one has all", || nodes[0].serves() == usize::from(PARTITIONS));
    kept.iter().for_each(|project| assert_eq!(duplicates(&nodes, *project), (6, false)));
    for (project, count) in killed.iter().zip(left) {
        assert_eq!(duplicates(&nodes, *project), (count + 2, true));
    }
    nodes.remove(0).stop();
}
