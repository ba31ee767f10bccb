//! The engine: opens a data directory, starts what runs on it, and is the embedded API.
//!
//! It brings its own threads and its own actix system, so that it works inside any program, whatever runtime that has.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use actix::{Actor, Addr, Arbiter, System};
use headcount_domain::fold::{Position, Project};
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_domain::table::Fault;
use headcount_storage::files::create_private_dir;
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::lock::DirLock;
use headcount_storage::log::{GroupCommit, GroupOptions, Log, LogOptions, LogReader, Outcome as LogOutcome};
use headcount_storage::store::{Opened, SledOptions, SledStore};
use tokio::sync::{Semaphore, oneshot};

use crate::aggregator::{
    Aggregator, Apply, Ask, CheckpointPolicy, Checkpoints, Drain, Events, Outcome, PARTITIONS, Probe, Shard, Shared, Versions,
    Work, partition_of,
};
use crate::clock::{Clock, SystemClock};
use crate::dead_letters::DeadLetters;
use crate::disk::DiskGuard;
use crate::gate::{Gate, Permit};
use crate::ingest::{Ingest, Ticket, Track, TrackError};
use crate::keeper::Keeper;
use crate::registry::{Registry, RegistryError};
use crate::scan::scan_permits;
use crate::secrets::{Secrets, SecretsError};

/// How long an acknowledged-to-the-log event may take to be applied before its sender hears `outcome_unknown`.
const APPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a question may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// How many questions may be waiting at once.
const MAX_QUESTIONS: usize = 4096;

/// How an engine is opened.
#[derive(Clone)]
pub struct EngineConfig {
    /// Where everything is kept. Made if it isn't there; locked while the engine is open.
    pub data_dir: PathBuf,
    /// How many shards; may differ at every start. Default: the number of cores.
    pub shards: usize,
    /// How many bytes of events may be under way at once. Default 64 MiB.
    pub admission_bytes: usize,
    /// Below how much free disk space no event is taken. Default 256 MiB.
    pub min_free_bytes: u64,
    /// When state is written down.
    pub checkpoints: CheckpointPolicy,
    /// The log's options.
    pub log: LogOptions,
    /// How the log groups commits.
    pub group: GroupOptions,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Called before each event is folded: for tests of panics.
    #[doc(hidden)]
    pub probe: Probe,
}

impl EngineConfig {
    /// The defaults, on `data_dir`.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            shards: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            admission_bytes: 64 << 20,
            min_free_bytes: 256 << 20,
            checkpoints: CheckpointPolicy::default(),
            log: LogOptions::default(),
            group: GroupOptions::default(),
            clock: Arc::new(SystemClock),
            probe: None,
        }
    }
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig").field("data_dir", &self.data_dir).field("shards", &self.shards).finish_non_exhaustive()
    }
}

/// Why an engine did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory can't be used: locked, of another version, unreadable.
    #[error("{0}")]
    Directory(String),
    /// A key file.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// Organizations, projects and tokens.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The event log.
    #[error(transparent)]
    Log(#[from] headcount_storage::log::LogError),
    /// The store, and rebuilding it did not help.
    #[error("the state could not be rebuilt from the log: {0}")]
    State(#[from] Fault),
    /// A thread could not be started.
    #[error("could not start: {0}")]
    Start(String),
}

fn directory(error: impl std::fmt::Display) -> OpenError {
    OpenError::Directory(error.to_string())
}

/// Why a question has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AskError {
    /// Too many questions are waiting.
    #[error("too many questions are waiting")]
    Busy,
    /// The state is lost until the next start, which rebuilds it.
    #[error("{0}")]
    Lost(Fault),
    /// The engine is closed, or the answer took too long.
    #[error("the engine does not answer")]
    NoAnswer,
}

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("data_dir", &self.inner.config.data_dir).finish_non_exhaustive()
    }
}

struct Inner {
    config: EngineConfig,
    registry: Registry,
    secrets: Secrets,
    versions: Arc<Versions>,
    reader: LogReader,
    dead: Arc<DeadLetters>,
    gate: Gate,
    questions: Gate,
    scans: Semaphore,
    disk: DiskGuard,
    shards: Vec<Addr<Aggregator>>,
    ingest: Addr<Ingest>,
    group: Arc<GroupCommit<Ticket>>,
    incarnation: u128,
    closing: AtomicBool,
    threads: Mutex<Option<Threads>>,
}

