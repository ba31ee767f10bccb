//! Opening a data directory: recovers the log, opens or rebuilds the store, and replays the log.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread::{JoinHandle, ScopedJoinHandle};

use headcount_common::local::LocalStores;
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_common::{DocumentStores, PARTITIONS, SharedArchive, SharedLetters};
use headcount_control::Registry;
use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::intake::event::Position;
use headcount_domain::time::Instant;
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogTrimmer};
use headcount_storage::starts::Starts;
use headcount_storage::store::{Check, DiskStore, Store, StoreOptions};

use super::config::{EngineConfig, OpenError, directory};
use super::derived::Derived;
use super::documents::open_privacy_requests;
use super::membership::{Membership, StartCommit};
use crate::backup::remove_left_over;
use crate::checkpoint_writer::CheckpointWriter;
use crate::clock_guard::ClockGuard;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::fault;
use crate::history::{History, HistoryPiece, LoggedEvents, PartitionArchives, Past, SealedEvents, Wanted};
use crate::intake_counts::{INTAKE_DIR, IntakeCounts};
use crate::live::Feeds;
use crate::local_log::LocalLog;
use crate::local_remains::LocalRemains;
use crate::memory_budget::MemoryShares;
use crate::privacy::PrivacyRequests;
use crate::recompute::remove_scratch;
use crate::shard::{
    Applier, CheckpointProgress, Checkpoints, Evictor, Floors, MemoryUsage, PartitionContext, PartitionHealth, QuotaTable, Shard,
    ShardMap, Versions,
};
use crate::verifier::{DamageNote, Unchecked, Verifier, before_serving};

/// Opens everything under `config.data_dir`, with the shards brought up to the end of the log. A
/// node of a cluster begins without partitions.
pub(crate) fn open(config: &EngineConfig, membership: Option<Membership>) -> Result<Opened, OpenError> {
    let dir = config.data_dir.clone();
    let lock = DirLock::acquire(&dir).map_err(directory)?;
    let shared = membership.as_ref().map(|membership| membership.incarnation);
    let answers = membership.as_ref().map(|membership| membership.answers);
    let format =
        shared.map_or_else(|| Format::open(&dir), |incarnation| Format::open_as(&dir, incarnation)).map_err(directory)?;
    remove_left_over(&dir).map_err(directory)?;
    remove_scratch(&dir).map_err(directory)?;
    let shared_archive = membership.as_ref().and_then(|membership| membership.archive.clone());
    let shared_letters = membership.as_ref().map(|membership| Arc::clone(&membership.letters));
    let stores: Arc<dyn DocumentStores> = match membership.as_ref() {
        Some(membership) => Arc::clone(&membership.stores),
        None => Arc::new(LocalStores::new(&dir)),
    };
    let (registry, log, logged) = open_log(config, membership)?;
    if shared.is_none() {
        registry.give_erasures_up()?;
    }
    let open_keys = if shared.is_some() { Secrets::open_shared } else { Secrets::open };
    let secrets = open_keys(&dir.join(KEYS_DIR))?;
    let clock_guard = ClockGuard::open(&dir, Arc::clone(&config.clock), || last_received(&log, &logged))
        .map_err(|error| OpenError::Directory(format!("what is known of the clock can't be read: {error}")))?;
    let intake = IntakeCounts::open(&dir.join(INTAKE_DIR), config.clock.now(), clock_guard.now())
        .map_err(|error| OpenError::Directory(format!("the counts of dropped events can't be opened: {error}")))?;
    let privacy = open_privacy_requests(&*stores, (config, &registry), clock_guard.now())?;
    let dead = Arc::new(open_letters(&dir, shared_letters)?);
    let deleted = Arc::new(open_deleted(&dir, &registry, shared.is_some())?);
    let erasures = Arc::new(Erasures::open(secrets.hasher().clone(), &registry, &deleted.with_erased()));
    let archive = OpenedArchive::open(&dir, (&log, &deleted), shared_archive)?;
    let past = Past::new(Arc::clone(&archive.archives), logged.clone(), Arc::clone(&erasures));
    let history: Arc<dyn History> = Arc::new(past);
    let derived = Derived { dir: &dir, options: store_options(config), hasher: secrets.hasher(), is_shared: shared.is_some() };
    let quotas = Arc::new(QuotaTable::new(config.quotas, registry.own_quotas()));
    let opening = Opening {
        derived: &derived,
        config,
        history: &history,
        dead: &dead,
        deleted: &deleted,
        erasures: &erasures,
        quotas: &quotas,
    };
    let (store, format) = derived.open(format, log.last_position() == 0)?;
    let (state, format) = opening.state_or_recreated(store, format)?;
    check_log_is_whole(&state.shards, &*history)?;
    derived.remove_old();
    let incarnation = answers.unwrap_or(format.incarnation).number();
    let starts = starts(&log, &dir, incarnation)?;
    Ok(Opened {
        registry,
        clock_guard: Arc::new(clock_guard),
        stores,
        intake: Arc::new(intake),
        privacy,
        secrets,
        log,
        history,
        archive,
        logged,
        dead,
        state,
        lock,
        incarnation,
        starts,
    })
}

