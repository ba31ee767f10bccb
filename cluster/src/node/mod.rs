//! A node: one process of a cluster. It takes the free partitions that fall to it, serves them
//! while it holds their leases, and gives them up.

mod ailment;
mod changes;
mod compacting;
mod figures;
mod hints;
mod liveness;
mod member;
mod nodes;
mod own_state;
mod partition;
mod salts;
mod shared;
mod states;
mod timing;

use std::sync::Arc;
use std::time::Duration;

use headcount_actors::Engine;
use headcount_actors::ingest::Ticket;
use headcount_common::{Owners, PARTITIONS};
use headcount_storage::boot_time::boot_time;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Connection;
use crate::files::remove_copies;
use crate::lease::{Holder, Leases};
use crate::levels::Levels;
use crate::log::StreamCommit;
use crate::record::BUCKET;
use ailment::Ailment;
use changes::{Follower, KINDS, Made, Propagating};
use compacting::compact;
use figures::NodeFigures;
use hints::Hints;
use liveness::Liveness;
pub use member::MemberLog;
pub use nodes::KnownNode;
use nodes::{Announcement, Announcements, LiveNodes};
pub(crate) use nodes::{SeenNode, drain_key_of, listed, live, seen};
use partition::PartitionTask;
use salts::Salts;
pub(crate) use salts::bring_salts;
use shared::{Live, Shared};
use timing::stopped;
pub use timing::{NodeError, NodeTiming};

/// The number of partitions that a node takes over at once.
const TURNS: usize = 16;
/// The number of partitions of a node that move to others at once.
const MOVES: usize = 2;
/// How long to wait for the answers whether to drain, and which levels are agreed.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(1);

/// The parts of a node.
#[derive(Debug, Clone)]
pub struct NodeParts {
    /// Its engine, a member.
    pub engine: Engine,
    /// The log that the engine was opened with.
    pub member: MemberLog,
    /// The identity of the node.
    pub holder: Holder,
    /// The levels of its program version.
    pub levels: Levels,
    /// The address where it answers HTTP requests of other nodes (`http://host:port`, or `https`).
    pub address: String,
}

/// A running node.
#[derive(Debug)]
pub struct Node {
    /// Ends the tasks of partitions, and then all other tasks.
    stop: watch::Sender<bool>,
    stop_rest: watch::Sender<bool>,
    partitions: Vec<JoinHandle<()>>,
    rest: Vec<JoinHandle<()>>,
    liveness: Arc<Liveness>,
}

impl Node {
    /// Starts a node. Its tasks run on `runtime`. It has no partitions yet. After an error, the
    /// call can be repeated.
    ///
    /// # Errors
    /// Returns a [`NodeError`]: the brokers don't answer. [`NodeError::Levels`]: the cluster has a
    /// later version, and every further call would fail.
    pub async fn start(runtime: &Handle, parts: NodeParts, timing: NodeTiming) -> Result<Self, NodeError> {
        let NodeParts { engine, member, holder, levels, address } = parts;
        let MemberLog { connection, record, log, commit, owners, files, letters, .. } = member;
        owners.note_own(address.as_str().into());
        let commit = commit.get().cloned().ok_or(NodeError::NotAMember)?;
        remove_copies(engine.data_dir());
        let leases = Leases::open(&connection, BUCKET, timing.leases).await?.at(&levels);
        let announcements = Announcements::open(&connection, BUCKET, &timing).await?;
        announcements.forget_drain(&holder.node).await?;
        let announcements = Arc::new(Mutex::new(announcements));
        let ((stop, stopped), (stop_rest, rest_stopped)) = (watch::channel(false), watch::channel(false));
        let liveness = Arc::new(Liveness::new(Arc::clone(&owners), timing.leases.held));
        let following = (engine.clone(), Arc::clone(&liveness));
        let follower = Follower::new(following, &connection, &holder.node, rest_stopped.clone()).await?;
        let figures = report_figures(&owners, &commit);
        let mut announcing = Announcing {
            announcements,
            announcement: Announcement::new(address, levels),
            node: holder.node.clone(),
            connection: connection.clone(),
            liveness: Arc::clone(&liveness),
            figures: Arc::clone(&figures),
            stop_partitions: stop.clone(),
            stop: rest_stopped.clone(),
            timing,
            engine: engine.clone(),
            is_to_drain: false,
            ailment: Ailment::new(timing.leases.taken_after, timing.calm),
        };
        let nodes = announcing.begin().await?;
        // From now on, nodes that make changes wait for this node. All earlier changes are applied
        // here.
        follower.follow().await?;
        propagate_changes(runtime, &connection, &engine, &announcing);
        let salts = Salts::new(&connection, record.replicas, engine.clone());
        salts.begin(nodes.names().count() > 1).await;
        let (changed, live) = watch::channel(Live { nodes, since: Instant::now() });
        let compacting = compact(connection.clone(), record.replicas, engine.clone(), rest_stopped.clone());
        let (turns, moves) = (Semaphore::new(TURNS), Arc::new(Semaphore::new(MOVES)));
        let hints = Arc::new(Hints::new());
        let hearing = Arc::clone(&hints).run(connection.clone(), rest_stopped.clone());
        let shared = Arc::new(Shared {
            connection,
            engine,
            log,
            commit,
            files,
            letters,
            holder,
            levels,
            leases,
            timing,
            live,
            figures,
            turns,
            moves,
            hints,
        });
        let (announcing, following) = (runtime.spawn(announcing.run(changed)), runtime.spawn(follower.run()));
        let salts = runtime.spawn(salts.run(rest_stopped));
        let rest = vec![announcing, following, salts, runtime.spawn(hearing), runtime.spawn(compacting)];
        let spawn = |partition| {
            let task = PartitionTask { partition, shared: Arc::clone(&shared), stop: stopped.clone() };
            runtime.spawn(task.run())
        };
        Ok(Self { stop, stop_rest, partitions: (0..PARTITIONS).map(spawn).collect(), rest, liveness })
    }

