//! Backups of a cluster whose control data change meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::queries::UniqueUsersQuery;
use headcount_actors::domain::time::{Day, Window};
use headcount_actors::engine::{ErasureError, ErasureState, ErasureSubject};
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{Engine, EngineConfig, NodesBackup};
use headcount_common::PARTITIONS;
use headcount_control::ProjectPatch;
use headcount_storage::backup::{Backup, BackupFolder};
use tokio::runtime::{Handle, Runtime};

use crate::erasure::{MARK, organization, record, sealed_projects, subject, track, with_mark};
use crate::files::{at_once, below, files_in};
use crate::node::{BASE_MS, Cluster, ClusterNode, NOW, runtime, wait_until};

/// Writes a backup to a directory, and calls `during` before it asks for the page with this number.
/// Returns the number of pages.
fn write(
    node: &ClusterNode,
    backup: NodesBackup,
    to: &Path,
    page: usize,
    during: impl Fn(&Engine) + Send + Sync + 'static,
) -> usize {
    let (pages, to) = (Arc::<AtomicUsize>::default(), to.to_owned());
    let asked = Arc::clone(&pages);
    node.blocking(move |engine: &Engine| {
        let is_over = || {
            if asked.fetch_add(1, Ordering::SeqCst) == page {
                elsewhere(&|| during(engine));
            }
            false
        };
        backup.write(&mut BackupFolder::create(&to, None).unwrap(), &is_over).unwrap();
    });
    pages.load(Ordering::SeqCst)
}

/// Runs blocking work on a new thread. A page may be requested again, which must happen where
/// blocking is allowed.
fn elsewhere(something: &(dyn Fn() + Sync)) {
    let runtime = Handle::current();
    let run = || {
        let _guard = runtime.enter();
        something();
    };
    std::thread::scope(|scope| scope.spawn(run).join().unwrap());
}

fn users(runtime: &Runtime, engine: &Engine, project: ProjectId) -> u64 {
    let day = Day::parse("2024-03-01").unwrap();
    let query = UniqueUsersQuery { window: Window { start: day, end: day } };
    runtime.block_on(engine.ask(project, query)).map_or(0, |answer| answer.total)
}

fn begin(node: &ClusterNode) -> NodesBackup {
    node.blocking(|engine: &Engine| engine.begin_nodes_backup()).unwrap()
}