/// Returns the starts that positions are counted from.
fn starts(log: &EventLog, dir: &Path, incarnation: u128) -> Result<Starts, OpenError> {
    match log {
        EventLog::Local(log) => Starts::begin(dir, log.last_position()).map_err(directory),
        // Brokers keep confirmed messages, so a position means the same event until the brokers are
        // restored from copies.
        EventLog::Shared(_) => Ok(Starts::one(incarnation as u64)),
    }
}

/// Opens the registry, and the recording and reading of events.
fn open_log(config: &EngineConfig, membership: Option<Membership>) -> Result<(Arc<Registry>, EventLog, LoggedEvents), OpenError> {
    let dir = &config.data_dir;
    if let Some(Membership { registry, log, commit, .. }) = membership {
        return Ok((Arc::new(registry(dir)?), EventLog::Shared(commit), LoggedEvents::of(log)));
    }
    let registry = Arc::new(Registry::open(dir)?);
    let (log, recovery) = Log::open(dir.join("log"), config.log.clone())?;
    if recovery.cut_bytes > 0 {
        tracing::warn!(
            bytes = recovery.cut_bytes,
            "an unfinished write at the end of the log was cut; nothing acknowledged was in it"
        );
    }
    let logged = LoggedEvents::new(log.reader());
    Ok((registry, EventLog::Local(Box::new(log)), logged))
}

/// Returns the time of the last event in this machine's log, if it has one and can be read.
fn last_received(log: &EventLog, logged: &LoggedEvents) -> Option<Instant> {
    let EventLog::Local(_) = log else { return None };
    let wanted = |partition| Wanted::partition(partition, logged.last_position(partition).saturating_sub(1));
    let wanted: Vec<Wanted> = (0..PARTITIONS).map(wanted).collect();
    let mut received = None;
    let read = logged.read(&wanted, &mut |piece: HistoryPiece| {
        received = received.max(piece.events.iter().map(|(_, event)| event.received).max());
        ControlFlow::Continue(())
    });
    read.ok().and(received)
}

/// Opens the list of projects in deletion, or with data left on this machine's disk.
fn open_deleted(dir: &Path, registry: &Registry, is_shared: bool) -> Result<DeletedProjects, OpenError> {
    let remains = LocalRemains::open(dir, registry)?;
    if !is_shared {
        remains.note_under_way(registry)?;
    }
    Ok(DeletedProjects::of(remains, registry))
}

fn open_letters(dir: &Path, shared: Option<Arc<dyn SharedLetters>>) -> Result<DeadLetters, OpenError> {
    let path = dir.join("dead-letters.ndjson");
    let opened = match shared {
        Some(shared) => DeadLetters::open_shared(&path, shared),
        None => DeadLetters::open(&path),
    };
    opened.map_err(|error| OpenError::Directory(format!("{} could not be read: {error}", path.display())))
}

/// Checks that the log reaches the position that the store reflects.
fn check_log_is_whole(shards: &[Shard], history: &dyn History) -> Result<(), OpenError> {
    for (partition, reflected) in shards.iter().flat_map(Shard::reflected) {
        let last = history.last_position(partition);
        if reflected > last {
            return Err(OpenError::Directory(format!(
                "the log ends at position {last}, but the store reflects position {reflected}: a part of the log is missing; \
                 restore it from a backup (or remove the store to go on with what the log still has)"
            )));
        }
    }
    Ok(())
}

/// Checks that the log reaches beyond the sealed events.
pub(super) fn check_reaches(log: &Log, sealed_until: Position) -> Result<(), OpenError> {
    let last = log.last_position();
    if last >= sealed_until {
        return Ok(());
    }
    Err(OpenError::Directory(format!(
        "the log ends at position {last}, but the archive has events up to position {sealed_until}: a part of the log is missing; \
         restore it from a backup"
    )))
}

/// The place where events are recorded.
pub(crate) enum EventLog {
    /// On this machine's disk.
    Local(Box<Log>),
    /// On the brokers of a cluster.
    Shared(StartCommit),
}