struct Threads {
    system: System,
    system_thread: JoinHandle<()>,
    keeper_thread: JoinHandle<()>,
    _lock: DirLock,
}

/// A handle for tracking from one thread of an actix system: answers wake that thread only.
#[derive(Clone)]
pub struct Tracker {
    ingest: Addr<Ingest>,
}

impl std::fmt::Debug for Tracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tracker")
    }
}

impl Engine {
    /// Opens a data directory: recovers the log, rebuilds what the log knows better than the store, and starts.
    ///
    /// Blocking; takes as long as replaying the log since the last checkpoint.
    ///
    /// # Errors
    /// See [`OpenError`]. A damaged log is an error; a damaged store is rebuilt.
    pub fn open(config: EngineConfig) -> Result<Self, OpenError> {
        let dir = config.data_dir.clone();
        create_private_dir(&dir).map_err(directory)?;
        let lock = DirLock::acquire(&dir).map_err(directory)?;
        let mut format = Format::open(&dir).map_err(directory)?;
        let secrets = Secrets::open(&dir.join("keys"))?;
        let registry = Registry::open(&dir)?;
        let (log, recovery) = Log::open(dir.join("log"), config.log.clone())?;
        if recovery.cut_bytes > 0 {
            tracing::warn!(
                bytes = recovery.cut_bytes,
                "an unfinished write at the end of the log was cut; nothing acknowledged was in it"
            );
        }
        let dead = Arc::new(DeadLetters::open(&dir.join("dead-letters.ndjson")).map_err(directory)?);
        let reader = log.reader();
        let (mut store, opened) = SledStore::open_or_reset(&dir.join("store"), SledOptions::default()).map_err(directory)?;
        if let Opened::Reset { reason, .. } = &opened {
            tracing::warn!(%reason, "the store was damaged and is rebuilt from the log");
        }
        let mut fresh = !matches!(opened, Opened::Clean);
        if secrets.created() && !fresh {
            tracing::warn!("the hash key is new, so the store is rebuilt from the log");
            store = reset_store(store, &dir)?;
            fresh = true;
        }
        if fresh {
            format = renew(format, &dir)?;
        }
        let opening = Opening { dir: &dir, config: &config, secrets: &secrets, reader: &reader, dead: &dead };
        let state = match opening.state(store, format.incarnation) {
            Ok(state) => state,
            Err((fault, store)) => {
                tracing::warn!(%fault, "the store is damaged and is rebuilt from the log");
                let store = reset_store_if(store, &dir)?;
                format = renew(format, &dir)?;
                opening.state(store, format.incarnation).map_err(|(fault, _)| fault)?
            }
        };
        let incarnation = format.incarnation.number();
        Self::start(config, Parts { registry, secrets, log, reader, dead, state, lock, incarnation })
    }

    fn start(config: EngineConfig, opened: Parts) -> Result<Self, OpenError> {
        let Parts { registry, secrets, log, reader, dead, state, lock, incarnation } = opened;
        let State { shards, versions, keeper_thread } = state;
        let assignment = assignment(shards.len());
        let (system, system_thread, addresses) = start_system(shards)?;
        let sink = sink(addresses.clone(), assignment);
        let group = GroupCommit::spawn(log, config.group.clone(), sink).map_err(|error| OpenError::Start(error.to_string()))?;
        let group = Arc::new(group);
        let ingest = start_ingest(&system, Arc::clone(&group))?;
        let inner = Inner {
            gate: Gate::new(config.admission_bytes),
            questions: Gate::new(MAX_QUESTIONS),
            scans: scan_permits(),
            disk: DiskGuard::new(&config.data_dir, config.min_free_bytes),
            registry,
            secrets,
            versions,
            reader,
            dead,
            shards: addresses,
            ingest,
            group,
            incarnation,
            closing: AtomicBool::new(false),
            threads: Mutex::new(Some(Threads { system, system_thread, keeper_thread, _lock: lock })),
            config,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Organizations, projects, keys and tokens.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The clock that the engine was given.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.config.clock
    }

    /// Where the engine keeps everything.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.inner.config.data_dir
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.inner.secrets
    }

