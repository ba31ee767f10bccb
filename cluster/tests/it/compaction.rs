//! Shared snapshots of the control data, and the removal of records that two of them cover.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::kv::Config;
use async_nats::jetstream::stream::Stream;
use headcount_actors::domain::ids::OrganizationId;
use headcount_cluster::compaction::{Compaction, CompactionPace};
use headcount_cluster::control::ControlStream;
use headcount_cluster::{Connection, StreamName};
use headcount_common::ControlError;
use headcount_control::{AuditQuery, NewProject, OrganizationPatch, ProjectPatch, Registry, RegistryError};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::brokers::Brokers;
use crate::node::{Cluster, NOW, check, record, wait_until};

/// The number of records between snapshots.
const EVERY: u64 = 10;
const PACE: CompactionPace = CompactionPace { every: EVERY, bytes_per_record: u64::MAX, patience: Duration::ZERO };
const KEY: &str = "control_snapshots";

/// A control log without nodes.
struct Log {
    _brokers: Brokers,
    replicas: usize,
    connection: Connection,
    context: Context,
}

impl Log {
    async fn start(replicas: usize) -> Option<Self> {
        let brokers = Brokers::start(replicas).await?;
        let (connection, client) = (brokers.connect().await, async_nats::connect(brokers.addresses()).await.unwrap());
        let context = async_nats::jetstream::new(client);
        StreamName::control().create(&connection, replicas, -1).await.unwrap();
        context.create_key_value(Config { bucket: "hc".to_owned(), num_replicas: replicas, ..Config::default() }).await.unwrap();
        Some(Self { _brokers: brokers, replicas, connection, context })
    }

    fn open(&self, dir: &Path) -> Result<Registry, RegistryError> {
        let log = ControlStream::open(&Handle::current(), &self.connection)?;
        let registry = Registry::open_on(dir, Box::new(log))?;
        registry.catch_up()?;
        Ok(registry)
    }

    /// A registry that keeps nothing from earlier.
    fn new_node(&self) -> (TempDir, Registry) {
        let dir = tempfile::tempdir().unwrap();
        let registry = self.open(dir.path()).unwrap();
        (dir, registry)
    }

    fn compaction(&self) -> Compaction {
        self.compaction_at(PACE)
    }

    fn compaction_at(&self, pace: CompactionPace) -> Compaction {
        Compaction::open(&Handle::current(), (&self.connection, self.replicas), pace).unwrap()
    }

    /// Shares a snapshot after enough changes.
    fn share(&self, registry: &Registry) {
        change(registry, EVERY);
        self.compaction().run(registry, &|| true).unwrap();
    }

    fn block_on<R>(&self, asked: impl Future<Output = R>) -> R {
        Handle::current().block_on(asked)
    }

    fn stream(&self, name: &str) -> Stream {
        self.block_on(self.context.get_stream(name)).unwrap()
    }

    /// The sequences of the first and the last message, and the number of messages.
    fn bounds(&self, name: &str) -> (u64, u64, u64) {
        let state = self.stream(name).cached_info().state.clone();
        (state.first_sequence, state.last_sequence, state.messages)
    }

    /// The listed snapshots.
    fn listed(&self) -> Vec<Value> {
        let store = self.block_on(self.context.get_key_value("hc")).unwrap();
        let Some(text) = self.block_on(store.get(KEY)).unwrap() else { return Vec::new() };
        serde_json::from_slice::<Value>(&text).unwrap()["kept"].as_array().unwrap().clone()
    }

    /// Checks that the log begins with the last record of the older snapshot, that the stream of
    /// snapshots has only their parts, and that a new node is equal to another one.
    fn check(&self, registry: &Registry) {
        let listed = self.listed();
        let [_, older] = &listed[..] else { panic!("{listed:?}") };
        assert_eq!(self.bounds("HC_CTL").0, older["control"]["sequence"].as_u64().unwrap(), "{listed:?}");
        let parts: u64 = listed.iter().map(|one| number(one, "/end/sequence") - number(one, "/first") + 1).sum();
        let (first, _, messages) = self.bounds("HC_CTL_SNAP");
        assert!(first + 1 >= number(older, "/first") && messages <= parts + 2, "{listed:?}: {first}, {messages} messages");
        assert_eq!(everything(&self.new_node().1), everything(registry));
    }
}

fn number(of: &Value, place: &str) -> u64 {
    of.pointer(place).and_then(Value::as_u64).unwrap()
}

fn first_organization(registry: &Registry) -> OrganizationId {
    registry.organizations().iter().map(|organization| organization.id).min().unwrap()
}

fn change(registry: &Registry, times: u64) {
    let organization = first_organization(registry);
    for number in 0..times {
        let patch = OrganizationPatch { name: Some(format!("{number} {}", fastrand::u64(..))), ..OrganizationPatch::default() };
        registry.update_organization(organization, patch, NOW).unwrap();
    }
}

