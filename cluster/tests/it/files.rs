//! Archives that follow their partitions: one node seals them, and the next one reads them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use headcount_actors::ArchivePolicy;
use headcount_actors::ingest::Status;
use headcount_cluster::drain::Drain;
use headcount_cluster::files::{Bucket, FilesError, SharedFiles};
use headcount_cluster::log::LogReader;
use headcount_cluster::{Credentials, StreamName};
use headcount_common::{PARTITIONS, SharedArchive, SharedArchiveError, partition_of};
use headcount_control::ProjectPatch;

use crate::node::{Cluster, ClusterNode, NOW, NodeFiles, check, record, wait_until};

/// Seals as soon as events are in checkpoints.
pub(crate) fn at_once() -> ArchivePolicy {
    ArchivePolicy { seal_after: Duration::from_millis(200), seal_events: 1, ..ArchivePolicy::default() }
}

pub(crate) fn files_in(place: &Path) -> NodeFiles {
    of_place(format!("file://{}", place.display()))
}

fn of_place(place: String) -> NodeFiles {
    NodeFiles { place, archive: at_once(), max_bytes: -1, log_kept: Duration::ZERO }
}

/// A place for files, and its directory; no directory if `HEADCOUNT_TEST_FILES` names another
/// place, such as an S3 bucket.
fn some_place() -> (NodeFiles, Option<tempfile::TempDir>) {
    match std::env::var("HEADCOUNT_TEST_FILES") {
        Ok(place) => (of_place(place), None),
        Err(_) => {
            let dir = tempfile::tempdir().unwrap();
            (files_in(dir.path()), Some(dir))
        }
    }
}

/// All files below a directory.
pub(crate) fn below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// The sequence of the first message of each partition with a project.
fn first_messages(cluster: &Cluster, node: &ClusterNode) -> Vec<u64> {
    cluster.partitions().into_iter().map(|partition| node.block_on(first_message(cluster, partition))).collect()
}

pub(crate) async fn first_message(cluster: &Cluster, partition: u16) -> u64 {
    let connection = cluster.connect().await;
    let name = StreamName::of_partition(partition);
    LogReader::open(&connection, &name.stream).await.unwrap().known_bounds().0
}

#[test]
fn a_node_without_anything_goes_on_from_what_others_sealed() {
    let (files, dir) = some_place();
    let Some(cluster) = Cluster::start_with(Some(files)) else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 20));
    wait_until("what is sealed has left the log", || first_messages(&cluster, &nodes[0]).iter().all(|first| *first > 2));
    let is_file = |path: &PathBuf| path.to_string_lossy().contains(".parquet.");
    assert!(dir.as_ref().is_none_or(|dir| below(dir.path()).iter().any(is_file)));
    // The next node has an empty disk, and the brokers no longer have the first events.
    nodes.push(cluster.join("b"));
    nodes.remove(0).kill();
    record(&cluster, &nodes, (20, 40));
    for project in &cluster.projects {
        check(&nodes, *project, 40);
        assert_eq!(nodes[0].order(*project, 5), Some(Status::Duplicate));
        assert_eq!(nodes[0].orders_by_a_scan(*project), 40, "read from the events themselves");
    }
    wait_until("the second one seals too", || first_messages(&cluster, &nodes[0]).iter().all(|first| *first > 12));
    nodes.push(cluster.join("c"));
    nodes.remove(0).stop();
    record(&cluster, &nodes, (40, 45));
    for project in &cluster.projects {
        check(&nodes, *project, 45);
        assert_eq!(nodes[0].orders_by_a_scan(*project), 45);
    }
    nodes.remove(0).stop();
}

