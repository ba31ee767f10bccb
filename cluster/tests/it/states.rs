//! Saved states that one node publishes, and with which the next owner begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headcount_actors::ArchivePolicy;
use headcount_actors::domain::intake::admission::DropReason;
use headcount_actors::ingest::Status;
use headcount_cluster::StreamName;
use headcount_cluster::files::StateTiming;
use headcount_cluster::log::LogReader;
use headcount_common::PARTITIONS;
use headcount_control::ProjectPatch;

use crate::files::{below, files_in};
use crate::node::{Cluster, ClusterNode, NOW, NodeFiles, check, record, wait_until, wait_until_nothing_moves};

/// Publishes saved states at once, and fetches any newer one.
pub(crate) const AT_ONCE: StateTiming = StateTiming {
    looked_every: Duration::from_millis(100),
    least: Duration::from_millis(100),
    messages: 1,
    most: Duration::from_millis(100),
    worth_fetching: 0,
};

/// Seals nothing.
pub(crate) fn without_archive(place: &Path) -> NodeFiles {
    NodeFiles {
        place: format!("file://{}", place.display()),
        archive: ArchivePolicy::default(),
        max_bytes: -1,
        log_kept: Duration::from_secs(600),
    }
}

/// The positions of the published states of the partitions with a project, from their pointers.
fn published(cluster: &Cluster, place: &Path) -> Vec<u64> {
    let incarnation = place.join(cluster.record.incarnation.to_string());
    let of_partition = |partition: u16| {
        let dir = incarnation.join(format!("states/{partition:02}"));
        let position = |path: PathBuf| -> Option<u64> {
            let list: serde_json::Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
            list["position"].as_u64()
        };
        let lists = fs::read_dir(dir).into_iter().flatten().map(|entry| entry.unwrap().path());
        lists.filter(|path| path.extension().is_some_and(|extension| extension == "json")).filter_map(position).max().unwrap_or(0)
    };
    cluster.partitions().into_iter().map(of_partition).collect()
}

/// The sequence of the last message of each partition with a project.
async fn last_messages(cluster: &Cluster) -> Vec<u64> {
    let connection = cluster.connect().await;
    let mut last = Vec::new();
    for partition in cluster.partitions() {
        let reader = LogReader::open(&connection, &StreamName::of_partition(partition).stream).await.unwrap();
        last.push(reader.known_bounds().1);
    }
    last
}

/// Waits until all events of the partitions with a project are published.
pub(crate) fn wait_until_published(cluster: &Cluster, place: &Path, node: &ClusterNode) {
    let last = node.block_on(last_messages(cluster));
    wait_until("everything is published", || {
        published(cluster, place).iter().zip(&last).all(|(position, last)| position >> 13 == *last)
    });
}

/// Removes everything but the last message of each partition with a project, as if it were sealed.
async fn purge(cluster: &Cluster) {
    let context = async_nats::jetstream::new(async_nats::connect(cluster.addresses()).await.unwrap());
    let names = cluster.partitions().into_iter().map(|partition| StreamName::of_partition(partition).stream);
    for (stream, last) in names.zip(last_messages(cluster).await) {
        context.get_stream(stream).await.unwrap().purge().sequence(last).await.unwrap();
    }
}

#[test]
fn a_new_owner_begins_with_the_published_state() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(without_archive(place.path()))) else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 20));
    wait_until_published(&cluster, place.path(), &nodes[0]);
    nodes[0].block_on(purge(&cluster));
    // It can only have the first events from the state.
    nodes.push(cluster.join("b"));
    nodes.remove(0).kill();
    record(&cluster, &nodes, (20, 30));
    for project in &cluster.projects {
        check(&nodes, *project, 30);
        assert_eq!(nodes[0].order(*project, 5), Some(Status::Duplicate));
    }
    // A node that stops publishes its unpublished state.
    let third = cluster.join("c");
    nodes.remove(0).stop();
    nodes.push(third);
    record(&cluster, &nodes, (30, 35));
    for project in &cluster.projects {
        check(&nodes, *project, 35);
        assert_eq!(nodes[0].order(*project, 25), Some(Status::Duplicate));
    }
    nodes.remove(0).stop();
}

#[test]
fn a_state_that_is_missing_or_damaged_is_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(without_archive(place.path()))) else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 10));
    wait_until_published(&cluster, place.path(), &nodes[0]);
    let states = place.path().join(cluster.record.incarnation.to_string()).join("states");
    for (number, partition) in fs::read_dir(states).unwrap().enumerate() {
        for object in fs::read_dir(partition.unwrap().path()).unwrap() {
            let path = object.unwrap().path();
            match number % 3 {
                0 => fs::remove_file(path).unwrap(),
                1 => fs::write(path, "something else").unwrap(),
                // Truncated in the middle.
                _ => fs::write(&path, &fs::read(&path).unwrap()[..20]).unwrap(),
            }
        }
    }
    nodes.push(cluster.join("b"));
    nodes.remove(0).kill();
    record(&cluster, &nodes, (10, 15));
    for project in &cluster.projects {
        check(&nodes, *project, 15);
        assert_eq!(nodes[0].order(*project, 5), Some(Status::Duplicate));
    }
    wait_until_published(&cluster, place.path(), &nodes[0]);
    nodes.remove(0).stop();
}

/// A node had a project and a checkpoint of it. Another one wrote a base since, and its published
/// state is gone.
#[test]
fn an_older_checkpoint_gives_way_to_the_base_of_another_node() {
    let place = tempfile::tempdir().unwrap();
    // A checkpoint is compared with the log, which must have its last message.
    let files = NodeFiles { log_kept: Duration::from_secs(600), ..files_in(place.path()) };
    let Some(cluster) = Cluster::start_with(Some(files)) else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 10));
    nodes.push(cluster.join("b"));
    wait_until_nothing_moves(&nodes);
    wait_until("both have some", || nodes.iter().all(|node| node.serves() > 10));
    let moved = cluster.projects.iter().copied().find(|project| nodes[1].has(*project)).expect("one of them has moved");
    record(&cluster, &nodes, (10, 20));
    let organization = nodes[1].engine.registry().organizations()[0].id;
    nodes[1].blocking(move |engine| {
        let patch = ProjectPatch { retention_days: Some(Some(1)), ..ProjectPatch::default() };
        engine.registry().update_project(organization, moved, patch, NOW).map(drop).unwrap();
    });
    assert!(nodes[1].block_on(nodes[1].engine.ingest.apply_retention(moved)).unwrap().is_some());
    let has_base = |path: &PathBuf| path.to_string_lossy().contains(&format!("project={moved}/state-"));
    wait_until("there is a base", || below(place.path()).iter().any(has_base));
    wait_until("old events are gone", || nodes[1].engine.vitals().retention_pending == 0);
    nodes.remove(1).kill();
    let states = place.path().join(cluster.record.incarnation.to_string()).join("states");
    fs::rename(&states, place.path().join("former-states")).unwrap();
    // Later states can't be published.
    fs::write(&states, "").unwrap();
    wait_until("the first one has all again", || nodes[0].serves() == usize::from(PARTITIONS));
    for project in &cluster.projects {
        check(&nodes, *project, 20);
        let again = if *project == moved { Status::Dropped(DropReason::Retention) } else { Status::Duplicate };
        assert_eq!(nodes[0].order(*project, 15), Some(again));
    }
    assert!(!nodes[0].engine.vitals().damage_found, "its checkpoint is as good as before");
    nodes.remove(0).stop();
}
