//! Opening a data directory: what is recovered, what is rebuilt, and in which order.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use headcount_domain::fold::Fault;
use headcount_storage::files::create_private_dir;
use headcount_storage::format::{Format, Incarnation};
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogReader};
use headcount_storage::store::{DiskStore, Opened, SledOptions};

use crate::aggregator::{Checkpoints, Memory, PARTITIONS, Shard, Shared, Shares, Versions};
use crate::config::{EngineConfig, OpenError, directory};
use crate::dead_letters::DeadLetters;
use crate::keeper::Keeper;
use crate::memory::MemoryShares;
use crate::registry::Registry;
use crate::secrets::Secrets;

/// Opens everything under `config.data_dir`, with the shards brought up to the end of the log.
pub(crate) fn open(config: &EngineConfig) -> Result<Parts, OpenError> {
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
    let (mut store, opened) = DiskStore::open_or_reset(&dir.join("store"), store_options(config)).map_err(directory)?;
    if let Opened::Reset { reason, .. } = &opened {
        tracing::warn!(%reason, "the store was damaged and is rebuilt from the log");
    }
    if opened == Opened::Created && reader.last_position() > 0 {
        tracing::warn!("the store is missing and is rebuilt from the log");
    }
    let mut fresh = opened != Opened::Clean;
    if secrets.created() && !fresh {
        tracing::warn!("the hash key is new, so the store is rebuilt from the log");
        store = reset_store(store, config, &dir)?;
        fresh = true;
    }
    if fresh {
        format = renew(format, &dir)?;
    }
    let opening = Opening { dir: &dir, config, secrets: &secrets, reader: &reader, dead: &dead };
    let state = match opening.state(store, format.incarnation) {
        Ok(state) => state,
        Err((fault, store)) => {
            tracing::warn!(%fault, "the store is damaged and is rebuilt from the log");
            let store = reset_store_if(store, config, &dir)?;
            format = renew(format, &dir)?;
            opening.state(store, format.incarnation).map_err(|(fault, _)| fault)?
        }
    };
    let (reflected, last) = (state.reflected(), reader.last_position());
    if reflected > last {
        return Err(OpenError::Directory(format!(
            "the log ends at position {last}, but the store reflects position {reflected}: a part of the log is missing; restore it \
             from a backup (or remove the store to go on with what the log still has)"
        )));
    }
    let incarnation = format.incarnation.number();
    Ok(Parts { registry, secrets, log, reader, dead, state, lock, incarnation })
}

pub(crate) struct Parts {
    pub(crate) registry: Registry,
    pub(crate) secrets: Secrets,
    pub(crate) log: Log,
    pub(crate) reader: LogReader,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) state: State,
    pub(crate) lock: DirLock,
    pub(crate) incarnation: u128,
}

/// The shards, up to the end of the log.
pub(crate) struct State {
    pub(crate) shards: Vec<Shard>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) memory: Arc<Shares>,
    pub(crate) keeper: Keeper,
    pub(crate) keeper_thread: JoinHandle<()>,
}

impl State {
    /// The last position that any partition reflects.
    fn reflected(&self) -> u64 {
        self.shards.iter().map(Shard::reflected).max().unwrap_or(0)
    }
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
    fn state(&self, store: DiskStore, incarnation: Incarnation) -> Result<State, (Fault, Option<DiskStore>)> {
        let store = Arc::new(store);
        let result = self.open_shards(&store, incarnation);
        result.map_err(|fault| (fault, Arc::into_inner(store)))
    }

    fn open_shards(&self, store: &Arc<DiskStore>, incarnation: Incarnation) -> Result<State, Fault> {
        let store: Arc<dyn headcount_storage::store::Store> = Arc::<DiskStore>::clone(store);
        let began = std::time::Instant::now();
        let versions = Arc::new(Versions::new());
        let shared = Shared {
            store: Arc::clone(&store),
            hasher: self.secrets.hasher().clone(),
            versions: Arc::clone(&versions),
            fingerprints_dir: self.dir.join("fingerprints"),
            incarnation,
        };
        let (keeper, keeper_thread) =
            Keeper::spawn(store).map_err(|error| Fault::io(format!("could not start the checkpoint thread: {error}")))?;
        let count = self.config.shards.clamp(1, usize::from(PARTITIONS));
        let assignment = assignment(count);
        let shares = Arc::new(Shares::default());
        let open = |shard: usize| {
            let numbers: Vec<u16> = (0..PARTITIONS).filter(|number| assignment[usize::from(*number)] == shard).collect();
            let checkpoints = Checkpoints::new(keeper.clone(), self.config.checkpoints);
            let probe = self.config.probe.clone();
            let memory = Memory::new(self.config.record_bytes(), Arc::clone(&shares));
            Shard::open(&numbers, shared.clone(), self.reader.clone(), Arc::clone(self.dead), probe, checkpoints, memory)
        };
        let shards: Result<Vec<Shard>, Fault> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|shard| scope.spawn(move || open(shard))).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(Fault::defect("a shard panicked at start"))))
                .collect()
        });
        let shards = shards?;
        let replayed: u64 = shards.iter().map(Shard::replayed).sum();
        let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        tracing::info!(replayed, took_ms, "the state is up to the end of the log");
        Ok(State { shards, versions, memory: shares, keeper, keeper_thread })
    }
}

/// Which shard hosts each partition.
pub(crate) fn assignment(shards: usize) -> Vec<usize> {
    (0..usize::from(PARTITIONS)).map(|partition| partition % shards).collect()
}

fn store_options(config: &EngineConfig) -> SledOptions {
    SledOptions { cache_bytes: MemoryShares::of(config.memory_bytes).store_cache as u64, ..SledOptions::default() }
}

/// Begins a new life of the state: what was derived from the log before belongs to the old one.
fn renew(format: Format, dir: &Path) -> Result<Format, OpenError> {
    let fingerprints = dir.join("fingerprints");
    if fingerprints.exists() {
        std::fs::remove_dir_all(&fingerprints).map_err(directory)?;
    }
    format.renew(dir).map_err(directory)
}

fn reset_store(store: DiskStore, config: &EngineConfig, dir: &Path) -> Result<DiskStore, OpenError> {
    reset_store_if(Some(store), config, dir)
}

/// Moves the store aside and opens an empty one.
fn reset_store_if(store: Option<DiskStore>, config: &EngineConfig, dir: &Path) -> Result<DiskStore, OpenError> {
    drop(store);
    DiskStore::start_over(&dir.join("store"), store_options(config)).map_err(directory)
}
