//! Brokers that were restored from a copy, and have lost messages that they confirmed since. State
//! from these must not be combined with later events.

use std::collections::BTreeSet;
use std::time::Duration;

use headcount_actors::LiveState;
use headcount_actors::domain::aggregate::Grouping;
use headcount_actors::domain::filter::Predicate;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::intake::fields::{BuiltIn, Field};
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::domain::versions::Depends;
use headcount_actors::ingest::Status;
use headcount_cluster::Credentials;
use headcount_cluster::status::{resume, status};
use headcount_common::{PARTITIONS, partition_of};
use tempfile::TempDir;

use crate::files::files_in;
use crate::node::{
    AUDIT, Cluster, ClusterNode, NodeFiles, TIMING, check, record, runtime, wait_for, wait_until, wait_until_nothing_moves,
};
use crate::states::{wait_until_published, without_archive};

/// The stopped partitions.
fn stopped(cluster: &Cluster, node: &ClusterNode) -> BTreeSet<u16> {
    let status = node.block_on(status(&cluster.addresses(), &Credentials::None)).unwrap();
    status.partitions.iter().filter(|partition| partition.stopped.is_some()).map(|partition| partition.partition).collect()
}

pub(crate) fn wait_until_served(node: &ClusterNode) {
    wait_until("one node has all", || node.serves() == usize::from(PARTITIONS));
}

/// Restores the streams of events, while brokers keep their keys.
pub(crate) fn lose_events(cluster: &mut Cluster, earlier: &TempDir) {
    cluster.restart_brokers_after(|brokers| {
        let later = brokers.copy(0);
        brokers.put_back(0, earlier, "");
        brokers.put_back(0, &later, "KV_");
    });
}

/// The orders recorded after a loss: more than were lost, and by users who are not in a check of
/// the count.
const OTHERS: [(u64, u64); 3] = [(31, 40), (41, 50), (51, 60)];

/// Starts a node, which gets all partitions, records orders of these users, and leaves.
fn record_alone(cluster: &Cluster, name: &str, dir: Option<TempDir>, users: &[(u64, u64)]) -> TempDir {
    let node = match dir {
        Some(dir) => cluster.rejoin(name, dir, |_| {}),
        None => cluster.join(name),
    };
    wait_until_served(&node);
    let nodes = [node];
    users.iter().for_each(|users| record(cluster, &nodes, *users));
    let [node] = nodes;
    node.leave()
}

#[test]
fn a_state_of_what_the_brokers_lost_stops_its_partition_until_it_is_resumed() {
    let Some(mut cluster) = Cluster::start() else { return };
    let dir = record_alone(&cluster, "a", None, &[(0, 10)]);
    let copy = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    let dir = record_alone(&cluster, "a", Some(dir), &[(10, 20)]);
    cluster.restart_brokers_after(|brokers| brokers.put_back(0, &copy, ""));
    // Another node knows nothing of that. By now the log has more messages than the first node's
    // state.
    let other = record_alone(&cluster, "b", None, &OTHERS);
    let mut nodes = [cluster.rejoin("a", dir, |_| {})];
    wait_until("all partitions with events are stopped", || stopped(&cluster, &nodes[0]) == cluster.partitions());
    assert!(cluster.projects.iter().all(|project| nodes[0].users(*project).is_none()));
    let resume_all = |node: &ClusterNode| {
        for partition in cluster.partitions() {
            let reason = node.block_on(resume(&cluster.addresses(), &Credentials::None, partition)).unwrap();
            assert!(reason.unwrap().contains("does not follow the one before"));
        }
    };
    resume_all(&nodes[0]);
    wait_until_served(&nodes[0]);
    for project in &cluster.projects {
        check(&nodes, *project, 37);
        let recorded = [5, 15, 35].map(|user| nodes[0].order(*project, user));
        assert_eq!(recorded, [Some(Status::Duplicate), Some(Status::Recorded), Some(Status::Duplicate)]);
    }
    // States saved from now on belong to this log.
    let [node] = nodes;
    let dir = node.leave();
    nodes = [cluster.rejoin("a", dir, |_| {})];
    wait_until_served(&nodes[0]);
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 38));
    let [node] = nodes;
    drop(node.leave());
    nodes = [cluster.rejoin("b", other, |_| {})];
    wait_until_served(&nodes[0]);
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 38));
    nodes.into_iter().for_each(ClusterNode::stop);
}

