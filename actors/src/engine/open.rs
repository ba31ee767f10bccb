//! Opening a data directory: recovers the log, opens or rebuilds the store, and replays the log.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread::{JoinHandle, ScopedJoinHandle};

use headcount_common::secrets::Secrets;
use headcount_common::{DocumentStores, Owners, PARTITIONS, SharedArchive, SharedLetters};
use headcount_control::Registry;
use headcount_domain::{Fault, FaultKind, Instant, Position};
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::lock::DirLock;
use headcount_storage::starts::Starts;
use headcount_storage::store::{Check, DiskStore, Store, StoreOptions};

use super::common::{Common, Installation, StartCommit};
use super::config::{EngineConfig, OpenError, directory};
use super::derived::Derived;
use crate::backup::remove_left_over;
use crate::checkpoint_writer::CheckpointWriter;
use crate::clock_guard::ClockGuard;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::fault;
use crate::history::{History, HistoryPiece, LoggedEvents, PartitionArchives, Past, SealedEvents, Wanted};
use crate::import_log::ImportLog;
use crate::intake_counts::IntakeCounts;
use crate::local_remains::LocalRemains;
use crate::memory_budget::MemoryShares;
use crate::recompute::remove_scratch;
use crate::shard::{
    Applier, Checkpoints, Evictor, MemoryUsage, PartitionContext, PartitionHealth, QuotaTable, Shard, ShardMap, Versions,
};
use crate::verifier::{DamageNote, Unchecked, Verifier, before_serving};

/// Opens everything under `config.data_dir`, with the shards brought up to the end of the log. A
/// node of a cluster begins without partitions.
pub(crate) fn open(config: &EngineConfig, common: Common) -> Result<Opened, OpenError> {
    let dir = config.data_dir.clone();
    let Common { installation, owners, log, commit, files, control, stores, codes, counts, letters } = common;
    let Installation { lock, format, answers, secrets } = installation;
    remove_left_over(&dir).map_err(directory)?;
    remove_scratch(&dir).map_err(directory)?;
    let registry = Arc::new(Registry::open_on(&dir, control)?.with_codes_in(codes));
    let imports = ImportLog::new(Arc::clone(&log), &dir);
    let logged = LoggedEvents::of(log);
    let is_shared = !logged.is_in_order();
    if !is_shared {
        registry.give_erasures_up()?;
    }
    #[cfg(feature = "cluster")]
    if is_shared {
        super::outdated_copies::remove_outdated_copies(&dir, &registry)?;
    }
    let clock_guard = ClockGuard::open(&dir, Arc::clone(&config.clock), || last_received(&logged))
        .map_err(|error| OpenError::Directory(format!("what is known of the clock can't be read: {error}")))?;
    let intake = IntakeCounts::new(counts, is_shared).map_err(directory)?;
    if !is_shared {
        let taken = intake.take(0, 1, config.clock.now(), clock_guard.now());
        taken.map_err(|error| OpenError::Directory(format!("the counts of dropped events can't be opened: {error}")))?;
    }
    let dead = Arc::new(open_letters(&dir, letters)?);
    let deleted = Arc::new(open_deleted(&dir, &registry, is_shared)?);
    let erasures = Arc::new(Erasures::open(secrets.hasher().clone(), &registry, &deleted.with_erased()));
    let sealed = SealedEvents::open(&dir.join("archive"), Arc::clone(&deleted)).map_err(fault::of_archive)?;
    let archives = Arc::new(PartitionArchives::new(Arc::new(sealed)));
    let past = Past::new(Arc::clone(&archives), logged.clone(), Arc::clone(&erasures));
    let history: Arc<dyn History> = Arc::new(past);
    let last = last_position(&*history);
    check_reaches(last, archives.common.catalog().sealed_until())?;
    let derived = Derived { dir: &dir, options: store_options(config), hasher: secrets.hasher(), is_shared };
    let quotas = Arc::new(QuotaTable::new(config.quotas, registry.own_quotas()));
    let opening = Opening {
        derived: &derived,
        config,
        owners: &owners,
        history: &history,
        dead: &dead,
        deleted: &deleted,
        erasures: &erasures,
        quotas: &quotas,
    };
    let (store, format) = derived.open(format, last == 0)?;
    let (state, format) = opening.state_or_recreated(store, format)?;
    check_log_is_whole(&state.shards, &*history)?;
    derived.remove_old();
    Ok(Opened {
        registry,
        owners,
        clock_guard: Arc::new(clock_guard),
        stores,
        intake: Arc::new(intake),
        secrets,
        commit,
        imports,
        files,
        history,
        archives,
        logged,
        state,
        lock,
        positions: (answers.unwrap_or(format.incarnation).number(), starts(answers, &dir, last)?),
    })
}

