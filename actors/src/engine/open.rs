//! Opening a data directory: what is recovered, what is rebuilt, and in which order.

use std::sync::Arc;
use std::thread::{JoinHandle, ScopedJoinHandle};

use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::intake::event::Position;
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{History, Log};
use headcount_storage::store::{Check, DiskStore, Store, StoreOptions};

use crate::checkpoint_writer::Keeper;
use crate::dead_letters::DeadLetters;
use crate::derived::Derived;
use crate::engine::config::{EngineConfig, OpenError, directory};
use crate::memory_budget::MemoryShares;
use crate::registry::Registry;
use crate::secrets::Secrets;
use crate::shard::{Checkpoints, Limits, Memory, PARTITIONS, Shard, Shared, Shares, Versions};
use crate::verifier::{DamageNote, Unchecked, Verifier, before_serving};

/// Opens everything under `config.data_dir`, with the shards brought up to the end of the log.
pub(crate) fn open(config: &EngineConfig) -> Result<Parts, OpenError> {
    let dir = config.data_dir.clone();
    let lock = DirLock::acquire(&dir).map_err(directory)?;
    let format = Format::open(&dir).map_err(directory)?;
    let secrets = Secrets::open(&dir.join("keys"))?;
    let registry = Registry::open(&dir)?;
    let (log, recovery) = Log::open(dir.join("log"), config.log.clone())?;
    if recovery.cut_bytes > 0 {
        tracing::warn!(
            bytes = recovery.cut_bytes,
            "an unfinished write at the end of the log was cut; nothing acknowledged was in it"
        );
    }
    let dead = dir.join("dead-letters.ndjson");
    let unreadable = |error| OpenError::Directory(format!("{} could not be read: {error}", dead.display()));
    let dead = Arc::new(DeadLetters::open(&dead).map_err(unreadable)?);
    let history: Arc<dyn History> = Arc::new(log.reader());
    let derived = Derived { dir: &dir, options: store_options(config), hasher: secrets.hasher() };
    let opening = Opening { derived: &derived, config, history: &history, dead: &dead };
    let (store, format) = derived.open(format, log.last_position() == 0)?;
    let (state, format) = match opening.state(store, format) {
        Ok(state) => (state, format),
        Err(Fault { kind: FaultKind::DamagedStore | FaultKind::DamagedIndex, message }) => {
            let (store, format) = derived.begin_anew(format, &message)?;
            (opening.state(store, format)?, format)
        }
        Err(fault @ Fault { kind: FaultKind::Io | FaultKind::DamagedLog | FaultKind::Defect, .. }) => return Err(fault.into()),
    };
    let (reflected, last) = (state.reflected(), log.last_position());
    if reflected > last {
        return Err(OpenError::Directory(format!(
            "the log ends at position {last}, but the store reflects position {reflected}: a part of the log is missing; restore it \
             from a backup (or remove the store to go on with what the log still has)"
        )));
    }
    derived.remove_old();
    let incarnation = format.incarnation.number();
    Ok(Parts { registry, secrets, log, history, dead, state, lock, incarnation })
}

pub(crate) struct Parts {
    pub(crate) registry: Registry,
    pub(crate) secrets: Secrets,
    pub(crate) log: Log,
    pub(crate) history: Arc<dyn History>,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) state: State,
    pub(crate) lock: DirLock,
    pub(crate) incarnation: u128,
}

/// The shards, up to the end of the log.
pub(crate) struct State {
    pub(crate) shards: Vec<Shard>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) memory: Arc<Shares>,
    pub(crate) keeper: Keeper,
    pub(crate) keeper_thread: JoinHandle<()>,
    pub(crate) verifier: Verifier,
    pub(crate) damage: Arc<DamageNote>,
}

type Opened = (Vec<Shard>, Shared, Arc<Shares>);

impl State {
    /// The last position that any partition reflects.
    fn reflected(&self) -> u64 {
        self.shards.iter().map(Shard::reflected).max().unwrap_or(0)
    }
}