/// The number of orders, by a kept answer that is advanced.
pub(crate) fn orders_by_a_view(node: &ClusterNode, project: ProjectId) -> u64 {
    let day = Day::parse("2024-03-01").unwrap();
    let (window, by) = (Window { start: day, end: day }, Grouping::new(Field::BuiltIn(BuiltIn::Name), None).unwrap());
    let ask = || node.block_on(node.engine.scans.aggregate(project, window, Predicate::default(), by.clone(), 10));
    let groups = || ask().inspect_err(|error| eprintln!("no figures of {project} yet: {error}")).ok();
    wait_for("the orders are counted", groups).rows.iter().map(|row| row.count).sum()
}

/// The incarnation in the live stream.
fn streamed_incarnation(node: &ClusterNode, project: ProjectId) -> u128 {
    let mut watch = node.engine.watch(project).unwrap();
    node.block_on(async {
        loop {
            match watch.changed().await.unwrap() {
                LiveState::Frame(frame) => return frame.incarnation,
                LiveState::Starting => {}
                LiveState::Ended(end) => panic!("{end:?}"),
            }
        }
    })
}

#[test]
fn a_node_that_runs_forgets_what_it_knew_of_lost_events() {
    let Some(mut cluster) = Cluster::start() else { return };
    let nodes = [cluster.join("a")];
    let node = &nodes[0];
    wait_until_served(node);
    record(&cluster, &nodes, (0, 10));
    let copy = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    wait_until_served(node);
    record(&cluster, &nodes, (10, 20));
    let version =
        |project| wait_for("the version is known", || node.block_on(node.engine.version(project, &Depends::Everything)).ok());
    let known: Vec<_> = (cluster.projects.iter())
        .map(|project| {
            assert_eq!(orders_by_a_view(node, *project), 20);
            (version(*project), node.engine.start_number(*project), streamed_incarnation(node, *project))
        })
        .collect();
    let has = |project, (position, start_number)| {
        let has = || node.block_on(node.engine.has_position(project, position, start_number)).ok();
        wait_for("the position is known", has)
    };
    cluster.projects.iter().zip(&known).for_each(|(project, ((_, last), start, _))| assert!(has(*project, (*last, *start))));
    cluster.restart_brokers_after(|brokers| brokers.put_back(0, &copy, ""));
    wait_until("all partitions with events are stopped", || stopped(&cluster, node) == cluster.partitions());
    for partition in cluster.partitions() {
        node.block_on(resume(&cluster.addresses(), &Credentials::None, partition)).unwrap().unwrap();
    }
    wait_until_served(node);
    // More than were lost, so that other events have their positions.
    OTHERS.iter().for_each(|users| record(&cluster, &nodes, *users));
    for (project, (lost, start_number, streamed)) in cluster.projects.iter().zip(known) {
        check(&nodes, *project, 37);
        assert_eq!(orders_by_a_view(node, *project), 37);
        let (incarnation, last) = version(*project);
        assert!(last > lost.1, "a position stands for another event than before");
        assert_ne!(incarnation, lost.0, "so entity tags have to differ");
        assert_ne!(streamed_incarnation(node, *project), streamed);
        assert!(!has(*project, (lost.1, start_number)), "pages do not go on");
        assert!(has(*project, (last, node.engine.start_number(*project))));
    }
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_state_that_is_longer_than_the_log_stops_its_partition_again_and_again() {
    let Some(mut cluster) = Cluster::start() else { return };
    let dir = record_alone(&cluster, "a", None, &[(0, 3)]);
    let copy = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    let dir = record_alone(&cluster, "a", Some(dir), &[(3, 6)]);
    let lost = cluster.restart_brokers_after(|brokers| {
        let lost = brokers.copy(0);
        brokers.put_back(0, &copy, "");
        lost
    });
    let mut node = cluster.rejoin("a", dir, |_| {});
    for _ in 0..4 {
        // Attempts to take a partition over would make its log longer if they began an epoch.
        wait_until("all partitions with events are stopped", || stopped(&cluster, &node) == cluster.partitions());
        node = cluster.rejoin("a", node.leave(), |_| {});
    }
    wait_until("they still are", || stopped(&cluster, &node) == cluster.partitions());
    // The messages are restored.
    let dir = node.leave();
    cluster.restart_brokers_after(|brokers| brokers.put_back(0, &lost, ""));
    let nodes = [cluster.rejoin("a", dir, |_| {})];
    wait_until_served(&nodes[0]);
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 6));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_published_state_of_what_the_brokers_lost_is_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start_with(Some(without_archive(place.path()))) else { return };
    let dir = record_alone(&cluster, "a", None, &[(0, 5)]);
    let earlier = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    let node = cluster.rejoin("a", dir, |_| {});
    wait_until_served(&node);
    let nodes = [node];
    record(&cluster, &nodes, (5, 10));
    wait_until_published(&cluster, place.path(), &nodes[0]);
    nodes.into_iter().for_each(ClusterNode::stop);
    // The log loses the later events, and gets others. The pointers name the state with the lost
    // ones.
    let later = cluster.restart_brokers_after(|brokers| {
        let later = brokers.copy(0);
        brokers.put_back(0, &earlier, "");
        later
    });
    drop(record_alone(&cluster, "b", None, &OTHERS));
    cluster.restart_brokers_after(|brokers| brokers.put_back(0, &later, "KV_"));
    let nodes = [cluster.join("c")];
    wait_until_served(&nodes[0]);
    for project in &cluster.projects {
        check(&nodes, *project, 32);
        assert_eq!(nodes[0].order(*project, 7), Some(Status::Recorded));
    }
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_log_that_ends_before_the_sealed_events_is_not_written() {
    let place = tempfile::tempdir().unwrap();
    let files = NodeFiles { log_kept: Duration::from_secs(3600), ..files_in(place.path()) };
    let Some(mut cluster) = Cluster::start_with(Some(files)) else { return };
    let dir = record_alone(&cluster, "a", None, &[(0, 3)]);
    let earlier = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    let nodes = [cluster.rejoin("a", dir, |_| {})];
    wait_until_served(&nodes[0]);
    record(&cluster, &nodes, (3, 9));
    wait_until("all is sealed", || nodes[0].block_on(nodes[0].engine.seal_archive()).is_ok());
    nodes.into_iter().for_each(ClusterNode::stop);
    let later = cluster.restart_brokers_after(|brokers| brokers.copy(0));
    lose_events(&mut cluster, &earlier);
    let node = cluster.join("b");
    for _ in 0..2 {
        wait_until("all partitions with events are stopped", || stopped(&cluster, &node) == cluster.partitions());
        for partition in cluster.partitions() {
            let reason = node.block_on(resume(&cluster.addresses(), &Credentials::None, partition)).unwrap().unwrap();
            assert!(reason.contains("the files have events of messages up to"), "{reason}");
        }
    }
    wait_until("they still are", || stopped(&cluster, &node) == cluster.partitions());
    drop(node.leave());
    cluster.restart_brokers_after(|brokers| brokers.put_back(0, &later, ""));
    let nodes = [cluster.join("c")];
    wait_until_served(&nodes[0]);
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 9));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_partition_whose_confirmed_messages_are_lost_is_stopped() {
    let Some(cluster) = Cluster::start() else { return };
    let nodes: Vec<ClusterNode> = ["a", "b"].map(|name| cluster.join(name)).into();
    record(&cluster, &nodes, (0, 10));
    // Only an earlier owner knows the lost events.
    wait_until_nothing_moves(&nodes);
    let asking = runtime();
    let shown = || asking.block_on(status(&cluster.addresses(), &Credentials::None)).unwrap();
    std::thread::sleep(3 * AUDIT.every);
    assert!(shown().partitions.iter().all(|partition| partition.stopped.is_none()), "nothing is lost");
    let project = cluster.projects[0];
    let partition = partition_of(project);
    let stream = format!("EV_{partition:03}");
    asking.block_on(async {
        let context = async_nats::jetstream::new(async_nats::connect(cluster.addresses()).await.unwrap());
        context.get_stream(stream).await.unwrap().purge().await.unwrap();
    });
    let of_partition = || shown().partitions[usize::from(partition)].clone();
    wait_until("it is stopped", || of_partition().stopped.is_some());
    let stopped = of_partition();
    assert!(stopped.stopped.as_ref().unwrap().contains(&format!("of EV_{partition:03} is missing")), "{stopped:?}");
    assert_eq!(stopped.node, None);
    // No node takes it, and both report it. All other partitions are served.
    std::thread::sleep(2 * TIMING.leases.taken_after);
    assert!(nodes.iter().all(|node| !node.has(project) && node.users(project).is_none()));
    assert!(nodes.iter().all(|node| node.engine.owners().node_vitals().unwrap().stopped == [partition]));
    assert_eq!(nodes.iter().map(ClusterNode::serves).sum::<usize>(), usize::from(PARTITIONS) - 1);
    let other = *cluster.projects.iter().find(|other| partition_of(**other) != partition).unwrap();
    check(&nodes, other, 10);
    let resumed = |partition| asking.block_on(resume(&cluster.addresses(), &Credentials::None, partition)).unwrap();
    assert_eq!((resumed(partition), resumed(partition)), (stopped.stopped, None));
    wait_until("nodes know", || nodes.iter().all(|node| node.engine.owners().node_vitals().unwrap().stopped.is_empty()));
    nodes.into_iter().for_each(ClusterNode::stop);
}
