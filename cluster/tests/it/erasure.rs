//! Identities that are erased while their partitions move: they are gone from every answer, and
//! from every disk, the bucket and the log soon.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use headcount_actors::Engine;
use headcount_actors::domain::ids::{OrganizationId, ProjectId};
use headcount_actors::domain::intake::admission::DropReason;
use headcount_actors::domain::versions::Depends;
use headcount_actors::engine::{ErasureError, ErasureState, ErasureSubject};
use headcount_actors::ingest::{Field, NewEvent, Status};
use headcount_cluster::Credentials;
use headcount_cluster::drain::Drain;
use headcount_common::{PARTITIONS, partition_of};
use parking_lot::Mutex;

use crate::barrier::Barrier;
use crate::deletion::last_message;
use crate::files::{below, files_in, first_message};
use crate::lost::orders_by_a_view;
use crate::node::{BASE_MS, Cluster, ClusterNode, wait_until, wait_until_nothing_moves};

/// A text that only data of the erased identity have.
pub(crate) const MARK: &str = "zanzibar";

pub(crate) fn subject() -> ErasureSubject {
    ErasureSubject::User(format!("{MARK}-user"))
}

/// Records an event at the owner of the project, once it has the changes of other nodes. Returns
/// the outcome.
pub(crate) fn track(nodes: &[ClusterNode], project: ProjectId, event: &NewEvent) -> Status {
    let status = Mutex::new(None);
    wait_until("an event is recorded", || {
        let mut owners = nodes.iter().filter(|node| node.has(project) && node.engine.owners().is_live());
        let recorded = owners.find_map(|node| node.block_on(node.engine.track(project, event)).ok());
        *status.lock() = recorded.map(|receipt| receipt.status);
        status.lock().is_some()
    });
    status.into_inner().unwrap()
}

/// An event of the identity. Half of them have its user, and half an anonymous id that the first
/// event linked.
fn marked(number: usize) -> NewEvent {
    let event = NewEvent::new("visit").external_id(format!("{MARK}-o{number}")).at_ms(BASE_MS);
    let event = event.with(Field::Url, format!("https://shop.example/{MARK}/{number}"));
    let anonymous = format!("{MARK}-anonymous");
    match number % 2 {
        0 => event.user(format!("{MARK}-user")).anonymous(anonymous),
        _ => event.anonymous(anonymous),
    }
}

/// Records the same events for a person and for others.
pub(crate) fn record(cluster: &Cluster, nodes: &[ClusterNode], numbers: std::ops::Range<usize>) {
    for project in &cluster.projects[..2] {
        for number in numbers.clone() {
            track(nodes, *project, &marked(number));
            let other = NewEvent::new("visit").user(format!("u{number}")).external_id(format!("o{number}")).at_ms(BASE_MS);
            track(nodes, *project, &other);
        }
    }
}

/// The files below a directory that have the mark.
pub(crate) fn with_mark(dir: &Path) -> Vec<String> {
    let has_mark = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(MARK.len()).any(|window| window == MARK.as_bytes())
    };
    below(dir).into_iter().filter(|path| has_mark(path)).map(|path| path.display().to_string()).collect()
}

/// The number of projects that have files with the mark.
pub(crate) fn sealed_projects(dir: &Path) -> usize {
    let files = with_mark(dir);
    let folders: BTreeSet<_> =
        files.iter().filter_map(|file| Path::new(file).ancestors().find(|dir| is_of_project(dir))).collect();
    folders.len()
}

fn is_of_project(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name.to_string_lossy().starts_with("project="))
}

pub(crate) fn organization(node: &ClusterNode) -> OrganizationId {
    node.engine.registry().organizations()[0].id
}