#[test]
fn events_are_recorded_while_files_can_not_be_reached() {
    let place = tempfile::tempdir().unwrap();
    let (bucket, away) = (place.path().join("bucket"), place.path().join("away"));
    fs::create_dir(&bucket).unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(&bucket))) else { return };
    let nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (0, 5));
    wait_until("something is published", || !below(&bucket).is_empty());
    fs::rename(&bucket, &away).unwrap();
    // A file in place of the directory, so that nothing can be written there.
    fs::write(&bucket, "").unwrap();
    record(&cluster, &nodes, (5, 25));
    let kept = first_messages(&cluster, &nodes[0]);
    fs::remove_file(&bucket).unwrap();
    fs::rename(&away, &bucket).unwrap();
    wait_until("it goes on", || first_messages(&cluster, &nodes[0]).iter().zip(&kept).all(|(first, kept)| first > kept));
    for project in &cluster.projects {
        check(&nodes, *project, 25);
        assert_eq!(nodes[0].orders_by_a_scan(*project), 25);
    }
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn events_before_a_floor_leave_brokers_that_have_lost_earlier_ones() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(NodeFiles { archive: ArchivePolicy::default(), ..files_in(place.path()) }))
    else {
        return;
    };
    let node = cluster.join("a");
    wait_until("one node has all", || node.serves() == usize::from(PARTITIONS));
    record(&cluster, std::slice::from_ref(&node), (0, 10));
    wait_until("all is sealed", || node.block_on(node.engine.seal_archive()).is_ok());
    let project = cluster.projects[0];
    let first = |node: &ClusterNode| node.block_on(first_message(&cluster, partition_of(project)));
    let sealed = first(&node);
    assert!(sealed > 2, "what is sealed has left the log");
    // Later events would wait for many more before they are sealed.
    record(&cluster, std::slice::from_ref(&node), (10, 20));
    let organization = node.engine.registry().organizations()[0].id;
    let keeps = ProjectPatch { retention_days: Some(Some(30)), ..ProjectPatch::default() };
    node.blocking(move |engine| engine.registry().update_project(organization, project, keeps, NOW).map(drop)).unwrap();
    assert!(node.block_on(node.engine.ingest.apply_retention(project)).unwrap().is_some());
    assert_eq!(first(&node), sealed);
    let node = cluster.rejoin("a", node.leave(), |_| {});
    wait_until("it looks at the log, and has old events leave it", || first(&node) > sealed + 5);
    node.stop();
}

#[test]
fn files_that_others_can_read_leave_the_disk_and_are_read_all_the_same() {
    let place = tempfile::tempdir().unwrap();
    let archive = ArchivePolicy { cache_bytes: 0, ..at_once() };
    let Some(cluster) = Cluster::start_with(Some(NodeFiles { archive, ..files_in(place.path()) })) else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    let is_file = |path: &PathBuf| path.to_string_lossy().contains(".parquet");
    let kept = |node: &ClusterNode| below(&node.engine.data_dir().join("archive")).iter().filter(|path| is_file(path)).count();
    let leave = |node: &ClusterNode| {
        wait_until("what is published leaves the disk", || {
            drop(node.block_on(node.engine.seal_archive()));
            kept(node) == 0
        });
    };
    record(&cluster, &nodes, (0, 20));
    leave(&nodes[0]);
    // Files are fetched and removed at the same time.
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Acquire) {
                drop(nodes[0].block_on(nodes[0].engine.seal_archive()));
            }
        });
        for _ in 0..10 {
            for project in &cluster.projects {
                assert_eq!(nodes[0].orders_by_a_scan(*project), 20);
            }
        }
        has_ended.store(true, Ordering::Release);
    });
    // Its files of partitions that moved leave its disk, too.
    nodes.push(cluster.join("b"));
    wait_until("the other one has its part", || nodes.iter().all(|node| node.serves() >= 8));
    record(&cluster, &nodes, (20, 30));
    nodes.iter().for_each(leave);
    for project in &cluster.projects {
        check(&nodes, *project, 30);
    }
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn a_stream_that_fills_is_sealed_before_its_time() {
    let place = tempfile::tempdir().unwrap();
    let log_kept = Duration::from_secs(6 * 60 * 60);
    let files = NodeFiles { archive: ArchivePolicy::default(), max_bytes: 100_000, log_kept, ..files_in(place.path()) };
    let Some(cluster) = Cluster::start_with(Some(files)) else { return };
    let node = cluster.join("a");
    wait_until("one node has all", || node.serves() == usize::from(PARTITIONS));
    let project = cluster.projects[0];
    let first = || node.block_on(first_message(&cluster, partition_of(project)));
    let mut orders = 0;
    let began = std::time::Instant::now();
    // Far more than fits: without room, events are refused.
    while orders < 600 {
        assert!(began.elapsed() < Duration::from_secs(180), "{orders} orders are recorded, and the stream begins at {}", first());
        match node.order(project, orders) {
            Some(_) => orders += 1,
            None => std::thread::sleep(Duration::from_millis(100)),
        }
    }
    assert!(first() > 100, "{}", first());
    check(std::slice::from_ref(&node), project, orders);
    assert_eq!(node.orders_by_a_scan(project) as u64, orders);
    node.stop();
}

