//! Nodes that share the partitions of some projects, join and leave.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headcount_actors::domain::filter::Predicate;
use headcount_actors::domain::ids::ProjectId;
use headcount_actors::domain::queries::UniqueUsersQuery;
use headcount_actors::domain::time::{Day, Instant as Moment, Window};
use headcount_actors::ingest::{NewEvent, Status};
use headcount_actors::{ArchivePolicy, Engine, EngineConfig, PageOrder, PageQuestion};
use headcount_cluster::drain::Drain;
use headcount_cluster::files::{Bucket, SharedFiles};
use headcount_cluster::init::{InitError, InitOptions, init};
use headcount_cluster::lease::{Holder, Timing};
use headcount_cluster::log::AuditTiming;
use headcount_cluster::node::{MemberLog, Node, NodeError, NodeParts, NodeTiming};
use headcount_cluster::status::status;
use headcount_cluster::{ClusterRecord, Connection, Credentials, Levels};
use headcount_common::nodes::{AskNode, AskNodeError, NodeAnswer, NodeCall};
use headcount_common::{Owner, PARTITIONS, partition_of};
use headcount_control::{NewProject, Registry, RegistryError};
use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::brokers::Brokers;
use crate::states::AT_ONCE;

/// 2024-03-01T10:00:00Z
pub(crate) const BASE_MS: i64 = 1_709_287_200_000;
pub(crate) const NOW: Moment = Moment(1_700_000_000_000);
const PROJECTS: usize = 12;
/// A project with a retention.
const FORGETS: &str = "forgets";
const SOON: Duration = Duration::from_secs(120);
pub(crate) const TIMING: NodeTiming = NodeTiming {
    leases: Timing { held: Duration::from_millis(1500), taken_after: Duration::from_millis(1800) },
    renewed_every: Duration::from_millis(300),
    calm: Duration::from_millis(600),
    forgotten_after: Duration::from_secs(60 * 60),
    states: AT_ONCE,
};

pub(crate) const AUDIT: AuditTiming =
    AuditTiming { every: Duration::from_millis(500), looks: 3, pause: Duration::from_millis(100) };

/// The place of files, and the time of sealing.
#[derive(Clone)]
pub(crate) struct NodeFiles {
    pub(crate) place: String,
    pub(crate) archive: ArchivePolicy,
    /// The maximum size of a stream; -1 for no limit.
    pub(crate) max_bytes: i64,
    pub(crate) log_kept: Duration,
}

/// Brokers with a cluster.
pub(crate) struct Cluster {
    pub(crate) brokers: Brokers,
    pub(crate) record: ClusterRecord,
    /// The data directory with which it was created.
    origin: TempDir,
    pub(crate) projects: Vec<ProjectId>,
    files: Option<NodeFiles>,
    /// The wire between the nodes.
    wire: Arc<Wire>,
}

/// Delivers questions to nodes in this process, by address.
#[derive(Default)]
struct Wire {
    nodes: Mutex<BTreeMap<String, Engine>>,
    /// The number of questions delivered before it is cut; `None` if it is not cut.
    left: Mutex<Option<u64>>,
}

impl AskNode for Wire {
    fn ask(&self, call: NodeCall) -> NodeAnswer {
        let is_cut = match &mut *self.left.lock() {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        };
        let node = self.nodes.lock().get(&*call.address).cloned().filter(|_| !is_cut);
        Box::pin(async move {
            let node = node.ok_or_else(|| AskNodeError::Unreachable("no such node".to_owned()))?;
            node.answer_remote(&call.request).await
        })
    }
}