/// A snapshot of these data has several parts.
fn make_large(registry: &Registry) {
    registry.initialize(NOW).unwrap();
    let random = |bytes: usize| -> String { (0..bytes).map(|_| fastrand::alphanumeric().to_ascii_lowercase()).collect() };
    for _ in 0..20 {
        let origin = |_| format!("https://{}.{}.{}.example", random(60), random(60), random(60));
        let organization = first_organization(registry);
        let project =
            registry.create_project(organization, NewProject { name: "p".into(), ..NewProject::default() }, NOW).unwrap();
        let patch = ProjectPatch { allowed_origins: Some((0..100).map(origin).collect()), ..ProjectPatch::default() };
        registry.update_project(organization, project.id, patch, NOW).unwrap();
    }
    registry.create_organization("second", NOW).unwrap();
}

/// All that two equal nodes have, and their complete audit logs.
fn everything(registry: &Registry) -> Vec<String> {
    registry.catch_up().unwrap();
    let query = AuditQuery { limit: usize::MAX, ..AuditQuery::default() };
    let describe = |id| {
        let entries = registry.audit_log(id, &query, NOW).unwrap().entries;
        format!("{:?} {:?} {entries:?}", registry.projects(id).unwrap(), registry.tokens(id).unwrap())
    };
    registry.organizations().iter().map(|organization| format!("{organization:?} {}", describe(organization.id))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_start_from_a_shared_snapshot_and_the_records_after_it() {
    let Some(log) = Log::start(3).await else { return };
    block_in_place(|| {
        let (_dir, one) = log.new_node();
        make_large(&one);
        let (away, former) = log.new_node();
        drop(former);
        let (_running_dir, running) = log.new_node();
        log.share(&one);
        assert_eq!(log.bounds("HC_CTL").0, 1, "one snapshot may be damaged");
        assert!(number(&log.listed()[0], "/end/sequence") > 1, "it has several parts");
        log.compaction().run(&one, &|| true).unwrap();
        assert_eq!(log.listed().len(), 1, "there are too few records for another one");
        log.share(&one);
        log.check(&one);
        log.share(&one);
        change(&one, 3);
        log.check(&one);
        let back = log.open(away.path()).unwrap();
        assert_eq!(everything(&back), everything(&one), "a node that was away");
        let before = running.applied().unwrap();
        let stops = running.catch_up().unwrap_err();
        assert!(matches!(stops, RegistryError::Storage(ControlError::Compacted { applied, .. }) if applied == before), "{stops}");
        assert_eq!(running.applied().unwrap(), before, "a node that was halted applies nothing");
        // Any node goes on, and shares the next one.
        log.share(&back);
        log.check(&one);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_dies_while_it_shares_a_snapshot_hides_and_loses_nothing() {
    let Some(log) = Log::start(1).await else { return };
    block_in_place(|| {
        let (_dir, one) = log.new_node();
        make_large(&one);
        log.share(&one);
        log.share(&one);
        let mut steps = 0_u64;
        loop {
            change(&one, EVERY);
            let (before, left) = (log.listed(), Cell::new(steps));
            let goes_on = || left.replace(left.get().saturating_sub(1)) > 0;
            let ended = log.compaction().run(&one, &goes_on);
            let (_, _, messages) = log.bounds("HC_CTL_SNAP");
            assert!(messages < 20, "dead nodes leave {messages} messages");
            if log.listed() == before {
                assert_eq!(everything(&log.new_node().1), everything(&one), "after {steps} steps");
            }
            // Another node begins again, or removes what is left.
            log.compaction().run(&one, &|| true).unwrap();
            log.check(&one);
            if ended.is_ok() {
                break;
            }
            steps += 1;
        }
        assert!(steps >= 6, "only {steps} steps");
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_nodes_one_shares_a_snapshot() {
    let Some(log) = Log::start(1).await else { return };
    block_in_place(|| {
        let (_dir, one) = log.new_node();
        make_large(&one);
        let (_other_dir, other) = log.new_node();
        for _ in 0..4 {
            change(&one, EVERY);
            other.catch_up().unwrap();
            drop(log.compaction());
            let before = log.bounds("HC_CTL_SNAP").1;
            let runtime = Handle::current();
            std::thread::scope(|scope| {
                for registry in [&one, &other] {
                    let (log, runtime) = (&log, runtime.clone());
                    scope.spawn(move || {
                        let _entered = runtime.enter();
                        let patient = CompactionPace { patience: Duration::from_secs(60), ..PACE };
                        log.compaction_at(patient).run(registry, &|| true).unwrap();
                    });
                }
            });
            let (newest, last) = (log.listed()[0].clone(), log.bounds("HC_CTL_SNAP").1);
            assert_eq!((number(&newest, "/first"), number(&newest, "/end/sequence")), (before + 1, last), "only one wrote");
            assert_eq!(number(&newest, "/control/sequence"), one.applied().unwrap());
        }
        log.check(&one);
        // One is so slow that the other one takes over, at each step.
        for slow_at in 0..6 {
            change(&one, EVERY);
            other.catch_up().unwrap();
            let step = Cell::new(0);
            let goes_on = || {
                if step.replace(step.get() + 1) == slow_at {
                    log.compaction().run(&other, &|| true).unwrap();
                }
                true
            };
            let _overtaken = log.compaction().run(&one, &goes_on);
            assert!(step.get() > slow_at, "it was not reached");
            log.check(&other);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_is_not_used() {
    let Some(log) = Log::start(1).await else { return };
    block_in_place(|| {
        let (_dir, one) = log.new_node();
        make_large(&one);
        log.share(&one);
        log.share(&one);
        change(&one, 3);
        let store = log.block_on(log.context.get_key_value("hc")).unwrap();
        let sound = log.block_on(store.get(KEY)).unwrap().unwrap();
        let listed = log.listed();
        let put = |text: String| log.block_on(store.put(KEY, text.into())).unwrap();
        let refused = || log.open(tempfile::tempdir().unwrap().path()).err().map(|error| error.to_string());
        // Another end, and the snapshot of another log.
        let text = String::from_utf8(sound.to_vec()).unwrap();
        let chain_of = |part: &str| text.split_once(&format!(r#""{part}":"#)).unwrap().1.split_once("chain\":").unwrap().1;
        let [end, control] = ["end", "control"].map(|part| chain_of(part).split_once('}').unwrap().0);
        put(text.replace(end, "0"));
        let assert_starts_from_the_older = || {
            let (dir, node) = log.new_node();
            assert_eq!(everything(&node), everything(&one));
            let used = format!("control/snapshot-{:020}.json", number(&listed[1], "/control/sequence"));
            assert!(dir.path().join(used).exists());
            dir
        };
        assert_starts_from_the_older();
        put(text.replace(control, "0"));
        assert!(refused().unwrap().contains("does not follow the one before"));
        put(text.replacen(r#""version":1"#, r#""version":2"#, 1));
        assert!(refused().unwrap().contains("format version 2"));
        assert!(log.compaction().run(&one, &|| true).is_err());
        put(text);
        // A part of the newer one, and then of the older one.
        let parts = log.stream("HC_CTL_SNAP");
        log.block_on(parts.delete_message(number(&listed[0], "/end/sequence") - 1)).unwrap();
        let dir = assert_starts_from_the_older();
        log.block_on(parts.delete_message(number(&listed[1], "/first") + 1)).unwrap();
        assert!(refused().unwrap().contains("is missing"));
        // Nodes with their own go on, and share new ones.
        drop(log.open(dir.path()).unwrap());
        log.share(&one);
        assert_eq!(everything(&log.new_node().1), everything(&one));
        log.share(&one);
        log.check(&one);
        // A part is lost before the snapshot is listed.
        change(&one, EVERY);
        let (before, step) = (log.listed(), Cell::new(0));
        let goes_on = || {
            if step.replace(step.get() + 1) == 3 {
                let last = log.bounds("HC_CTL_SNAP").1;
                log.block_on(parts.delete_message(last - 1)).unwrap();
            }
            true
        };
        assert!(log.compaction().run(&one, &goes_on).unwrap_err().to_string().contains("is missing"));
        assert_eq!((log.listed(), step.get()), (before, 4));
        log.compaction().run(&one, &|| true).unwrap();
        log.check(&one);
    });
}

/// Makes some changes, and removes all records before them.
pub(crate) fn compact(cluster: &Cluster, registry: &Registry) {
    let runtime = crate::node::runtime();
    let connection = runtime.block_on(cluster.connect());
    let pace = CompactionPace { every: 1, ..PACE };
    let mut compaction = Compaction::open(runtime.handle(), (&connection, 1), pace).unwrap();
    for _ in 0..3 {
        change(registry, 1);
        compaction.run(registry, &|| true).unwrap();
    }
}

#[test]
fn a_node_that_was_halted_stops_and_starts_again_like_a_new_one() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes = vec![cluster.join("a")];
    record(&cluster, &nodes, (0, 11));
    let dir = nodes.remove(0).leave();
    let copy = dir.path().join("data/archive/copy");
    std::fs::create_dir_all(&copy).unwrap();
    // It was away for a short time, and keeps what it has.
    nodes.push(cluster.rejoin("a", dir, |_| {}));
    assert!(copy.exists());
    // More records than it applies at a time are made and removed.
    let runtime = crate::node::runtime();
    let log = ControlStream::open(runtime.handle(), &runtime.block_on(cluster.connect())).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let other = Registry::open_on(elsewhere.path(), Box::new(log)).unwrap();
    wait_until("it does not answer", || {
        compact(&cluster, &other);
        !nodes[0].is_live()
    });
    assert!(nodes[0].engine.registry().catch_up().unwrap_err().to_string().contains("restart it"));
    let dir = nodes.remove(0).leave();
    nodes.push(cluster.rejoin("a", dir, |_| {}));
    assert!(!copy.exists(), "it may have what was deleted or erased meanwhile");
    cluster.projects.iter().for_each(|project| check(&nodes, *project, 11));
    assert_eq!(everything(nodes[0].engine.registry()), everything(&other));
    record(&cluster, &nodes, (11, 12));
    nodes.remove(0).stop();
}