/// Such a partition does not move, because no other node could begin to write it. `cluster drain`
/// says so.
#[test]
fn a_partition_whose_stream_is_full_is_named() {
    let place = tempfile::tempdir().unwrap();
    let files = NodeFiles { max_bytes: 120_000, ..files_in(place.path()) };
    let Some(cluster) = Cluster::start_with(Some(files)) else { return };
    let node = cluster.join("a");
    wait_until("one node has all", || node.serves() == usize::from(PARTITIONS));
    let drain = node.block_on(Drain::open(&cluster.addresses(), &Credentials::None)).unwrap();
    let held = node.block_on(drain.held_by("a")).unwrap();
    assert_eq!(held.len(), usize::from(PARTITIONS));
    assert!(node.block_on(drain.full_of(&held)).unwrap().is_empty());
    // Nothing is sealed without the bucket, which a file replaces.
    let away = tempfile::tempdir().unwrap();
    fs::rename(place.path(), away.path().join("bucket")).unwrap();
    fs::write(place.path(), "").unwrap();
    let (project, sent) = (cluster.projects[0], AtomicU64::new(0));
    let order = || node.order(project, sent.fetch_add(1, Ordering::Relaxed));
    wait_until("its stream is full", || {
        let _sent: Vec<_> = (0..20).map(|_| order()).collect();
        node.block_on(drain.full_of(&held)).unwrap() == [partition_of(project)]
    });
    fs::remove_file(place.path()).unwrap();
    fs::rename(away.path().join("bucket"), place.path()).unwrap();
    wait_until("it has room again", || node.block_on(drain.full_of(&held)).unwrap().is_empty());
    assert!(order().is_some());
    node.stop();
}

#[test]
fn a_former_owner_publishes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let bucket = Bucket::open(&format!("file://{}", place.path().display())).unwrap();
    let open = async || {
        let files = SharedFiles::open(&cluster.connect().await, &cluster.record, &bucket, Duration::ZERO).await;
        Arc::new(files.unwrap())
    };
    let (former, next) = runtime.block_on(async { (open().await, open().await) });
    let partition = partition_of(cluster.projects[0]);
    let roots = tempfile::tempdir().unwrap();
    let root_of = |name: &str| roots.path().join(name);
    let catalog = headcount_archive::catalog::Catalog::default();
    runtime.block_on(former.take_over(partition, 5, &root_of("former"))).unwrap();
    catalog.advanced(10, &Default::default(), Default::default()).write(&root_of("former")).unwrap();
    former.publish(partition, &root_of("former"), &|| false).unwrap();
    // Taken over with the published files.
    runtime.block_on(next.take_over(partition, 9, &root_of("next"))).unwrap();
    let read = |name: &str| headcount_archive::catalog::Catalog::read(&root_of(name)).unwrap().sealed_until();
    assert_eq!(read("next"), 10);
    catalog.advanced(20, &Default::default(), Default::default()).write(&root_of("former")).unwrap();
    let refused = former.publish(partition, &root_of("former"), &|| false);
    assert!(matches!(refused, Err(SharedArchiveError::NotOwner(_))), "{refused:?}");
    let fenced = runtime.block_on(former.take_over(partition, 7, &root_of("former")));
    assert!(matches!(fenced, Err(FilesError::NotOwner(_))), "{fenced:?}");
    catalog.advanced(15, &Default::default(), Default::default()).write(&root_of("next")).unwrap();
    next.publish(partition, &root_of("next"), &|| false).unwrap();
    runtime.block_on(former.take_over(partition, 11, &root_of("former"))).unwrap();
    assert_eq!(read("former"), 15, "what it had not published is gone");
    // Without the bucket, a node with the list continues.
    let away = roots.path().join("away");
    fs::rename(place.path(), &away).unwrap();
    runtime.block_on(former.take_over(partition, 13, &root_of("former"))).unwrap();
    let missed = runtime.block_on(next.take_over(partition, 15, &root_of("next")));
    assert!(missed.is_ok(), "it published that list: {missed:?}");
    let missed = runtime.block_on(next.take_over(partition, 17, &root_of("another")));
    assert!(matches!(missed, Err(FilesError::Bucket(_))), "{missed:?}");
    fs::rename(&away, place.path()).unwrap();
}