/// A node with its own threads.
pub(crate) struct ClusterNode {
    runtime: Runtime,
    pub(crate) engine: Engine,
    node: Node,
    dir: TempDir,
    wire: Arc<Wire>,
    address: String,
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

impl Cluster {
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// The same, for nodes with files.
    pub(crate) fn start_with(files: Option<NodeFiles>) -> Option<Self> {
        let runtime = runtime();
        let brokers = runtime.block_on(Brokers::start(1))?;
        let origin = tempfile::tempdir().unwrap();
        let options = InitOptions {
            brokers: brokers.addresses(),
            credentials: Credentials::None,
            replicas: 1,
            max_bytes: files.as_ref().map_or(-1, |files| files.max_bytes),
            data_dir: origin.path().to_owned(),
            files: None,
        };
        let (record, projects) = init(runtime.handle(), &options, |registry| Ok::<_, InitError>(projects(registry)?)).unwrap();
        Some(Self { brokers, record, origin, projects, files, wire: Arc::default() })
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.brokers.connect().await
    }

    /// Cuts the wire between the nodes after some more questions; `None` repairs it.
    pub(crate) fn cut_wire_after(&self, left: Option<u64>) {
        *self.wire.left.lock() = left;
    }

    /// The data directory of the brokers.
    pub(crate) fn brokers_dir(&self) -> &Path {
        self.brokers.dir()
    }

    /// Kills all brokers, and starts them again.
    pub(crate) fn restart_brokers(&mut self) {
        self.restart_brokers_after(|_| ());
    }

    /// The same, with a change of their data meanwhile.
    pub(crate) fn restart_brokers_after<R>(&mut self, change: impl FnOnce(&Brokers) -> R) -> R {
        self.brokers.kill(0);
        let changed = change(&self.brokers);
        self.brokers.restart(0);
        runtime().block_on(self.brokers.wait_for_connection());
        changed
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.brokers.addresses()
    }

    /// The partitions with a project.
    pub(crate) fn partitions(&self) -> BTreeSet<u16> {
        self.projects.iter().map(|project| partition_of(*project)).collect()
    }

    async fn shared_files(&self, connection: &Connection) -> Option<Arc<SharedFiles>> {
        let NodeFiles { place, log_kept, .. } = self.files.as_ref()?;
        let bucket = Bucket::open(place).unwrap();
        Some(Arc::new(SharedFiles::open(connection, &self.record, &bucket, *log_kept).await.unwrap()))
    }

    /// Starts a node in a new directory, which gets only the key of the cluster.
    pub(crate) fn join(&self, name: &str) -> ClusterNode {
        self.join_with(name, |_| {})
    }

    /// The same, with an engine configuration changed by `change`.
    pub(crate) fn join_with(&self, name: &str, change: impl FnOnce(&mut EngineConfig)) -> ClusterNode {
        self.rejoin(name, self.new_dir(), change)
    }

    fn new_dir(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let keys = dir.path().join("data/keys");
        std::fs::create_dir_all(&keys).unwrap();
        std::fs::copy(self.origin.path().join("keys/hash.key"), keys.join("hash.key")).unwrap();
        dir
    }

    /// Starts a node in the directory of a stopped one.
    pub(crate) fn rejoin(&self, name: &str, dir: TempDir, change: impl FnOnce(&mut EngineConfig)) -> ClusterNode {
        self.rejoin_as(name, dir, (Levels::own(), TIMING), change).unwrap()
    }

    /// Starts a node in a new directory that forgets others after a while.
    pub(crate) fn join_forgetting(&self, name: &str, forgotten_after: Duration) -> ClusterNode {
        let timing = NodeTiming { forgotten_after, ..TIMING };
        self.rejoin_as(name, self.new_dir(), (Levels::own(), timing), |_| {}).unwrap()
    }

    /// Starts a node of a version with other levels in a new directory. Even on a busy machine,
    /// other nodes consider it live.
    pub(crate) fn join_as(&self, name: &str, levels: Levels) -> Result<ClusterNode, NodeError> {
        let leases = Timing { held: Duration::from_secs(8), taken_after: Duration::from_secs(10) };
        self.rejoin_as(name, self.new_dir(), (levels, NodeTiming { leases, ..TIMING }), |_| {})
    }

