//! Nodes of two program versions: partitions do not move to the earlier one, and nodes write later
//! formats once all have the later version.

use std::time::{Duration, Instant};

use headcount_cluster::ClusterError;
use headcount_cluster::drain::Drain;
use headcount_cluster::finalize::{Finalized, finalize};
use headcount_cluster::node::NodeError;
use headcount_cluster::status::status;
use headcount_cluster::{Credentials, Levels};
use headcount_common::{PARTITIONS, partition_of};

use crate::node::{Cluster, ClusterNode, TIMING, check, record, runtime, wait_until};

/// The levels of a version that differs only in its fold version.
fn later() -> Levels {
    Levels { fold: Levels::own().fold + 1, ..Levels::own() }
}

fn serve(nodes: &[&ClusterNode]) -> usize {
    nodes.iter().map(|node| node.serves()).sum()
}

const ALL: usize = PARTITIONS as usize;

fn try_to_finalize(cluster: &Cluster, levels: Levels) -> Result<Finalized, ClusterError> {
    runtime().block_on(finalize(&cluster.addresses(), &Credentials::None, levels, TIMING.leases))
}

#[test]
fn partitions_move_to_the_later_version_and_not_back() {
    let Some(cluster) = Cluster::start() else { return };
    let old = ["a", "b"].map(|name| cluster.join_as(name, Levels::own()).unwrap());
    wait_until("both have their part", || serve(&[&old[0], &old[1]]) == ALL && old.iter().all(|node| node.serves() >= 16));
    let new = cluster.join_as("c", later()).unwrap();
    wait_until("the third has its part", || serve(&[&old[0], &old[1], &new]) == ALL && new.serves() >= 8);
    let asking = runtime();
    let drain = asking.block_on(Drain::open(&cluster.addresses(), &Credentials::None)).unwrap();
    let of_new = || -> Vec<u16> { (0..PARTITIONS).filter(|partition| new.engine.owners().is_here(*partition)).collect() };
    // All partitions of one old node move, some of them to the new node.
    let before = of_new();
    asking.block_on(drain.begin("a")).unwrap();
    wait_until("it has handed everything over", || old[0].serves() == 0 && serve(&[&old[1], &new]) == ALL);
    let after = of_new();
    assert!(before.iter().all(|partition| after.contains(partition)) && after.len() > before.len());
    // It gets its part of the other old node's partitions again, and none of the new node's.
    asking.block_on(drain.undo("a")).unwrap();
    wait_until("it has a part again", || old[0].serves() >= 8 && serve(&[&old[0], &old[1], &new]) == ALL);
    std::thread::sleep(3 * TIMING.calm);
    assert_eq!(of_new(), after);
    // Draining the new node does not change that.
    asking.block_on(drain.begin("c")).unwrap();
    wait_until("it drains", || new.engine.owners().node_vitals().unwrap().drains);
    std::thread::sleep(3 * TIMING.calm);
    assert_eq!(of_new(), after);
    // Old nodes take them only if there is no new one.
    let [a, b] = old;
    let nodes = vec![a, b];
    new.stop();
    wait_until("the others have all", || nodes.iter().map(ClusterNode::serves).sum::<usize>() == ALL);
    record(&cluster, &nodes, (0, 10));
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 10));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_node_of_the_earlier_version_takes_nothing_back_that_it_had_as_the_later_one() {
    let Some(cluster) = Cluster::start() else { return };
    let nodes = ["a", "b"].map(|name| cluster.join_as(name, later()).unwrap());
    wait_until("both have their part", || serve(&[&nodes[0], &nodes[1]]) == ALL && nodes.iter().all(|node| node.serves() >= 16));
    let project = *cluster.projects.iter().find(|project| nodes[0].has(**project)).unwrap();
    let [a, b] = nodes;
    a.kill();
    // It is back before its leases expire, and leaves them to the other node.
    let again = cluster.join_as("a", Levels::own()).unwrap();
    let began = Instant::now();
    wait_until("the other has all", || {
        assert!(!again.engine.owners().is_here(partition_of(project)), "after {:?}", began.elapsed());
        b.serves() == ALL
    });
    assert_eq!(again.serves(), 0);
    again.stop();
    b.stop();
}