/// A node that was suspended for days does not know yet that another node owns its partition. Its
/// own lists don't name that node's files.
#[test]
fn a_former_owner_deletes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let bucket = Bucket::open(&format!("file://{}", place.path().display())).unwrap();
    let open = async || SharedFiles::open(&cluster.connect().await, &cluster.record, &bucket, Duration::ZERO).await.unwrap();
    let (former, next) = runtime.block_on(async { (open().await, open().await) });
    let (partition, roots) = (partition_of(cluster.projects[0]), tempfile::tempdir().unwrap());
    let root_of = |name: &str| roots.path().join(name);
    runtime.block_on(former.take_over(partition, 5, &root_of("former"))).unwrap();
    runtime.block_on(next.take_over(partition, 9, &root_of("next"))).unwrap();
    let catalog = headcount_archive::catalog::Catalog::default();
    catalog.advanced(10, &Default::default(), Default::default()).write(&root_of("next")).unwrap();
    next.publish(partition, &root_of("next"), &|| false).unwrap();
    let objects = || below(&place.path().join(cluster.record.incarnation.to_string()));
    let written = objects();
    let days_ago = std::time::SystemTime::now() - Duration::from_secs(3 * 24 * 60 * 60);
    written.iter().for_each(|path| fs::File::open(path).unwrap().set_modified(days_ago).unwrap());
    // Without a new one, this machine's clock may be ahead.
    fs::write(written[0].with_file_name("new"), "").unwrap();
    let written = objects();
    let refused = former.publish(partition, &root_of("former"), &|| false);
    assert!(matches!(refused, Err(SharedArchiveError::NotOwner(_))), "{refused:?}");
    assert_eq!(objects(), written);
    // The owner does: nothing names this file.
    let unnamed = written[0].with_file_name("unnamed");
    fs::write(&unnamed, "").unwrap();
    fs::File::open(&unnamed).unwrap().set_modified(days_ago).unwrap();
    runtime.block_on(next.take_over(partition, 11, &root_of("next"))).unwrap();
    next.publish(partition, &root_of("next"), &|| false).unwrap();
    assert_eq!(objects(), written);
}

/// The log loses published events, so a damaged file must not be published.
#[test]
fn a_damaged_file_is_not_published() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let node = cluster.join("a");
    wait_until("one node has all", || node.serves() == usize::from(PARTITIONS));
    record(&cluster, std::slice::from_ref(&node), (0, 10));
    wait_until("all is published", || node.block_on(node.engine.seal_archive()).is_ok());
    let files =
        |dir: &Path| below(dir).into_iter().filter(|path| path.to_string_lossy().contains(".parquet")).collect::<Vec<_>>();
    let published = files(place.path());
    let away = tempfile::tempdir().unwrap();
    fs::rename(place.path(), away.path().join("bucket")).unwrap();
    fs::write(place.path(), "").unwrap();
    let before = files(&node.engine.data_dir().join("archive"));
    record(&cluster, std::slice::from_ref(&node), (10, 20));
    let new = || -> Vec<PathBuf> {
        let all = files(&node.engine.data_dir().join("archive"));
        all.into_iter().filter(|path| !before.contains(path) && !path.to_string_lossy().ends_with(".tmp")).collect()
    };
    wait_until("it is sealed here", || {
        drop(node.block_on(node.engine.seal_archive()));
        new().len() >= cluster.projects.len()
    });
    for path in new() {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        fs::write(&path, bytes).unwrap();
    }
    fs::remove_file(place.path()).unwrap();
    fs::rename(away.path().join("bucket"), place.path()).unwrap();
    for _ in 0..5 {
        let sealed = node.block_on(node.engine.seal_archive());
        assert!(sealed.is_err(), "{sealed:?}");
    }
    assert_eq!(files(place.path()), published);
    // Unpublished files are dropped when the partition is taken over again, and sealed again from
    // the log.
    let node = cluster.rejoin("a", node.leave(), |_| {});
    wait_until("all is published again", || {
        node.block_on(node.engine.seal_archive()).is_ok() && files(place.path()).len() > published.len()
    });
    for project in &cluster.projects {
        assert_eq!(node.orders_by_a_scan(*project), 20);
    }
    node.stop();
}

#[test]
fn all_nodes_keep_files_in_one_place() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(cluster) = Cluster::start_with(None) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let open = |dir: &Path| {
        let bucket = Bucket::open(&format!("file://{}", dir.display())).unwrap();
        runtime.block_on(async { SharedFiles::open(&cluster.connect().await, &cluster.record, &bucket, Duration::ZERO).await })
    };
    let place = || runtime.block_on(async { SharedFiles::place(&cluster.connect().await).await.unwrap() });
    assert_eq!(place(), None);
    open(one.path()).unwrap();
    assert_eq!(place().unwrap(), format!("file://{}", one.path().display()));
    open(one.path()).unwrap();
    let error = open(other.path()).unwrap_err();
    assert!(matches!(error, FilesError::Elsewhere { .. }), "{error}");
}
