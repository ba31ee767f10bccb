//! The engine: opens a data directory, starts what runs on it, and is the embedded API.
//!
//! It brings its own threads and its own actix system, so that it works inside any program, whatever runtime that has.

mod close;
pub(crate) mod config;
mod disk_guard;
mod external_sort;
mod log_scan;
mod open;
mod queries;
mod quotas;
mod readiness;
mod threads;
mod vitals;

pub use config::{EngineConfig, OpenError};
pub(crate) use quotas::Asked as QuotaAsked;
pub use quotas::QuotaExceeded;
pub use vitals::Vitals;

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use actix::{Actor, Addr, System};
use headcount_domain::fault::Fault;
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::Position;
use headcount_domain::project::Project;
use headcount_domain::queries::Query;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Commit, GroupCommit, History};
use tokio::sync::{Semaphore, oneshot};

use self::open::{Parts, State};
use crate::checkpoint_writer::Keeper;
use crate::clock::Clock;
use crate::dead_letters::DeadLetters;
use crate::engine::disk_guard::DiskGuard;
use crate::engine::log_scan::scan_permits;
use crate::engine::threads::{sink, start_ingest, start_system};
use crate::geo::GeoDatabase;
use crate::ingest::{Gate, Holder, Permit, Refused};
use crate::ingest::{IngestActor, Ticket, Track, TrackError};
use crate::memory_budget::MemoryShares;
use crate::registry::Registry;
use crate::secrets::Secrets;
use crate::shard::{
    Ask, Asking, CheckpointProgress, Condition, Events, Limits, Outcome, PartitionHealth, Shard, ShardActor, Shares, Versions,
    partition_of,
};
use crate::verifier::{DamageNote, Verifier};

/// How long an acknowledged-to-the-log event may take to be applied before its sender hears `outcome_unknown`.
const APPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a question may take.
const ASK_TIMEOUT: Duration = Duration::from_secs(10);
/// How many questions may be waiting at once.
const MAX_QUESTIONS: usize = 4096;

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
    memory: Arc<Shares>,
    history: Arc<dyn History>,
    dead: Arc<DeadLetters>,
    damage: Arc<DamageNote>,
    gate: Gate,
    questions: Gate,
    scans: Arc<Semaphore>,
    disk: DiskGuard,
    geo: Option<GeoDatabase>,
    health: Arc<PartitionHealth>,
    limits: Arc<Limits>,
    shards: Vec<Addr<ShardActor>>,
    ingest: Addr<IngestActor>,
    log: Arc<dyn Commit<Ticket>>,
    incarnation: u128,
    closing: AtomicBool,
    draining: AtomicBool,
    threads: Mutex<Option<Threads>>,
}

/// A question on its way.
pub(crate) struct Posted<R> {
    answer: oneshot::Receiver<R>,
}

/// A question as its shard has it.
struct Asked<R, F> {
    answer: oneshot::Sender<R>,
    question: F,
    /// Its place among those that wait, until it is answered or passed over.
    _place: Permit,
}

impl<R: Send, F: FnOnce(&mut Shard) -> R + Send> Asking for Asked<R, F> {
    fn is_wanted(&self) -> bool {
        !self.answer.is_closed()
    }

    fn answer(self: Box<Self>, shard: &mut Shard) {
        let Self { answer, question, .. } = *self;
        let _ = answer.send(question(shard));
    }
}

/// A question on its way to several projects.
pub(crate) type PostedParts<Q> = Posted<Result<Vec<<Q as Query>::Partial>, Fault>>;

impl<R> Posted<R> {
    async fn received(self) -> Result<R, AskError> {
        match tokio::time::timeout(ASK_TIMEOUT, self.answer).await {
            Ok(Ok(answer)) => Ok(answer),
            _ => Err(AskError::NoAnswer),
        }
    }
}

impl<R> Posted<Result<R, Fault>> {
    /// The answer.
    pub(crate) async fn wait(self) -> Result<R, AskError> {
        self.received().await?.map_err(AskError::Lost)
    }
}

struct Threads {
    system: System,
    system_thread: JoinHandle<()>,
    keeper: Keeper,
    keeper_thread: JoinHandle<()>,
    verifier: Verifier,
    _lock: DirLock,
}