#[test]
fn an_upgrade_is_finalized_once_all_nodes_have_it_and_the_earlier_version_is_refused() {
    let Some(cluster) = Cluster::start() else { return };
    let shown = || runtime().block_on(status(&cluster.addresses(), &Credentials::None)).unwrap();
    let none = try_to_finalize(&cluster, later()).unwrap_err();
    assert!(matches!(none, ClusterError::NoneRuns), "{none}");
    let [a, b] = ["a", "b"].map(|name| cluster.join_as(name, Levels::own()).unwrap());
    let c = cluster.join_as("c", later()).unwrap();
    let behind = try_to_finalize(&cluster, later()).unwrap_err().to_string();
    assert!(
        behind.contains("a at http://a (version") && behind.contains("b at http://b") && !behind.contains("http://c"),
        "{behind}"
    );
    let ahead = try_to_finalize(&cluster, Levels::own()).unwrap_err().to_string();
    assert!(ahead.contains("c at http://c (version") && !ahead.contains("http://a"), "{ahead}");
    assert_eq!(shown().levels.levels, Levels::FIRST);
    a.stop();
    let a = cluster.join_as("a", later()).unwrap();
    let behind = try_to_finalize(&cluster, later()).unwrap_err().to_string();
    assert!(behind.contains("http://b") && !behind.contains("http://a"), "{behind}");
    // A killed node counts as gone after a while.
    b.kill();
    let began = Instant::now();
    let finalized = try_to_finalize(&cluster, later()).unwrap();
    assert!(began.elapsed() >= TIMING.leases.taken_after);
    assert_eq!(finalized, Finalized { before: Levels::FIRST, levels: later() });
    assert_eq!(try_to_finalize(&cluster, later()).unwrap(), Finalized { before: later(), levels: later() });
    let agreed = shown().levels;
    assert_eq!((agreed.levels, agreed.by.as_str()), (later(), env!("CARGO_PKG_VERSION")));
    let refused = cluster.join_as("b", Levels::own()).map(|_| ()).unwrap_err();
    assert!(matches!(refused, NodeError::Levels(_)), "{refused}");
    let refused = refused.to_string();
    assert!(refused.contains("the cluster was finalized by version") && refused.contains("or a later one"), "{refused}");
    let earlier = try_to_finalize(&cluster, Levels::own()).unwrap_err();
    assert!(matches!(earlier, ClusterError::Levels(_)), "{earlier}");
    assert!(shown().nodes.iter().all(|node| node.node != "b" || node.levels == later()), "{:?}", shown().nodes);
    let b = cluster.join_as("b", later()).unwrap();
    let nodes = vec![a, b, c];
    record(&cluster, &nodes, (0, 10));
    nodes.into_iter().for_each(ClusterNode::stop);
}

/// A node that could not reach the brokers while the others were upgraded.
#[test]
fn a_node_that_finds_the_cluster_raised_stops() {
    let Some(cluster) = Cluster::start() else { return };
    let node = cluster.join_as("a", Levels::own()).unwrap();
    wait_until("it has all", || node.serves() == ALL);
    let raised = Levels { log: Levels::own().log + 1, ..Levels::own() };
    let text = serde_json::json!({"version": 1, "by": "9.0.0", "levels": raised}).to_string();
    node.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(cluster.addresses()).await.unwrap());
        context.get_key_value("hc").await.unwrap().put("levels", text.into()).await.unwrap();
    });
    wait_until("it answers nobody", || !node.is_live() && node.serves() == 0);
    std::thread::sleep(Duration::from_secs(2));
    assert!(!node.is_live() && node.serves() == 0);
    let shown = runtime().block_on(status(&cluster.addresses(), &Credentials::None)).unwrap();
    assert!(shown.nodes.is_empty() && shown.partitions.iter().all(|partition| partition.node.is_none()), "{:?}", shown.nodes);
    node.stop();
}