/// Erases an identity, retrying until all nodes can answer.
fn erase_through(engine: &Engine, organization: OrganizationId, subject: &ErasureSubject) -> u64 {
    loop {
        match engine.erase(organization, subject) {
            Ok(number) => return number,
            Err(ErasureError::Unavailable(why)) => println!("not erased yet: {why}"),
            Err(error) => panic!("{error}"),
        }
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// Erases a person with an event after an opt-in.
fn erase_and_opt_in(nodes: &[ClusterNode], project: ProjectId) {
    let organization = organization(&nodes[0]);
    nodes[1].blocking(move |engine: &Engine| {
        let subject = ErasureSubject::User("u1".to_owned());
        erase_through(engine, organization, &subject);
        engine.opt_in(organization, &subject).unwrap();
    });
    let again = NewEvent::new("visit").user("u1").external_id("again").at_ms(BASE_MS);
    assert_eq!(track(nodes, project, &again), Status::Recorded);
}

/// Sets the retention of a project in days.
fn keep_for(node: &ClusterNode, project: ProjectId, days: u32) {
    let organization = organization(node);
    node.blocking(move |engine: &Engine| {
        let patch = ProjectPatch { retention_days: Some(Some(days)), ..ProjectPatch::default() };
        engine.registry().update_project(organization, project, patch, NOW).unwrap();
    });
}

/// Starts a second node, which takes over some partitions of the first.
fn share(cluster: &Cluster, nodes: &mut Vec<ClusterNode>) {
    nodes.push(cluster.join("b"));
    let has_all = || nodes.iter().map(ClusterNode::serves).sum::<usize>() == usize::from(PARTITIONS);
    wait_until("the partitions are shared", || has_all() && nodes.iter().all(|node| node.serves() > 10));
}

/// Opens an engine on a directory into which it restores a backup.
fn open_restored(backup: &Path, data: &Path) -> Engine {
    let opened = Backup::open(backup).unwrap();
    opened.check().unwrap();
    headcount_actors::backup::restore(&opened, data, None).unwrap();
    let mut config = EngineConfig { shards: 1, min_free_bytes: 1 << 20, ..EngineConfig::new(data) };
    (config.archive, config.checkpoints.interval) = (at_once(), Duration::from_millis(500));
    Engine::open(config).unwrap()
}

#[test]
fn a_server_erases_and_deletes_what_was_erased_and_deleted_during_the_backup_that_it_has() {
    erases_and_deletes(&[]);
}

#[test]
fn a_server_erases_and_deletes_it_in_files_that_were_copied() {
    erases_and_deletes(&[0, 2]);
}

/// A server on a backup of three projects. The projects `with_retention` have a retention. A person
/// is erased and a project is deleted during the backup.
fn erases_and_deletes(with_retention: &[usize]) {
    let (place, backups) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let mut nodes = vec![cluster.join("a")];
    // The retention keeps all their events. But since events may be removed at any time, their
    // files are copied.
    with_retention.iter().for_each(|project| keep_for(&nodes[0], cluster.projects[*project], 3_660));
    record(&cluster, &nodes, 0..6);
    let deleted = cluster.projects[2];
    let of_deleted = NewEvent::new("visit").user(format!("{MARK}-deleted")).external_id("x").at_ms(BASE_MS);
    assert_eq!(track(&nodes, deleted, &of_deleted), Status::Recorded);
    wait_until("it is sealed in all projects", || sealed_projects(place.path()) == 3);
    record(&cluster, &nodes, 6..8);
    share(&cluster, &mut nodes);
    let (first, second) = (cluster.projects[0], cluster.projects[1]);
    erase_and_opt_in(&nodes, first);
    let organization = organization(&nodes[0]);
    let number = Arc::<AtomicU64>::default();
    // Just before the last page. The number of pages is known only afterwards, and changes: events
    // are sealed, and some pages are requested again.
    let (mut page, mut changed, mut attempts) = (usize::MAX, PathBuf::new(), 0);
    while number.load(Ordering::SeqCst) == 0 {
        attempts += 1;
        assert!(attempts <= 10, "each backup asks for fewer pages than the one before");
        let erased_as = Arc::clone(&number);
        let change = move |engine: &Engine| {
            erased_as.store(erase_through(engine, organization, &subject()), Ordering::SeqCst);
            engine.delete_project(organization, deleted, NOW).unwrap();
        };
        changed = backups.path().join(format!("before-{page}"));
        let _ = fs::remove_dir_all(&changed);
        let pages = write(&nodes[1], begin(&nodes[1]), &changed, page, change);
        assert!(pages >= 3, "{pages}");
        page = pages - 1;
    }
    let number = number.load(Ordering::SeqCst);
    assert!(!with_mark(&changed).is_empty(), "what was read before has events of the identity");
    for (at, project) in cluster.projects[..3].iter().enumerate() {
        let list = changed.join(format!("archive/project={project}/manifest.json"));
        assert_eq!(list.exists(), with_retention.contains(&at), "{project}");
    }
    nodes.into_iter().for_each(ClusterNode::stop);

    let data = backups.path().join("data");
    let (runtime, engine) = (runtime(), open_restored(&changed, &data));
    assert!(engine.registry().policy(deleted).is_none());
    wait_until("the erasure is done", || engine.erasure(organization, number) == Some(ErasureState::Done));
    wait_until("the deletion has ended", || engine.vitals().deletions_pending == 0);
    // One of them still has an event of the person who was opted in.
    assert_eq!([first, second].map(|project| users(&runtime, &engine, project)), [8, 7]);
    let event = NewEvent::new("visit").user(format!("{MARK}-user")).external_id("later").at_ms(BASE_MS);
    let receipt = runtime.block_on(engine.track(first, &event)).unwrap();
    assert!(matches!(receipt.status, Status::Dropped(_)), "{:?}", receipt.status);
    wait_until("nothing has them", || with_mark(&data).is_empty());
    runtime.block_on(engine.close());
}

#[test]
fn no_events_are_removed_that_a_backup_has_not_read() {
    let (place, backups) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let mut nodes = vec![cluster.join("a")];
    record(&cluster, &nodes, 0..6);
    wait_until("all is sealed", || sealed_projects(place.path()) == 2);
    share(&cluster, &mut nodes);
    let [first, second] = [cluster.projects[0], cluster.projects[1]];
    // The node without the first project begins it, and has all partitions when it continues.
    nodes.sort_by_key(|node| !node.has(first));
    let backup = begin(&nodes[1]);
    keep_for(&nodes[0], first, 1);
    // Its owner raises the floor. The owner may be the other node by now: partitions move until
    // both have as many.
    let raised = |node: &ClusterNode| {
        let floor = node.block_on(node.engine.ingest.apply_retention(first));
        floor.inspect_err(|error| println!("the floor is not raised yet: {error}")).is_ok_and(|floor| floor.is_some())
    };
    wait_until("the floor is raised", || nodes.iter().any(raised));
    nodes.remove(0).stop();
    wait_until("the other one has its partitions", || nodes[0].serves() == usize::from(PARTITIONS));
    let has_base = || below(place.path()).iter().any(|path| path.to_string_lossy().contains(&format!("project={first}/state-")));
    // Longer than bases are held back after a takeover.
    for _ in 0..40 {
        assert!(!has_base(), "events may be removed");
        std::thread::sleep(Duration::from_millis(500));
    }
    let written = backups.path().join("backup");
    write(&nodes[0], backup, &written, usize::MAX, |_| ());
    wait_until("events may be removed afterwards", has_base);
    nodes.into_iter().for_each(ClusterNode::stop);

    let (runtime, engine) = (runtime(), open_restored(&written, &backups.path().join("data")));
    assert_eq!([first, second].map(|project| users(&runtime, &engine, project)), [7, 7]);
    runtime.block_on(engine.close());
}