/// Erases the identity through a node, retrying until all nodes can answer.
fn erase(node: &ClusterNode) -> u64 {
    let (organization, number) = (organization(node), Mutex::new(0));
    wait_until("it is erased", || match node.blocking(move |engine| engine.erase(organization, &subject())) {
        Ok(erased) => {
            *number.lock() = erased;
            true
        }
        Err(ErasureError::Unavailable(why)) => {
            println!("not erased yet: {why}");
            std::thread::sleep(Duration::from_millis(500));
            false
        }
        Err(error) => panic!("{error}"),
    });
    number.into_inner()
}

fn state(node: &ClusterNode, number: u64) -> Option<ErasureState> {
    node.engine.erasure(organization(node), number)
}

fn wait_until_done(nodes: &[ClusterNode], number: u64) {
    wait_until("the erasure is done for every node", || nodes.iter().all(|node| state(node, number) == Some(ErasureState::Done)));
}

/// Waits until the owners count `users` people in the first two projects, by figures and by scans.
fn wait_until_counted(cluster: &Cluster, nodes: &[ClusterNode], users: usize) {
    for project in &cluster.projects[..2] {
        let is_counted = |node: &ClusterNode| {
            node.users(*project) == Some(users as u64) && node.has(*project) && node.orders_if_here(*project) == Some(users)
        };
        wait_until("the owner counts nobody who is erased", || nodes.iter().any(is_counted));
    }
}

/// The parts of the entity tags of the first two projects, from their owners.
fn versions(cluster: &Cluster, nodes: &[ClusterNode]) -> Vec<Option<(u128, u64)>> {
    let version = |node: &ClusterNode, project| node.block_on(node.engine.version(project, &Depends::Everything)).ok();
    let owner = |project: &ProjectId| nodes.iter().find(|node| node.has(*project)).and_then(|node| version(node, *project));
    cluster.projects[..2].iter().map(owner).collect()
}

fn has_all(nodes: &[ClusterNode]) -> bool {
    nodes.iter().map(ClusterNode::serves).sum::<usize>() == usize::from(PARTITIONS)
}

/// Lifts the erasure through the second node.
fn opt_in(cluster: &Cluster, nodes: &[ClusterNode]) {
    let organization = organization(&nodes[1]);
    nodes[1].blocking(move |engine: &Engine| engine.opt_in(organization, &subject())).unwrap();
    for project in &cluster.projects[..2] {
        assert_eq!(track(nodes, *project, &marked(100)), Status::Recorded);
    }
    wait_until_counted(cluster, nodes, 17);
}