    pub(crate) fn hasher(&self) -> &KeyHasher {
        self.inner.secrets.hasher()
    }

    pub(crate) fn scans(&self) -> &Semaphore {
        &self.inner.scans
    }

    pub(crate) fn reader(&self) -> &LogReader {
        &self.inner.reader
    }

    pub(crate) fn is_dead(&self, position: Position) -> bool {
        self.inner.dead.contains(position)
    }

    /// Takes `bytes` of the admission limit. `None`: so much is under way already, or the engine takes no events now.
    #[must_use]
    pub fn admit_bytes(&self, bytes: usize) -> Option<Permit> {
        self.inner.gate.take(bytes)
    }

    /// Why no event can be taken now, if so.
    #[must_use]
    pub fn unavailable(&self) -> Option<&'static str> {
        if self.inner.closing.load(Ordering::Relaxed) {
            return Some("the server is shutting down");
        }
        (!self.inner.disk.has_space()).then_some("the disk is nearly full")
    }

    /// What changes exactly when an answer about `project` can have changed: the incarnation of the data, and the position
    /// of the project's last event that counted.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn version(&self, project: ProjectId) -> Result<(u128, Position), AskError> {
        if let Some(version) = self.inner.versions.get(&project) {
            return Ok((self.inner.incarnation, version.load(Ordering::Acquire)));
        }
        // Not loaded since the start: asking for it loads it.
        self.ask(project, |_| ()).await?;
        let version = self.inner.versions.get(&project).map_or(0, |version| version.load(Ordering::Acquire));
        Ok((self.inner.incarnation, version))
    }

    /// Asks a project's state, on its shard's thread. `question` should take microseconds.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn ask<R: Send + 'static>(
        &self,
        project: ProjectId,
        question: impl FnOnce(&Project) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        self.ask_shard(project, move |shard| shard.read(project, question)).await?.map_err(AskError::Lost)
    }

    pub(crate) async fn applied(&self, project: ProjectId) -> Result<Position, AskError> {
        self.ask_shard(project, move |shard| shard.applied(partition_of(project))).await
    }

    async fn ask_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        question: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        let _place = self.inner.questions.take(1).ok_or(AskError::Busy)?;
        let (answer, wait) = oneshot::channel();
        let shard = &self.inner.shards[usize::from(partition_of(project)) % self.inner.shards.len()];
        let ask = Ask(Box::new(move |shard| drop(answer.send(question(shard)))));
        #[expect(clippy::disallowed_methods, reason = "the gate of questions bounds what waits in the mailbox")]
        shard.do_send(ask);
        match tokio::time::timeout(ASK_TIMEOUT, wait).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(AskError::NoAnswer),
        }
    }

    /// The tracker of the embedded API.
    #[must_use]
    pub fn tracker(&self) -> Tracker {
        Tracker { ingest: self.inner.ingest.clone() }
    }

    /// A tracker for the calling thread, which must be one of an actix system (an HTTP worker).
    #[must_use]
    pub fn local_tracker(&self) -> Tracker {
        Tracker { ingest: Ingest::new(Arc::clone(&self.inner.group)).start() }
    }

    /// Whether every shard answers and events can be taken: what `/readyz` asks.
    ///
    /// # Errors
    /// Why not.
    pub async fn ready(&self) -> Result<(), String> {
        if let Some(why) = self.unavailable() {
            return Err(why.to_owned());
        }
        for shard in &self.inner.shards {
            let (answer, wait) = oneshot::channel();
            let ask = Ask(Box::new(move |shard| drop(answer.send(shard.failed().cloned()))));
            #[expect(clippy::disallowed_methods, reason = "one small question per shard and readiness check")]
            shard.do_send(ask);
            match tokio::time::timeout(ASK_TIMEOUT, wait).await {
                Ok(Ok(None)) => {}
                Ok(Ok(Some(fault))) => return Err(fault.to_string()),
                _ => return Err("a shard does not answer".to_owned()),
            }
        }
        Ok(())
    }

    /// Figures for `/metrics`.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        Vitals {
            log_position: self.inner.reader.last_position(),
            admitted_bytes: self.inner.gate.used_bytes(),
            admission_limit_bytes: self.inner.gate.limit_bytes(),
            dead_letters: self.inner.dead.count(),
            free_disk_bytes: self.inner.disk.free_bytes(),
        }
    }

    /// Takes no more events, finishes those under way, writes everything down and stops. Events that were answered are
    /// safe without this; it makes the next start quick.
    pub async fn close(&self) {
        self.inner.closing.store(true, Ordering::SeqCst);
        let group = Arc::clone(&self.inner.group);
        let _ = tokio::task::spawn_blocking(move || group.close()).await;
        let mut drains = Vec::new();
        for shard in &self.inner.shards {
            let (done, wait) = oneshot::channel();
            #[expect(clippy::disallowed_methods, reason = "one message per shard, at the end")]
            shard.do_send(Drain(done));
            drains.push(wait);
        }
        for drain in drains {
            if tokio::time::timeout(Duration::from_secs(20), drain).await.is_err() {
                tracing::warn!("a last checkpoint took too long; the next start replays the log instead");
            }
        }
        let threads = self.inner.threads.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(threads) = threads {
            threads.system.stop();
            let _ = tokio::task::spawn_blocking(move || {
                let _ = threads.system_thread.join();
                // The keeper ends when the shards, which hold its handles, are gone.
                let _ = threads.keeper_thread.join();
            })
            .await;
        }
    }
}