/// Returns the starts that positions are counted from.
fn starts(answers: Option<Incarnation>, dir: &Path, last: Position) -> Result<Starts, OpenError> {
    match answers {
        None => Starts::begin(dir, last).map_err(directory),
        // Brokers keep confirmed messages, so a position means the same event until the brokers are
        // restored from copies.
        Some(answers) => Ok(Starts::one(answers.number() as u64)),
    }
}

/// Returns the time of the last event that the log has now, if it has one and can be read.
fn last_received(logged: &LoggedEvents) -> Option<Instant> {
    let ends = (0..PARTITIONS).map(|partition| (partition, logged.last_position(partition)));
    let wanted = |(partition, end): (u16, Position)| Some(Wanted::partition(partition, end.checked_sub(1)?));
    let wanted: Vec<Wanted> = ends.filter_map(wanted).collect();
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
pub(super) fn check_reaches(last: Position, sealed_until: Position) -> Result<(), OpenError> {
    if last >= sealed_until {
        return Ok(());
    }
    Err(OpenError::Directory(format!(
        "the log ends at position {last}, but the archive has events up to position {sealed_until}: a part of the log is missing; \
         restore it from a backup"
    )))
}

/// An open data directory.
pub(crate) struct Opened {
    pub(crate) registry: Arc<Registry>,
    pub(crate) owners: Arc<Owners>,
    pub(crate) clock_guard: Arc<ClockGuard>,
    pub(crate) stores: Arc<dyn DocumentStores>,
    pub(crate) intake: Arc<IntakeCounts>,
    pub(crate) secrets: Secrets,
    pub(crate) commit: StartCommit,
    pub(crate) imports: ImportLog,
    pub(crate) files: Arc<dyn SharedArchive>,
    pub(crate) history: Arc<dyn History>,
    pub(crate) archives: Arc<PartitionArchives>,
    pub(crate) logged: LoggedEvents,
    pub(crate) state: OpenedState,
    pub(crate) lock: DirLock,
    /// The incarnation of answers, and the starts that positions are counted from.
    pub(crate) positions: (u128, Starts),
}

/// The shards, brought up to the end of the log, and the threads that serve them.
pub(crate) struct OpenedState {
    pub(crate) shards: Vec<Shard>,
    /// What the shards share with the rest of the engine.
    pub(crate) context: PartitionContext,
    pub(crate) memory: Arc<MemoryUsage>,
    pub(crate) store: Arc<DiskStore>,
    pub(crate) writer: CheckpointWriter,
    pub(crate) writer_thread: JoinHandle<()>,
    pub(crate) verifier: Verifier,
}

type OpenedShards = (Vec<Shard>, PartitionContext, Arc<MemoryUsage>);

struct Opening<'a> {
    derived: &'a Derived<'a>,
    config: &'a EngineConfig,
    owners: &'a Arc<Owners>,
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
                return Ok(OpenedState { shards, context, memory, store, writer, writer_thread, verifier });
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
            index: (self.derived.index_dir(), self.derived.index(format)),
            health: Arc::new(PartitionHealth::new(Arc::clone(self.owners))),
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
        self.config.progress.begin(map.shards, last_position(&**self.history));
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
            let threads: Vec<_> = (0..map.shards).map(spawn).collect();
            let opened = |thread: std::io::Result<ScopedJoinHandle<'_, Result<Shard, Fault>>>| match thread {
                Ok(thread) => thread.join().unwrap_or_else(|_| Err(Fault::defect("a shard panicked at start"))),
                Err(error) => Err(Fault::io(format!("could not start a thread: {error}"))),
            };
            threads.into_iter().map(opened).collect()
        });
        let shards = shards?;
        let replayed: u64 = shards.iter().map(|shard| shard.replayed).sum();
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