#[test]
fn an_erased_identity_leaves_every_disk_the_bucket_and_the_log() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let mut nodes = vec![cluster.join("a")];
    record(&cluster, &nodes, 0..10);
    wait_until("it is sealed in both projects", || sealed_projects(place.path()) == 2);
    wait_until("it is in a checkpoint", || with_mark(nodes[0].dir()).iter().any(|path| path.contains("/tables/")));
    // A node has a checkpoint and files of it, and is away.
    nodes.push(cluster.join("b"));
    let away = nodes.remove(0).leave();
    record(&cluster, &nodes, 10..14);
    nodes.push(cluster.join("c"));
    wait_until("the partitions are shared", || has_all(&nodes) && nodes.iter().all(|node| node.serves() > 10));
    record(&cluster, &nodes, 14..16);
    let lasts: BTreeMap<ProjectId, u64> = cluster.projects[..2]
        .iter()
        .map(|project| (*project, nodes[0].block_on(last_message(&cluster, partition_of(*project)))))
        .collect();
    // Through a node that has at most one of the two projects.
    let number = erase(&nodes[1]);
    assert_eq!(nodes.iter().map(|node| state(node, number)).collect::<Vec<_>>(), [Some(ErasureState::Running); 2]);
    for project in &cluster.projects[..2] {
        assert_eq!(
            track(&nodes, *project, &marked(16)),
            Status::Dropped(DropReason::OptedOut),
            "its ids are suppressed at the owner"
        );
        assert_eq!(track(&nodes, *project, &marked(17)), Status::Dropped(DropReason::OptedOut), "so is one that was linked");
    }
    wait_until_counted(&cluster, &nodes, 16);
    wait_until_done(&nodes, number);
    for (project, last) in lasts {
        assert!(nodes[0].block_on(first_message(&cluster, partition_of(project))) > last, "the log has its events");
    }
    wait_until_counted(&cluster, &nodes, 16);
    assert_eq!(with_mark(place.path()), Vec::<String>::new());
    for node in &nodes {
        wait_until("no disk has it", || with_mark(node.dir()).is_empty());
    }
    let before = versions(&cluster, &nodes);
    // A node comes back that was away, while other nodes own the partitions. Then it owns all of
    // them.
    assert!(!with_mark(away.path()).is_empty());
    nodes.push(cluster.rejoin("a", away, |_| {}));
    wait_until("it has removed what it had", || with_mark(nodes[2].dir()).is_empty());
    nodes.drain(..2).for_each(ClusterNode::stop);
    wait_until("it has all", || has_all(&nodes));
    wait_until_counted(&cluster, &nodes, 16);
    assert_eq!(versions(&cluster, &nodes), before, "tags are the same for all nodes");
    assert_eq!(with_mark(nodes[0].dir()), Vec::<String>::new());
    nodes.push(cluster.join("d"));
    wait_until("the partitions are shared again", || has_all(&nodes) && nodes.iter().all(|node| node.serves() > 10));
    opt_in(&cluster, &nodes);
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn another_owner_goes_on_with_an_erasure_wherever_the_former_one_stopped() {
    let steps = [
        "states without an erased identity",
        "file without an erased identity listed",
        "archive without an erased identity published",
        "files with an erased identity deleted",
        "tables without an erased identity written",
        "state with an erased identity withdrawn",
        "erasure in the log alone",
        "erasure finished",
    ];
    for step in steps {
        let place = tempfile::tempdir().unwrap();
        let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
        let barrier = Arc::<Barrier>::default();
        let (held_up, armed) = (Arc::clone(&barrier), Arc::new(Mutex::new(false)));
        let is_armed = Arc::clone(&armed);
        let probe = move |done: &'static str| {
            if done == step && *is_armed.lock() {
                held_up.pass();
            }
        };
        let first = cluster.join_with("a", |config| config.archive_probe = Some(Arc::new(probe)));
        let mut nodes = vec![first];
        record(&cluster, &nodes, 0..5);
        wait_until("it is sealed in both projects", || sealed_projects(place.path()) == 2);
        record(&cluster, &nodes, 5..7);
        nodes.push(cluster.join("b"));
        *armed.lock() = true;
        let number = erase(&nodes[1]);
        let has_moved = || cluster.projects[..2].iter().all(|project| nodes[1].has(*project));
        let is_done = || state(&nodes[1], number) == Some(ErasureState::Done);
        wait_until("the first node stops at the step", || barrier.is_reached() || has_moved() || is_done());
        let first = nodes.remove(0);
        let zombie = first.engine.clone();
        first.kill();
        wait_until("the second node has all", || has_all(&nodes));
        wait_until_counted(&cluster, &nodes, 7);
        wait_until_done(&nodes, number);
        // The former owner continues its work.
        barrier.open();
        std::thread::sleep(Duration::from_millis(500));
        wait_until_counted(&cluster, &nodes, 7);
        assert_eq!(with_mark(place.path()), Vec::<String>::new(), "{step}");
        assert_eq!(with_mark(nodes[0].dir()), Vec::<String>::new(), "{step}");
        drop(zombie);
        nodes.into_iter().for_each(ClusterNode::stop);
    }
}