/// Figures about a running engine.
#[derive(Debug, Clone, Copy)]
pub struct Vitals {
    /// The position of the last durable event.
    pub log_position: Position,
    /// Bytes of events under way.
    pub admitted_bytes: usize,
    /// The limit of these.
    pub admission_limit_bytes: usize,
    /// Events that were set aside.
    pub dead_letters: usize,
    /// Free space on the data directory's disk.
    pub free_disk_bytes: u64,
}

impl Tracker {
    /// Records events of one project; answers when they are on disk and in the rollups. The caller holds a [`Permit`] for
    /// them, and keeps it until then.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub(crate) async fn record(&self, events: Events, _permit: Permit) -> Result<Vec<Outcome>, TrackError> {
        let (answer, wait) = oneshot::channel();
        #[expect(clippy::disallowed_methods, reason = "the permit is the bound")]
        self.ingest.do_send(Track { events, answer });
        match tokio::time::timeout(APPLY_TIMEOUT, wait).await {
            Ok(Ok(result)) => result,
            _ => Err(TrackError::OutcomeUnknown),
        }
    }
}

struct Parts {
    registry: Registry,
    secrets: Secrets,
    log: Log,
    reader: LogReader,
    dead: Arc<DeadLetters>,
    state: State,
    lock: DirLock,
    incarnation: u128,
}

struct State {
    shards: Vec<Shard>,
    versions: Arc<Versions>,
    keeper_thread: JoinHandle<()>,
}

struct Opening<'a> {
    dir: &'a Path,
    config: &'a EngineConfig,
    secrets: &'a Secrets,
    reader: &'a LogReader,
    dead: &'a Arc<DeadLetters>,
}

impl Opening<'_> {
    /// Opens all shards and replays the log into them, each on a thread of its own. On failure the store comes back.
    fn state(&self, store: SledStore, incarnation: Incarnation) -> Result<State, (Fault, Option<SledStore>)> {
        let store = Arc::new(store);
        let result = self.open_shards(&store, incarnation);
        result.map_err(|fault| (fault, Arc::into_inner(store)))
    }

    fn open_shards(&self, store: &Arc<SledStore>, incarnation: Incarnation) -> Result<State, Fault> {
        let store: Arc<dyn headcount_storage::store::Store> = Arc::<SledStore>::clone(store);
        let versions = Arc::new(Versions::new());
        let shared = Shared {
            store: Arc::clone(&store),
            hasher: self.secrets.hasher().clone(),
            versions: Arc::clone(&versions),
            fingerprints_dir: self.dir.join("fingerprints"),
            incarnation,
        };
        let (keeper, keeper_thread) = Keeper::spawn(store).map_err(|error| Fault(error.to_string()))?;
        let count = self.config.shards.clamp(1, usize::from(PARTITIONS));
        let assignment = assignment(count);
        let open = |shard: usize| {
            let numbers: Vec<u16> = (0..PARTITIONS).filter(|number| assignment[usize::from(*number)] == shard).collect();
            let checkpoints = Checkpoints::new(keeper.clone(), self.config.checkpoints);
            let probe = self.config.probe.clone();
            Shard::open(&numbers, shared.clone(), self.reader.clone(), Arc::clone(self.dead), probe, checkpoints)
        };
        let shards: Result<Vec<Shard>, Fault> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|shard| scope.spawn(move || open(shard))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(Fault("a shard panicked at start".into()))))
                .collect()
        });
        Ok(State { shards: shards?, versions, keeper_thread })
    }
}