    /// Gives all partitions up, answers no more requests, and stops. The engine stays open, without
    /// partitions.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        join(self.partitions).await;
        // Done before other nodes stop waiting for this node.
        self.liveness.end();
        self.stop_rest.send_replace(true);
        join(self.rest).await;
    }
}

/// Announces that a node is gone whose [`Node::start`] did not return.
///
/// # Errors
/// Returns [`NodeError::Unavailable`].
pub async fn withdraw(connection: &Connection, node: &str) -> Result<(), NodeError> {
    Announcements::open(connection, BUCKET, &NodeTiming::default()).await?.withdraw(node).await
}

async fn join(tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        if let Err(error) = task.await {
            tracing::error!(%error, "a task of the node ended early");
        }
    }
}

/// Makes each change of the control data and of documents wait until all nodes have applied it.
fn propagate_changes(runtime: &Handle, connection: &Connection, engine: &Engine, announcing: &Announcing) {
    let propagating = Propagating {
        client: connection.client.clone(),
        announcements: Arc::clone(&announcing.announcements),
        node: announcing.node.clone(),
        timing: announcing.timing,
    };
    let wait_for = |place: usize| {
        let (asking, propagating) = (runtime.clone(), propagating.clone());
        move |number| {
            let mut made = Made::default();
            made.0[place] = number;
            asking.block_on(propagating.propagate(made));
        }
    };
    engine.registry().propagate_with(wait_for(0));
    for (place, kind) in (1..).zip(KINDS) {
        engine.partitions.propagate_documents_with(kind, Box::new(wait_for(place)));
    }
}

/// Reports the figures of the node in `/metrics`.
fn report_figures(owners: &Arc<Owners>, commit: &Arc<StreamCommit<Ticket>>) -> Arc<NodeFigures> {
    let figures = Arc::<NodeFigures>::default();
    // The engine owns both and the closure below, so strong references would be a cycle.
    let (counted, of_node, commit) = (Arc::clone(&figures), Arc::downgrade(owners), Arc::downgrade(commit));
    let vitals = move || Some(counted.vitals(&*of_node.upgrade()?, &*commit.upgrade()?));
    owners.report_with(move || vitals().unwrap_or_default());
    figures
}

/// Renews the key of a node, and finds out which other nodes are live.
struct Announcing {
    announcements: Arc<Mutex<Announcements>>,
    announcement: Announcement,
    node: String,
    connection: Connection,
    liveness: Arc<Liveness>,
    figures: Arc<NodeFigures>,
    /// Ends the tasks of partitions.
    stop_partitions: watch::Sender<bool>,
    stop: watch::Receiver<bool>,
    timing: NodeTiming,
    engine: Engine,
    /// Whether the node is asked to drain.
    is_to_drain: bool,
    ailment: Ailment,
}

