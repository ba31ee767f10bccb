//! Projects that are deleted while their partitions move: they are gone from every answer at once,
//! and from every disk, the bucket and the log soon.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::domain::ids::ProjectId;
use headcount_actors::ingest::{Field, NewEvent};
use headcount_cluster::StreamName;
use headcount_cluster::log::LogReader;
use headcount_common::partition_of;
use headcount_control::RegistryError;
use parking_lot::Mutex;

use crate::barrier::Barrier;
use crate::compaction::compact;
use crate::files::{below, files_in, first_message};
use crate::node::{BASE_MS, Cluster, ClusterNode, NOW, check, record, wait_until};

/// A text that only events of the deleted project have.
const MARK: &str = "zanzibar";

/// Records events with the mark in a project, at its owner.
fn mark(nodes: &[ClusterNode], project: ProjectId, numbers: std::ops::Range<usize>) {
    for number in numbers {
        let event =
            NewEvent::new("visit").user(format!("{MARK}-u{number}")).external_id(format!("{MARK}-o{number}")).at_ms(BASE_MS);
        let event = event.with(Field::Url, format!("https://shop.example/{MARK}/{number}"));
        let is_recorded = |node: &ClusterNode| node.has(project) && node.block_on(node.engine.track(project, &event)).is_ok();
        wait_until("an event with the mark is recorded", || nodes.iter().any(is_recorded));
    }
}

/// The files below a directory that have the mark, or belong to the project.
fn with_mark(dir: &Path, project: ProjectId) -> Vec<String> {
    let has_mark = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes())
    };
    let folder = format!("project={project}");
    let found = below(dir).into_iter().filter(|path| path.to_string_lossy().contains(&folder) || has_mark(path));
    found.map(|path| path.display().to_string()).collect()
}

/// Deletes a project at a node, which need not own it.
fn delete(node: &ClusterNode, project: ProjectId) {
    let registry = node.engine.registry();
    let organization = registry.organizations()[0].id;
    node.engine.delete_project(organization, project, NOW).unwrap();
    let again = node.engine.delete_project(organization, project, NOW);
    assert!(matches!(again, Err(RegistryError::NotFound { .. })), "{again:?}");
}

/// Checks that no node takes or counts events of a project.
fn assert_counts_nowhere(nodes: &[ClusterNode], project: ProjectId) {
    for node in nodes {
        assert!(node.engine.registry().policy(project).is_none(), "a node does not know that it is deleted");
        assert!(node.engine.admission.admit(project, None, 100).is_err(), "a node takes its events");
        assert!(node.users(project).is_none_or(|users| users == 0), "a node counts its users");
    }
}

fn wait_until_ended(nodes: &[ClusterNode]) {
    wait_until("the deletion ends at every node", || nodes.iter().all(|node| node.engine.vitals().deletions_pending == 0));
}

pub(crate) async fn last_message(cluster: &Cluster, partition: u16) -> u64 {
    let connection = cluster.connect().await;
    LogReader::open(&connection, &StreamName::of_partition(partition).stream).await.unwrap().known_bounds().1
}