struct Opening<'a> {
    derived: &'a Derived<'a>,
    config: &'a EngineConfig,
    history: &'a Arc<dyn History>,
    dead: &'a Arc<DeadLetters>,
}

impl Opening<'_> {
    /// Opens all shards and replays the log into them, each on a thread of its own. On failure the store is closed when this
    /// returns, so that it can be moved aside.
    fn state(&self, store: DiskStore, format: Format) -> Result<State, Fault> {
        let store = Arc::new(store);
        let shared: Arc<dyn Store> = Arc::<DiskStore>::clone(&store);
        let spawned = Keeper::spawn(shared);
        let (keeper, keeper_thread) =
            spawned.map_err(|error| Fault::io(format!("could not start the checkpoint thread: {error}")))?;
        let fault = match self.open_shards(&store, format, &keeper) {
            Ok((shards, shared, memory)) => {
                let verifier = Verifier::spawn(&shared.unchecked, Arc::clone(&shared.damage));
                let Shared { versions, limits, damage, .. } = shared;
                return Ok(State { shards, versions, limits, memory, keeper, keeper_thread, verifier, damage });
            }
            Err(fault) => fault,
        };
        keeper.stop_trying();
        drop(keeper);
        let _ = keeper_thread.join();
        match Arc::into_inner(store) {
            Some(store) => drop(store),
            None => return Err(Fault::defect(format!("the store is still in use, after: {fault}"))),
        }
        Err(fault)
    }

    fn open_shards(&self, store: &Arc<DiskStore>, format: Format, keeper: &Keeper) -> Result<Opened, Fault> {
        let began = std::time::Instant::now();
        let shared = Shared {
            store: Arc::<DiskStore>::clone(store),
            hasher: self.derived.hasher.clone(),
            versions: Arc::new(Versions::new()),
            external_ids_dir: self.derived.index_dir(),
            index: self.derived.index(format),
            health: Arc::default(),
            limits: Arc::new(Limits::new(self.config.quotas)),
            progress: Arc::clone(&self.config.progress),
            unchecked: Arc::new(Unchecked::begin(store, before_serving(self.config.check_before_serving))?),
            damage: Arc::new(DamageNote::new(store)),
        };
        let count = self.config.shards.clamp(1, usize::from(PARTITIONS));
        let assignment = assignment(count);
        let shares = Arc::new(Shares::default());
        let open = |shard: usize| {
            let numbers: Vec<u16> = (0..PARTITIONS).filter(|number| assignment[usize::from(*number)] == shard).collect();
            let checkpoints = Checkpoints::new(keeper.clone(), self.config.checkpoints);
            let probe = self.config.probe.clone();
            let memory = Memory::new(self.config.record_bytes(), Arc::clone(&shares));
            Shard::open(&numbers, shared.clone(), Arc::clone(self.history), Arc::clone(self.dead), probe, checkpoints, memory)
        };
        self.config.progress.begin(count, last_position(&**self.history));
        let open = |shard: usize| {
            let opened = open(shard);
            self.config.progress.reached(shard, Position::MAX);
            opened
        };
        let open = &open;
        let shards: Result<Vec<Shard>, Fault> = std::thread::scope(|scope| {
            let spawn =
                |shard| std::thread::Builder::new().name(format!("open-{shard}")).spawn_scoped(scope, move || open(shard));
            // All are started before one is waited for.
            let threads: Vec<_> = (0..count).map(spawn).collect();
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
        Ok((shards, shared, shares))
    }
}

/// The last position of any partition.
pub(crate) fn last_position(history: &dyn History) -> Position {
    (0..PARTITIONS).map(|partition| history.last_position(partition)).max().unwrap_or(0)
}

/// Which shard hosts each partition.
pub(crate) fn assignment(shards: usize) -> Vec<usize> {
    (0..usize::from(PARTITIONS)).map(|partition| partition % shards).collect()
}

fn store_options(config: &EngineConfig) -> StoreOptions {
    StoreOptions { cache_bytes: MemoryShares::of(config.memory_bytes).store_cache as u64, check: Check::Small }
}