impl EventLog {
    /// The position of the last event on this machine's disk; 0 if there is none.
    pub(super) fn last_position(&self) -> Position {
        match self {
            Self::Local(log) => log.last_position(),
            Self::Shared(_) => 0,
        }
    }

    /// Returns the reader and the trimmer of the log on this machine's disk.
    pub(super) fn local_parts(&self, data_dir: &Path) -> Option<(LocalLog, LogTrimmer)> {
        match self {
            Self::Local(log) => Some((LocalLog::new(log.reader(), data_dir), log.trimmer())),
            Self::Shared(_) => None,
        }
    }
}

/// The archive of a data directory, or those of a node's future partitions.
pub(crate) struct OpenedArchive {
    pub(crate) sealed: Arc<SealedEvents>,
    pub(crate) archives: Arc<PartitionArchives>,
    /// Stores archives for all nodes.
    pub(crate) shared: Option<Arc<dyn SharedArchive>>,
}

impl OpenedArchive {
    fn open(
        dir: &Path,
        (log, deleted): (&EventLog, &Arc<DeletedProjects>),
        shared: Option<Arc<dyn SharedArchive>>,
    ) -> Result<Self, OpenError> {
        let sealed = SealedEvents::open(&dir.join("archive"), Arc::clone(deleted)).map_err(fault::of_archive)?;
        if let EventLog::Local(log) = log {
            check_reaches(log, sealed.catalog().sealed_until())?;
        }
        let sealed = Arc::new(sealed);
        Ok(Self { archives: Arc::new(PartitionArchives::new(Arc::clone(&sealed))), sealed, shared })
    }
}

/// An open data directory.
pub(crate) struct Opened {
    pub(crate) registry: Arc<Registry>,
    pub(crate) clock_guard: Arc<ClockGuard>,
    pub(crate) stores: Arc<dyn DocumentStores>,
    pub(crate) intake: Arc<IntakeCounts>,
    pub(crate) privacy: PrivacyRequests,
    pub(crate) secrets: Secrets,
    pub(crate) log: EventLog,
    pub(crate) history: Arc<dyn History>,
    pub(crate) archive: OpenedArchive,
    pub(crate) logged: LoggedEvents,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) state: OpenedState,
    pub(crate) lock: DirLock,
    pub(crate) incarnation: u128,
    pub(crate) starts: Starts,
}

/// The shards, brought up to the end of the log, and the threads that serve them.
pub(crate) struct OpenedState {
    pub(crate) shards: Vec<Shard>,
    pub(crate) shared: SharedState,
    pub(crate) memory: Arc<MemoryUsage>,
    pub(crate) store: Arc<DiskStore>,
    pub(crate) writer: CheckpointWriter,
    pub(crate) writer_thread: JoinHandle<()>,
    pub(crate) verifier: Verifier,
}

/// State that the shards share with the rest of the engine.
pub(crate) struct SharedState {
    pub(crate) versions: Arc<Versions>,
    pub(crate) floors: Arc<Floors>,
    pub(crate) quotas: Arc<QuotaTable>,
    pub(crate) health: Arc<PartitionHealth>,
    pub(crate) checkpoints: Arc<CheckpointProgress>,
    pub(crate) damage: Arc<DamageNote>,
    pub(crate) deleted: Arc<DeletedProjects>,
    pub(crate) erasures: Arc<Erasures>,
    pub(crate) feeds: Arc<Feeds>,
}

type OpenedShards = (Vec<Shard>, PartitionContext, Arc<MemoryUsage>);

struct Opening<'a> {
    derived: &'a Derived<'a>,
    config: &'a EngineConfig,
    history: &'a Arc<dyn History>,
    dead: &'a Arc<DeadLetters>,
    deleted: &'a Arc<DeletedProjects>,
    quotas: &'a Arc<QuotaTable>,
    erasures: &'a Arc<Erasures>,
}