#[test]
fn a_deleted_project_leaves_every_disk_the_bucket_and_the_log() {
    let place = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let project = cluster.projects[0];
    let mut nodes = vec![cluster.join("a")];
    record(&cluster, &nodes, (0, 5));
    mark(&nodes, project, 0..20);
    wait_until("it is sealed", || !with_mark(place.path(), project).is_empty());
    wait_until("it is in a checkpoint", || with_mark(nodes[0].dir(), project).iter().any(|path| path.contains("/tables/")));
    // Two nodes have a checkpoint and files of it, and are away.
    nodes.push(cluster.join("b"));
    let first = nodes.remove(0).leave();
    mark(&nodes, project, 20..30);
    assert!(nodes[0].orders_by_a_scan(project) >= 35, "read from the files");
    nodes.push(cluster.join("c"));
    let second = nodes.remove(0).leave();
    nodes.push(cluster.join("d"));
    let owner = |nodes: &[ClusterNode]| nodes.iter().position(|node| node.has(project));
    wait_until("the partitions are shared", || nodes.iter().all(|node| node.serves() > 10) && owner(&nodes).is_some());
    mark(&nodes, project, 30..35);
    let other = 1 - owner(&nodes).unwrap();
    let last = nodes[0].block_on(last_message(&cluster, partition_of(project)));
    delete(&nodes[other], project);
    assert_counts_nowhere(&nodes, project);
    cluster.projects.remove(0);
    record(&cluster, &nodes, (5, 10));
    wait_until_ended(&nodes);
    assert_counts_nowhere(&nodes, project);
    assert!(nodes[0].block_on(first_message(&cluster, partition_of(project))) > last, "the log has its events");
    assert_eq!(with_mark(place.path(), project), Vec::<String>::new());
    for node in &nodes {
        assert_eq!(with_mark(node.dir(), project), Vec::<String>::new());
    }
    // The first comes back, while other nodes own the partitions.
    assert!(!with_mark(second.path(), project).is_empty());
    nodes.push(cluster.rejoin("b", second, |_| {}));
    wait_until_ended(&nodes);
    assert_eq!(with_mark(nodes[2].dir(), project), Vec::<String>::new());
    // The second comes back alone, and gets all of them at once. By now, the deletion is no longer
    // in the control log.
    compact(&cluster, nodes[0].engine.registry());
    nodes.into_iter().for_each(ClusterNode::stop);
    assert!(!with_mark(first.path(), project).is_empty());
    let nodes = vec![cluster.rejoin("a", first, |_| {})];
    wait_until("it has the partition", || nodes[0].has(project));
    assert_counts_nowhere(&nodes, project);
    for project in &cluster.projects {
        check(&nodes, *project, 10);
    }
    wait_until_ended(&nodes);
    assert_eq!(with_mark(nodes[0].dir(), project), Vec::<String>::new());
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn another_owner_goes_on_wherever_the_former_one_stopped() {
    let steps = [
        "archive of a deleted project removed",
        "tables without a deleted project written",
        "part of a deleted project removed",
        "catalog replaced",
        "archive published",
        "deletion finished",
    ];
    let place = tempfile::tempdir().unwrap();
    let Some(mut cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    for step in steps {
        let (project, barrier) = (cluster.projects.remove(0), Arc::<Barrier>::default());
        let (held_up, armed) = (Arc::clone(&barrier), Arc::new(Mutex::new(false)));
        let is_armed = Arc::clone(&armed);
        let probe = move |done: &'static str| {
            if done == step && *is_armed.lock() {
                held_up.pass();
            }
        };
        let first = cluster.join_with("a", |config| config.archive_probe = Some(Arc::new(probe)));
        wait_until("the first node has it", || first.has(project));
        let mut nodes = vec![first];
        mark(&nodes, project, 0..5);
        wait_until("it is sealed", || !with_mark(place.path(), project).is_empty());
        mark(&nodes, project, 5..10);
        nodes.push(cluster.join("b"));
        *armed.lock() = true;
        delete(&nodes[1], project);
        assert_counts_nowhere(&nodes, project);
        let has_moved = || nodes[1].has(project);
        wait_until("the first node stops at the step", || barrier.is_reached() || has_moved());
        let first = nodes.remove(0);
        let zombie = first.engine.clone();
        first.kill();
        wait_until("the second node has it", || nodes[0].has(project));
        assert_counts_nowhere(&nodes, project);
        wait_until_ended(&nodes);
        // The former owner continues its work.
        barrier.open();
        std::thread::sleep(Duration::from_millis(500));
        assert_counts_nowhere(&nodes, project);
        assert_eq!(with_mark(place.path(), project), Vec::<String>::new(), "{step}");
        assert_eq!(with_mark(nodes[0].dir(), project), Vec::<String>::new(), "{step}");
        drop(zombie);
        nodes.into_iter().for_each(ClusterNode::stop);
    }
}

#[test]
fn without_a_place_for_files_a_deleted_project_counts_nowhere_and_its_deletion_stays_pending() {
    let Some(mut cluster) = Cluster::start_with(None) else { return };
    let project = cluster.projects.remove(0);
    let mut nodes = vec![cluster.join("a")];
    wait_until("the first node has it", || nodes[0].has(project));
    mark(&nodes, project, 0..5);
    nodes.push(cluster.join("b"));
    delete(&nodes[1], project);
    assert_counts_nowhere(&nodes, project);
    record(&cluster, &nodes, (0, 3));
    nodes.remove(0).kill();
    wait_until("the second node has it", || nodes[0].has(project));
    assert_counts_nowhere(&nodes, project);
    assert_eq!(nodes[0].engine.vitals().deletions_pending, 1, "the brokers have its events");
    for project in &cluster.projects {
        check(&nodes, *project, 3);
    }
    nodes.into_iter().for_each(ClusterNode::stop);
}