    fn rejoin_as(
        &self,
        name: &str,
        dir: TempDir,
        (levels, timing): (Levels, NodeTiming),
        change: impl FnOnce(&mut EngineConfig),
    ) -> Result<ClusterNode, NodeError> {
        let (runtime, data_dir) = (runtime(), dir.path().join("data"));
        let connection = runtime.block_on(self.brokers.connect());
        let files = runtime.block_on(self.shared_files(&connection));
        let member = MemberLog::new(runtime.handle(), &connection, &self.record, files).audited(AUDIT);
        let mut config = EngineConfig { shards: 1, min_free_bytes: 1 << 20, ..EngineConfig::new(&data_dir) };
        if let Some(files) = &self.files {
            config.archive = files.archive;
            config.checkpoints.interval = Duration::from_millis(500);
        }
        config.ask_node = Some(Arc::<Wire>::clone(&self.wire));
        change(&mut config);
        let common = member.open(&data_dir).unwrap();
        let engine = Engine::open_on(config, common).unwrap();
        let holder = Holder { node: name.to_owned(), boot: "boot".to_owned() };
        let address = format!("http://{name}");
        self.wire.nodes.lock().insert(address.clone(), engine.clone());
        let parts = NodeParts { engine: engine.clone(), member, holder, levels, address: address.clone() };
        let node = runtime.block_on(Node::start(runtime.handle(), parts, timing))?;
        Ok(ClusterNode { runtime, engine, node, dir, wire: Arc::clone(&self.wire), address })
    }
}

/// Creates an organization with some projects.
fn projects(registry: &Registry) -> Result<Vec<ProjectId>, RegistryError> {
    let mut projects = vec![registry.initialize(NOW)?.project_id];
    let organization = registry.organizations()[0].id;
    while projects.len() < PROJECTS {
        let new = NewProject { name: format!("project {}", projects.len()), ..NewProject::default() };
        projects.push(registry.create_project(organization, new, NOW)?.id);
    }
    let forgets = NewProject { name: FORGETS.to_owned(), retention_days: Some(30), ..NewProject::default() };
    registry.create_project(organization, forgets, NOW)?;
    Ok(projects)
}

impl ClusterNode {
    /// Whether it answers requests.
    pub(crate) fn is_live(&self) -> bool {
        self.engine.owners().is_live()
    }

    /// The number of partitions that it serves.
    pub(crate) fn serves(&self) -> usize {
        (0..PARTITIONS).filter(|partition| self.engine.owners().is_here(*partition)).count()
    }

    pub(crate) fn has(&self, project: ProjectId) -> bool {
        self.engine.owners().is_here(partition_of(project))
    }

    pub(crate) fn users(&self, project: ProjectId) -> Option<u64> {
        let day = Day::parse("2024-03-01").unwrap();
        let query = UniqueUsersQuery { window: Window { start: day, end: day } };
        self.runtime.block_on(self.engine.ask(project, query)).ok().map(|answer| answer.total)
    }

    pub(crate) fn today(&self) -> i64 {
        self.engine.clock().now().utc_day()
    }

    pub(crate) fn visitor_salt(&self, day: i64) -> Option<[u8; 16]> {
        self.engine.secrets().known_salt(day)
    }

    /// Runs work on a thread of the node that may block.
    pub(crate) fn blocking<R: Send + 'static>(&self, act: impl FnOnce(&Engine) -> R + Send + 'static) -> R {
        let engine = self.engine.clone();
        self.block_on(async move { tokio::task::spawn_blocking(move || act(&engine)).await.unwrap() })
    }

    pub(crate) fn block_on<R>(&self, future: impl Future<Output = R>) -> R {
        self.runtime.block_on(future)
    }

    /// The number of orders, counted by a scan; `None` if they can't be counted here now.
    pub(crate) fn orders_if_here(&self, project: ProjectId) -> Option<usize> {
        let question = PageQuestion {
            predicate: Predicate::default(),
            window: None,
            order: PageOrder::Recorded { after: 0 },
            limit: 1000,
            until: None,
        };
        self.runtime.block_on(self.engine.scans.events_page(project, question)).ok().map(|page| page.events.len())
    }

    /// The same, for a project that stays here.
    pub(crate) fn orders_by_a_scan(&self, project: ProjectId) -> usize {
        wait_for("the orders are counted", || self.orders_if_here(project))
    }