/// Which shard hosts each partition.
fn assignment(shards: usize) -> Vec<usize> {
    (0..usize::from(PARTITIONS)).map(|partition| partition % shards).collect()
}

/// Begins a new life of the state: what was derived from the log before belongs to the old one.
fn renew(format: Format, dir: &Path) -> Result<Format, OpenError> {
    let fingerprints = dir.join("fingerprints");
    if fingerprints.exists() {
        std::fs::remove_dir_all(&fingerprints).map_err(directory)?;
    }
    format.renew(dir).map_err(directory)
}

fn reset_store(store: SledStore, dir: &Path) -> Result<SledStore, OpenError> {
    reset_store_if(Some(store), dir)
}

/// Moves the store aside and opens an empty one.
fn reset_store_if(store: Option<SledStore>, dir: &Path) -> Result<SledStore, OpenError> {
    drop(store);
    SledStore::start_over(&dir.join("store"), SledOptions::default()).map_err(directory)
}

type Started = (System, JoinHandle<()>, Vec<Addr<Aggregator>>);

/// Starts the engine's own actix system, with one arbiter per shard.
fn start_system(shards: Vec<Shard>) -> Result<Started, OpenError> {
    let (started, wait) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("hc-system".into())
        .spawn(move || {
            let runner = System::new();
            runner.block_on(async {
                let start = |shard| Aggregator::start_in_arbiter(&Arbiter::new().handle(), move |_| Aggregator::new(shard));
                let addresses: Vec<_> = shards.into_iter().map(start).collect();
                let _ = started.send((System::current(), addresses));
            });
            if let Err(error) = runner.run() {
                tracing::error!(%error, "the engine's actor system failed");
            }
        })
        .map_err(|error| OpenError::Start(error.to_string()))?;
    let (system, addresses) = wait.recv().map_err(|_| OpenError::Start("the actor system did not start".into()))?;
    Ok((system, thread, addresses))
}

fn start_ingest(system: &System, group: Arc<GroupCommit<Ticket>>) -> Result<Addr<Ingest>, OpenError> {
    let (started, wait) = std::sync::mpsc::sync_channel(1);
    let running = system.arbiter().spawn_fn(move || drop(started.send(Ingest::new(group).start())));
    if !running {
        return Err(OpenError::Start("the actor system has stopped".into()));
    }
    wait.recv().map_err(|_| OpenError::Start("the ingest actor did not start".into()))
}

/// What the log's thread does with what it committed: hands each shard its share, and refusals back.
fn sink(shards: Vec<Addr<Aggregator>>, assignment: Vec<usize>) -> impl FnMut(Vec<LogOutcome<Ticket>>) + Send + 'static {
    move |outcomes| {
        let mut works: BTreeMap<usize, Vec<Work>> = BTreeMap::new();
        for outcome in outcomes {
            match outcome {
                LogOutcome::Committed(committed) => {
                    let (events, back) = committed.ticket.split();
                    let reply = Box::new(move |outcomes| back.finish(Ok(outcomes)));
                    let work = Work { partition: committed.partition, first: committed.first, events, reply };
                    works.entry(assignment[usize::from(committed.partition)]).or_default().push(work);
                }
                LogOutcome::Refused(refused) => refused.ticket.split().1.finish(Err(refused.reason)),
            }
        }
        for (shard, works) in works {
            #[expect(
                clippy::disallowed_methods,
                reason = "these events are in the log: they happen; the gate bounds their bytes"
            )]
            shards[shard].do_send(Apply(works));
        }
    }
}