impl Announcing {
    async fn run(mut self, changed: watch::Sender<Live>) {
        loop {
            tokio::select! {
                () = sleep(self.timing.renewed_every) => {}
                () = stopped(&mut self.stop) => break,
            }
            match self.announce().await {
                Ok(nodes) => note(&changed, nodes),
                Err(error @ NodeError::Levels(_)) => {
                    tracing::error!(%error, "this node stops, and answers nobody");
                    self.liveness.end();
                    self.stop_partitions.send_replace(true);
                    break;
                }
                Err(error) => {
                    self.ailment.interrupt();
                    tracing::debug!(%error, "the nodes can't be read");
                }
            }
        }
        self.withdraw().await;
    }

    /// Announces the node, unless it can't join the cluster.
    async fn begin(&mut self) -> Result<LiveNodes, NodeError> {
        let begun = async {
            let nodes = self.announce().await?;
            self.announcements.lock().await.follow_levels(&self.connection, self.announcement.levels).await?;
            Ok(nodes)
        }
        .await;
        if matches!(begun, Err(NodeError::Levels(_))) {
            self.withdraw().await;
        }
        begun
    }

    async fn withdraw(&self) {
        if let Err(error) = self.announcements.lock().await.withdraw(&self.node).await {
            tracing::debug!(%error, "the node could not be withdrawn");
        }
    }

    /// Finds out whether the node can serve partitions, and updates its announcement.
    fn examine(&mut self) {
        let is_behind = self.liveness.is_behind();
        let wrong = match self.engine.admission.unavailable() {
            _ if is_behind => Some("it can't apply what other nodes change"),
            unavailable => unavailable,
        };
        let ailment = self.ailment.note(wrong).map(str::to_owned);
        match (&ailment, &self.announcement.ailment) {
            (Some(reason), None) => tracing::error!(reason, "the node hands its partitions over, because it can't serve them"),
            (None, Some(reason)) => tracing::info!(reason, "the node can serve partitions again"),
            _ => {}
        }
        let is_behind = is_behind && ailment.is_some();
        if is_behind {
            // Done before any other node learns that it need not wait for this one.
            self.liveness.suspend();
        }
        let drains = self.is_to_drain || ailment.is_some();
        if drains != self.announcement.drains {
            tracing::info!(drains, "whether the node is to hand its partitions over has changed");
            self.figures.drains(drains);
        }
        self.announcement = Announcement { drains, ailment, is_behind, ..self.announcement.clone() };
    }

    /// Announces the node again. Returns the live nodes.
    async fn announce(&mut self) -> Result<LiveNodes, NodeError> {
        // The sign of life is what matters here.
        let asked = async { self.announcements.lock().await.is_to_drain(&self.node).await };
        let asked = timeout(QUESTION_TIMEOUT, asked).await;
        self.is_to_drain = asked.ok().and_then(Result::ok).unwrap_or(self.is_to_drain);
        self.examine();
        let mut announcements = self.announcements.lock().await;
        let sent = boot_time();
        announcements.announce(&self.node, &self.announcement).await?;
        if self.liveness.is_suspended() && !self.announcement.is_behind {
            // From now on, nodes that make changes wait for this node. It reads the earlier changes
            // first.
            self.liveness.resume();
        }
        // Read after the announcement: either the process that raises the levels sees this node, or
        // the node sees the raised levels. If the brokers don't answer, it keeps its levels for
        // now.
        let followed = announcements.follow_levels(&self.connection, self.announcement.levels);
        if let Ok(Err(error @ NodeError::Levels(_))) = timeout(QUESTION_TIMEOUT, followed).await {
            return Err(error);
        }
        self.liveness.announced(sent);
        announcements.live().await
    }
}

/// Publishes which nodes are live, and since when.
fn note(changed: &watch::Sender<Live>, nodes: LiveNodes) {
    changed.send_if_modified(|live| {
        let has_changed = live.nodes != nodes;
        if has_changed {
            *live = Live { nodes, since: Instant::now() };
        }
        has_changed
    });
}