    /// Whether it has raised the floor of the project with a retention.
    fn forgets(&self) -> bool {
        let registry = self.engine.registry();
        let projects = registry.projects(registry.organizations()[0].id).unwrap();
        let project = projects.iter().find(|project| project.name == FORGETS).unwrap().id;
        self.runtime.block_on(self.engine.floor(project)).is_ok_and(|floor| floor.is_some())
    }

    /// Records an order, if possible. Returns `None` if the project is not here, or the outcome is
    /// unknown.
    pub(crate) fn order(&self, project: ProjectId, user: u64) -> Option<Status> {
        let order = NewEvent::new("order").user(format!("u{user}")).external_id(format!("o{user}")).at_ms(BASE_MS);
        self.runtime.block_on(self.engine.track(project, &order)).ok().map(|receipt| receipt.status)
    }

    /// Stops it properly.
    pub(crate) fn stop(self) {
        drop(self.leave());
    }

    /// Stops it properly, and returns its directory.
    pub(crate) fn leave(self) -> TempDir {
        let Self { runtime, engine, node, dir, wire, address } = self;
        wire.nodes.lock().remove(&address);
        runtime.block_on(node.stop());
        assert!((0..PARTITIONS).all(|partition| !engine.owners().is_here(partition)));
        runtime.block_on(engine.close());
        dir
    }

    /// Its directory.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Ends its threads, as a kill would.
    pub(crate) fn kill(self) {
        self.wire.nodes.lock().remove(&self.address);
        self.runtime.shutdown_background();
    }
}

/// Records orders of the users `from..to` in each project at its owner, retrying until they are
/// recorded. Asks for the count after each tenth.
pub(crate) fn record(cluster: &Cluster, nodes: &[ClusterNode], (from, to): (u64, u64)) {
    for user in from..to {
        for project in &cluster.projects {
            let began = Instant::now();
            while !nodes.iter().any(|node| node.has(*project) && node.order(*project, user).is_some()) {
                assert!(began.elapsed() < SOON, "user {user} of {project} is not recorded");
                std::thread::sleep(Duration::from_millis(20));
            }
            if user % 10 == 0 {
                check(nodes, *project, user + 1);
            }
        }
    }
}