/// Another node may erase a person while a former owner still has figures that count the person.
#[test]
fn an_erased_identity_is_in_no_figures_that_a_former_owner_has_kept() {
    let place = tempfile::tempdir().unwrap();
    let Some(cluster) = Cluster::start_with(Some(files_in(place.path()))) else { return };
    let (names, project) = (["a", "b"], cluster.projects[0]);
    let nodes: Vec<ClusterNode> = names.map(|name| cluster.join(name)).into();
    wait_until_nothing_moves(&nodes);
    record(&cluster, &nodes, 0..6);
    let owner = || nodes.iter().position(|node| node.has(project));
    let former = owner().unwrap();
    let counted = |number: usize| orders_by_a_view(&nodes[number], project);
    assert_eq!(counted(former), 12);
    let drain = nodes[0].block_on(Drain::open(&cluster.addresses(), &Credentials::None)).unwrap();
    nodes[0].block_on(drain.begin(names[former])).unwrap();
    wait_until("it has handed everything over", || nodes[former].serves() == 0 && has_all(&nodes));
    let number = erase(&nodes[1 - former]);
    wait_until_done(&nodes, number);
    assert_eq!(counted(1 - former), 6);
    // It has lost its state, but may have the figures.
    wait_until("it has removed what it had", || with_mark(nodes[former].dir()).is_empty());
    nodes[0].block_on(drain.undo(names[former])).unwrap();
    wait_until("it has the project again", || owner() == Some(former));
    assert_eq!(counted(former), 6);
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn without_a_place_for_files_an_erased_identity_counts_nowhere_and_its_erasure_goes_on() {
    let Some(cluster) = Cluster::start_with(None) else { return };
    let mut nodes = vec![cluster.join("a")];
    record(&cluster, &nodes, 0..4);
    nodes.push(cluster.join("b"));
    let number = erase(&nodes[1]);
    wait_until_counted(&cluster, &nodes, 4);
    nodes.remove(0).kill();
    wait_until("the second node has all", || has_all(&nodes));
    wait_until_counted(&cluster, &nodes, 4);
    assert_eq!(state(&nodes[0], number), Some(ErasureState::Running), "the brokers have its events");
    assert_eq!(track(&nodes, cluster.projects[0], &marked(8)), Status::Dropped(DropReason::OptedOut));
    nodes.into_iter().for_each(ClusterNode::stop);
}

#[test]
fn an_erasure_that_is_cut_off_suppresses_nobody_and_an_unknown_id_records_nothing() {
    let Some(cluster) = Cluster::start_with(None) else { return };
    let nodes: Vec<ClusterNode> = ["a", "b"].map(|name| cluster.join(name)).into();
    wait_until("the partitions are shared", || has_all(&nodes) && nodes.iter().all(|node| node.serves() > 10));
    record(&cluster, &nodes, 0..2);
    let organization = organization(&nodes[0]);
    let erase_once = |subject: ErasureSubject| nodes[1].blocking(move |engine| engine.erase(organization, &subject));
    wait_until("an id that nobody has is unknown", || {
        matches!(erase_once(ErasureSubject::User("nobody".to_owned())), Err(ErasureError::Unknown))
    });
    assert_eq!(state(&nodes[0], 1), None, "nothing is recorded of it");
    // The owners are asked once before the ids are suppressed, and do not answer afterwards.
    cluster.cut_wire_after(Some(1));
    let cut_off = erase_once(subject());
    assert!(matches!(cut_off, Err(ErasureError::Unavailable(_))), "{cut_off:?}");
    assert_eq!(state(&nodes[0], 1), Some(ErasureState::Done), "it was recorded, and given up");
    cluster.cut_wire_after(None);
    for project in &cluster.projects[..2] {
        assert_eq!(track(&nodes, *project, &marked(2)), Status::Recorded);
    }
    assert_eq!(erase(&nodes[1]), 2);
    wait_until_counted(&cluster, &nodes, 2);
    assert_eq!(track(&nodes, cluster.projects[0], &marked(4)), Status::Dropped(DropReason::OptedOut));
    nodes.into_iter().for_each(ClusterNode::stop);
}