impl Opening<'_> {
    /// Opens or rebuilds the state. A damaged store is created again.
    fn state_or_recreated(&self, store: DiskStore, format: Format) -> Result<(OpenedState, Format), OpenError> {
        match self.state(store, format) {
            Ok(state) => Ok((state, format)),
            Err(Fault { kind: FaultKind::DamagedStore | FaultKind::DamagedIndex, message }) => {
                let (store, format) = self.derived.recreate(format, &message)?;
                Ok((self.state(store, format)?, format))
            }
            Err(
                fault @ Fault {
                    kind: FaultKind::Io | FaultKind::DamagedLog | FaultKind::DamagedArchive | FaultKind::Defect, ..
                },
            ) => Err(fault.into()),
        }
    }

    /// Opens all shards and replays the log into them, each on a new thread. On failure the store
    /// is closed on return, so that it can be moved aside.
    fn state(&self, store: DiskStore, format: Format) -> Result<OpenedState, Fault> {
        let store = Arc::new(store);
        let shared: Arc<dyn Store> = Arc::<DiskStore>::clone(&store);
        let spawned = CheckpointWriter::spawn(shared);
        let (writer, writer_thread) =
            spawned.map_err(|error| Fault::io(format!("could not start the checkpoint thread: {error}")))?;
        let fault = match self.open_shards(&store, format, &writer) {
            Ok((shards, context, memory)) => {
                let verifier = Verifier::spawn(&context.unchecked, Arc::clone(&context.damage));
                let PartitionContext {
                    versions,
                    floors,
                    limits: quotas,
                    health,
                    checkpoints,
                    damage,
                    deleted,
                    erasures,
                    feeds,
                    ..
                } = context;
                let shared = SharedState { versions, floors, quotas, health, checkpoints, damage, deleted, erasures, feeds };
                return Ok(OpenedState { shards, shared, memory, store, writer, writer_thread, verifier });
            }
            Err(fault) => fault,
        };
        writer.stop_retrying();
        drop(writer);
        let _ = writer_thread.join();
        match Arc::into_inner(store) {
            Some(store) => drop(store),
            None => return Err(Fault::defect(format!("the store is still in use, after: {fault}"))),
        }
        Err(fault)
    }

    fn open_shards(&self, store: &Arc<DiskStore>, format: Format, writer: &CheckpointWriter) -> Result<OpenedShards, Fault> {
        let began = std::time::Instant::now();
        let context = PartitionContext {
            store: Arc::<DiskStore>::clone(store),
            hasher: self.derived.hasher.clone(),
            versions: Arc::new(Versions::new()),
            floors: Arc::default(),
            external_ids_dir: self.derived.index_dir(),
            index: self.derived.index(format),
            health: Arc::new(PartitionHealth::new(Arc::clone(&self.config.owners))),
            checkpoints: Arc::default(),
            limits: Arc::clone(self.quotas),
            progress: Arc::clone(&self.config.progress),
            unchecked: Arc::new(Unchecked::begin(store, before_serving(self.config.check_before_serving))?),
            damage: Arc::new(DamageNote::new(store)),
            dead: Arc::clone(self.dead),
            deleted: Arc::clone(self.deleted),
            erasures: Arc::clone(self.erasures),
            feeds: Arc::default(),
        };
        let map = ShardMap::new(self.config.shards);
        let memory = Arc::new(MemoryUsage::default());
        let open = |shard: usize| {
            let progress = Arc::clone(&context.checkpoints);
            let checkpoints = Checkpoints::new(writer.clone(), self.config.checkpoints, progress);
            let evictor = Evictor::new(self.config.record_bytes(), Arc::clone(&memory));
            let applier = Applier::new(Arc::clone(self.dead), self.config.probe.clone());
            let numbers = if self.derived.is_shared { Vec::new() } else { map.partitions_of(shard) };
            Shard::open(&numbers, context.clone(), Arc::clone(self.history), applier, checkpoints, evictor)
        };
        self.config.progress.begin(map.shards(), last_position(&**self.history));
        let open = |shard: usize| {
            let opened = open(shard);
            self.config.progress.reached(shard, Position::MAX);
            opened
        };
        let open = &open;
        let shards: Result<Vec<Shard>, Fault> = std::thread::scope(|scope| {
            let spawn =
                |shard| std::thread::Builder::new().name(format!("open-{shard}")).spawn_scoped(scope, move || open(shard));
            // Starts all threads before waiting for the first.
            let threads: Vec<_> = (0..map.shards()).map(spawn).collect();
            let opened = |thread: std::io::Result<ScopedJoinHandle<'_, Result<Shard, Fault>>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(Fault::defect("a shard panicked at start"))),
                Err(error) => Err(Fault::io(format!("could not start a thread: {error}"))),
            };
            threads.into_iter().map(opened).collect()
        });
        let shards = shards?;
        let replayed: u64 = shards.iter().map(Shard::replayed).sum();
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(replayed, took_ms, "the state is up to the end of the log");
        Ok((shards, context, memory))
    }
}

/// The last position of any partition.
pub(crate) fn last_position(history: &dyn History) -> Position {
    (0..PARTITIONS).map(|partition| history.last_position(partition)).max().unwrap_or(0)
}

pub(super) fn store_options(config: &EngineConfig) -> StoreOptions {
    StoreOptions { cache_bytes: MemoryShares::of(config.memory_bytes).store_cache as u64, check: Check::Small }
}