/// Waits until a node answers, and checks its answer. No other node answers.
pub(crate) fn check(nodes: &[ClusterNode], project: ProjectId, users: u64) {
    let all = || Some(nodes.iter().filter_map(|node| node.users(project)).collect()).filter(|all: &Vec<u64>| !all.is_empty());
    let answers = wait_for("somebody answers", all);
    assert!(answers.iter().all(|answer| *answer == users), "{answers:?} of {users} users of {project}");
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Asks until there is an answer. A busy machine may renew a lease too late, and a node then has to
/// take its partition over again.
pub(crate) fn wait_for<T>(what: &str, answer: impl Fn() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(began.elapsed() < SOON, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits until each partition is at its proper node.
pub(crate) fn wait_until_nothing_moves(nodes: &[ClusterNode]) {
    let serves = || nodes.iter().map(ClusterNode::serves).collect::<Vec<_>>();
    wait_until("all are served, and nothing moves", || {
        let before = serves();
        std::thread::sleep(3 * TIMING.calm);
        before.iter().sum::<usize>() == usize::from(PARTITIONS) && serves() == before
    });
}

#[test]
fn partitions_follow_the_nodes_and_each_event_counts_once() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes = vec![cluster.join("a")];
    wait_until("one node has all", || nodes[0].serves() == usize::from(PARTITIONS));
    // The engine checked retentions when it was opened, and owned no partition then. No later
    // change triggers another check.
    wait_until("a new owner raises floors", || nodes[0].forgets());
    record(&cluster, &nodes, (0, 20));
    // Other nodes join, and get their part while events are recorded.
    nodes.push(cluster.join("b"));
    nodes.push(cluster.join("c"));
    record(&cluster, &nodes, (20, 40));
    wait_until("each has its part", || nodes.iter().all(|node| node.serves() >= 8));
    wait_until("all are served", || nodes.iter().map(ClusterNode::serves).sum::<usize>() == usize::from(PARTITIONS));
    record(&cluster, &nodes, (40, 60));
    // Each node knows the owners of the other partitions.
    let project = *cluster.projects.iter().find(|project| nodes[1].has(**project)).unwrap();
    wait_until("the others know", || {
        let expected = Owner::There("http://b".into());
        [0, 2].iter().all(|place| nodes[*place].engine.owners().of_project(project) == expected)
    });
    // One is killed. The others take its partitions over after its leases expire.
    nodes.remove(1).kill();
    record(&cluster, &nodes, (60, 80));
    // One stops properly. No node waits for its leases.
    let began = Instant::now();
    nodes.remove(0).stop();
    record(&cluster, &nodes, (80, 81));
    println!("stopped and taken over in {:?}", began.elapsed());
    record(&cluster, &nodes, (81, 90));
    wait_until("the last one has all", || nodes[0].serves() == usize::from(PARTITIONS));
    for project in &cluster.projects {
        check(&nodes, *project, 90);
        assert_eq!(nodes[0].order(*project, 5), Some(Status::Duplicate));
    }
    nodes.remove(0).stop();
}

#[test]
fn a_node_that_is_drained_hands_everything_over_and_goes_on() {
    let Some(cluster) = Cluster::start() else { return };
    let mut nodes: Vec<ClusterNode> = ["a", "b", "c"].map(|name| cluster.join(name)).into();
    let all = |nodes: &[ClusterNode]| nodes.iter().map(ClusterNode::serves).sum::<usize>() == usize::from(PARTITIONS);
    wait_until("each has its part", || all(&nodes) && nodes.iter().all(|node| node.serves() >= 8));
    record(&cluster, &nodes, (0, 10));
    let asking = runtime();
    let drain = asking.block_on(Drain::open(&cluster.brokers.addresses(), &Credentials::None)).unwrap();
    let unknown = asking.block_on(drain.find("d")).unwrap_err().to_string();
    assert!(unknown.contains("no node is \"d\"; known are: a at http://a"), "{unknown}");
    assert_eq!(asking.block_on(drain.find("http://b/")).unwrap(), "b");
    asking.block_on(drain.begin("b")).unwrap();
    record(&cluster, &nodes, (10, 20));
    wait_until("it has handed everything over", || nodes[1].serves() == 0 && all(&nodes));
    assert!(asking.block_on(drain.held_by("b")).unwrap().is_empty());
    assert!(nodes[1].engine.owners().node_vitals().unwrap().drains);
    // It knows where the projects are, and takes none from a node that ends.
    let project = cluster.projects[0];
    wait_until("it knows", || matches!(nodes[1].engine.owners().of_project(project), Owner::There(_)));
    nodes.remove(2).kill();
    record(&cluster, &nodes, (20, 30));
    wait_until("the other one has all", || nodes[0].serves() == usize::from(PARTITIONS));
    let shown = asking.block_on(status(&cluster.brokers.addresses(), &Credentials::None)).unwrap();
    let drains: Vec<_> = shown.nodes.iter().map(|node| (node.node.as_str(), node.drains)).collect();
    assert_eq!(drains, [("a", false), ("b", true), ("c", false)]);
    // It may take partitions again, and then once more because it is restarted.
    asking.block_on(drain.undo("b")).unwrap();
    wait_until("it has its part", || nodes[1].serves() >= 16);
    asking.block_on(drain.begin("b")).unwrap();
    wait_until("it has handed everything over again", || nodes[1].serves() == 0);
    nodes.remove(1).stop();
    nodes.push(cluster.join("b"));
    wait_until("it has its part after a start", || nodes[1].serves() >= 16 && all(&nodes));
    // If all nodes are asked to drain, they keep their partitions.
    ["a", "b"].iter().for_each(|name| asking.block_on(drain.begin(name)).unwrap());
    wait_until("both know", || nodes.iter().all(|node| node.engine.owners().node_vitals().unwrap().drains));
    record(&cluster, &nodes, (30, 40));
    wait_until("all are served", || all(&nodes));
    nodes.into_iter().for_each(ClusterNode::stop);
}