/// A handle for tracking from one thread of an actix system: answers wake that thread only.
#[derive(Clone)]
pub struct Tracker {
    ingest: Addr<IngestActor>,
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
        #[cfg(feature = "fault-injection")]
        let config = crate::fault_injection::plant(config)?;
        // First: a wrong file is told before a long replay.
        let geo = config.geo_db.as_deref().map(GeoDatabase::open).transpose()?;
        let parts = open::open(&config)?;
        Self::start(config, parts, geo)
    }

    fn start(config: EngineConfig, opened: Parts, geo: Option<GeoDatabase>) -> Result<Self, OpenError> {
        let Parts { registry, secrets, log, history, dead, state, lock, incarnation } = opened;
        let State { shards, versions, limits, memory, keeper, keeper_thread, verifier, damage } = state;
        let assignment = open::assignment(shards.len());
        let health = shards.first().map(Shard::health).unwrap_or_default();
        let (system, system_thread, addresses) = start_system(shards)?;
        let sink = sink(addresses.clone(), assignment);
        let group = GroupCommit::spawn(log, config.group.clone(), sink).map_err(|error| OpenError::Start(error.to_string()))?;
        let group: Arc<dyn Commit<Ticket>> = Arc::new(group);
        let ingest = start_ingest(&system, Arc::clone(&group), Arc::clone(&health))?;
        let inner = Inner {
            gate: Gate::of_bodies(config.admission_bytes.unwrap_or(MemoryShares::of(config.memory_bytes).admission)),
            questions: Gate::new(MAX_QUESTIONS),
            scans: scan_permits(),
            disk: DiskGuard::new(&config.data_dir, config.min_free_bytes),
            geo,
            registry,
            secrets,
            versions,
            limits,
            memory,
            history,
            dead,
            health,
            damage,
            shards: addresses,
            ingest,
            log: group,
            incarnation,
            closing: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            threads: Mutex::new(Some(Threads { system, system_thread, keeper, keeper_thread, verifier, _lock: lock })),
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

    /// The country that an address is in. `None`: it is not known, or the engine has no database ([`EngineConfig::geo_db`]).
    #[must_use]
    pub fn country_of(&self, address: IpAddr) -> Option<Country> {
        self.inner.geo.as_ref()?.country(address)
    }

    pub(crate) fn has_geo(&self) -> bool {
        self.inner.geo.is_some()
    }

    pub(crate) fn secrets(&self) -> &Secrets {
        &self.inner.secrets
    }

    pub(crate) fn hasher(&self) -> &KeyHasher {
        self.inner.secrets.hasher()
    }

    pub(crate) fn scans(&self) -> &Arc<Semaphore> {
        &self.inner.scans
    }

    pub(crate) fn history(&self) -> &Arc<dyn History> {
        &self.inner.history
    }

    pub(crate) fn is_dead(&self, position: Position) -> bool {
        self.inner.dead.contains(position)
    }

    /// Lets `bytes` of events of a project in, that came from `address`. The bytes count against the admission limit, and
    /// against what the project and the address may have of it, until the events are in the state ([`crate::ingest`]).
    ///
    /// # Errors
    /// Nothing of this can be taken now.
    pub fn admit(&self, project: ProjectId, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        if let Some(why) = self.unavailable() {
            return Err(Refused::Unavailable(why));
        }
        self.inner.health.check(partition_of(project)).map_err(Refused::Unavailable)?;
        self.inner.gate.take_for([Some(Holder::Project(project)), address.map(Holder::of_address)], bytes)
    }

    /// Takes `bytes` of the admission limit for nobody in particular. `None`: so much is under way already.
    #[must_use]
    pub fn admit_bytes(&self, bytes: usize) -> Option<Permit> {
        self.inner.gate.take(bytes)
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.inner.closing.load(Ordering::Relaxed)
    }

    /// Why no event can be taken now, if so.
    #[must_use]
    pub fn unavailable(&self) -> Option<&'static str> {
        if self.inner.closing.load(Ordering::Relaxed) {
            return Some("the server is shutting down");
        }
        (!self.inner.disk.has_space()).then_some("the disk is nearly full")
    }

    /// How checkpoints are getting on.
    pub(crate) fn progress(&self) -> &CheckpointProgress {
        self.inner.memory.progress()
    }

    pub(crate) fn config(&self) -> &EngineConfig {
        &self.inner.config
    }

    /// What changes exactly when an answer about `project` can have changed: the incarnation of the data, and the position
    /// of the project's last event that counted.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn version(&self, project: ProjectId) -> Result<(u128, Position), AskError> {
        // While its partition is rebuilt, the version is that of an earlier state.
        let check = || self.inner.health.check(partition_of(project)).map_err(|why| AskError::Lost(Fault::io(why)));
        check()?;
        let known = || Some(self.inner.versions.get(&project)?.load(Ordering::Acquire));
        if let Some(version) = known() {
            check()?;
            return Ok((self.inner.incarnation, version));
        }
        // Not loaded since the start: asking for it loads it.
        self.ask(project, |_| ()).await?;
        Ok((self.inner.incarnation, known().unwrap_or(0)))
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

    /// The position of a project's last event that counted.
    pub(crate) async fn last(&self, project: ProjectId) -> Result<Position, AskError> {
        self.ask_shard(project, move |shard| shard.last(project)).await?.map_err(AskError::Lost)
    }

    pub(crate) async fn ask_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        question: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Result<R, AskError> {
        self.post_to_shard(project, question)?.received().await
    }

    fn post_to_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        question: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Result<Posted<R>, AskError> {
        let organization = self.registry().policy(project).map(|keyed| keyed.policy.organization);
        let holders = [organization.map(Holder::Organization), None];
        let place = self.inner.questions.take_for(holders, 1).map_err(|_| AskError::Busy)?;
        let (answer, wait) = oneshot::channel();
        let shard = &self.inner.shards[self.shard_of(project)];
        let ask = Ask { organization, question: Box::new(Asked { answer, question, _place: place }) };
        #[expect(clippy::disallowed_methods, reason = "the gate of questions bounds what waits in the mailbox")]
        shard.do_send(ask);
        Ok(Posted { answer: wait })
    }

    /// Sends a question on its way, without waiting for the answer.
    pub(crate) fn post<Q: Query + Sync>(
        &self,
        project: ProjectId,
        question: Q,
    ) -> Result<Posted<Result<Q::Partial, Fault>>, AskError> {
        self.post_to_shard(project, move |shard| shard.answer(project, &question))
    }

    /// Sends a question on its way to several projects of one shard, at once. Their parts come in their order.
    pub(crate) fn post_to_several<Q: Query + Sync>(
        &self,
        projects: Vec<ProjectId>,
        question: Q,
    ) -> Result<PostedParts<Q>, AskError> {
        let Some(first) = projects.first().copied() else { return Err(AskError::NoAnswer) };
        self.post_to_shard(first, move |shard| projects.iter().map(|project| shard.answer(*project, &question)).collect())
    }

    /// Which shard a project is on.
    pub(crate) fn shard_of(&self, project: ProjectId) -> usize {
        usize::from(partition_of(project)) % self.inner.shards.len()
    }

    pub(crate) fn incarnation(&self) -> u128 {
        self.inner.incarnation
    }

    /// The tracker of the embedded API.
    #[must_use]
    pub fn tracker(&self) -> Tracker {
        Tracker { ingest: self.inner.ingest.clone() }
    }

    /// A tracker for the calling thread, which must be one of an actix system (an HTTP worker).
    #[must_use]
    pub fn local_tracker(&self) -> Tracker {
        Tracker { ingest: IngestActor::new(Arc::clone(&self.inner.log), Arc::clone(&self.inner.health)).start() }
    }

    /// Has `/readyz` fail from here on, so that nobody sends new work here; what comes is still done.
    pub fn begin_drain(&self) {
        self.inner.draining.store(true, Ordering::SeqCst);
    }

    /// Whether every shard answers and events can be taken: what `/readyz` asks.
    ///
    /// # Errors
    /// Why not.
    pub async fn ready(&self) -> Result<(), String> {
        if self.inner.draining.load(Ordering::SeqCst) {
            return Err("the server is shutting down".to_owned());
        }
        if let Some(why) = self.unavailable() {
            return Err(why.to_owned());
        }
        if let Some(why) = self.checkpoints_late() {
            return Err(why);
        }
        if let Some((partition, condition, _)) = self.inner.health.unwell().first() {
            return Err(match condition {
                Condition::Failed => format!("partition {partition} has failed; the log says why"),
                _ => format!("partition {partition} is being rebuilt"),
            });
        }
        for shard in &self.inner.shards {
            let Some(place) = self.inner.questions.take(1) else { return Err("too many questions are waiting".to_owned()) };
            let (answer, wait) = oneshot::channel();
            let question = Box::new(Asked { answer, question: |_: &mut Shard| (), _place: place });
            #[expect(clippy::disallowed_methods, reason = "one small question per shard and readiness check")]
            shard.do_send(Ask { organization: None, question });
            if !matches!(tokio::time::timeout(ASK_TIMEOUT, wait).await, Ok(Ok(()))) {
                return Err("a shard does not answer".to_owned());
            }
        }
        Ok(())
    }
}

impl Tracker {
    /// Records events of one project; answers when they are on disk and in the rollups. The [`Permit`] for them is kept
    /// until then, also where nobody waits any more.
    ///
    /// # Errors
    /// See [`TrackError`].
    pub(crate) async fn record(&self, events: Events, permit: Permit) -> Result<Vec<Outcome>, TrackError> {
        let (answer, wait) = oneshot::channel();
        #[expect(clippy::disallowed_methods, reason = "the permit is the bound")]
        self.ingest.do_send(Track { events, permit, answer });
        match tokio::time::timeout(APPLY_TIMEOUT, wait).await {
            Ok(Ok(result)) => result,
            _ => Err(TrackError::OutcomeUnknown),
        }
    }
}
