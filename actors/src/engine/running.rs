//! The parts of a running engine, and their start.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use actix::Addr;
use headcount_common::Owners;
use headcount_common::secrets::Secrets;
use headcount_control::Registry;
use headcount_storage::starts::Starts;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::config::{EngineConfig, OpenError};
use super::derived::derived_dirs;
use super::marks::start_tracking;
use super::open::{Opened, OpenedState, last_position};
use super::partitions::Partitions;
use super::threads::{Threads, sink, start_system};
use super::verifications::Verifications;
use crate::admission_gate::Gate;
use crate::archiver::{ArchiveSettings, Archiver, EngineSources};
use crate::geo::GeoDatabase;
use crate::history::LoggedEvents;
use crate::ingest::{Admission, DiskGuard, Ingest};
use crate::live::Watches;
use crate::memory_budget::MemoryShares;
use crate::parts::EngineParts;
use crate::questions::Questions;
use crate::scans::{ScanSettings, Scans};
use crate::shard::{MemoryUsage, PartitionContext, ShardActor, ShardClient, ShardMap};

/// The parts of a running engine, which stops when they are dropped.
pub struct RunningEngine {
    /// Admits requests.
    pub admission: Arc<Admission>,
    /// Records events.
    pub ingest: Arc<Ingest>,
    /// Takes partitions over and gives them up, on a node of a cluster.
    pub partitions: Arc<Partitions>,
    pub(super) parts: EngineParts,
    pub(super) config: EngineConfig,
    pub(super) memory: Arc<MemoryUsage>,
    pub(super) watches: Watches,
    /// The permit for a backup. Only one backup runs at a time.
    pub(super) backups: Arc<Semaphore>,
    pub(super) verifications: Verifications,
    pub(super) threads: Mutex<Option<Threads>>,
}

impl Deref for RunningEngine {
    type Target = EngineParts;

    fn deref(&self) -> &EngineParts {
        &self.parts
    }
}

fn admission(config: &EngineConfig, shared: &PartitionContext, registry: &Arc<Registry>) -> Admission {
    let others = MemoryShares::of(config.memory_bytes).admission;
    let [gate, others] = [config.admission_bytes.unwrap_or(others), others].map(Gate::of_bodies);
    Admission {
        gate,
        others,
        disk: DiskGuard::new(&config.data_dir, config.min_free_bytes),
        health: Arc::clone(&shared.health),
        checkpoints: Arc::clone(&shared.checkpoints),
        deleted: Arc::clone(&shared.deleted),
        registry: Arc::clone(registry),
        closing: Arc::default(),
        draining: AtomicBool::new(false),
    }
}

fn not_started(error: std::io::Error) -> OpenError {
    OpenError::Start(error.to_string())
}

fn questions(
    (config, owners): (&EngineConfig, Arc<Owners>),
    (registry, secrets): (Arc<Registry>, Secrets),
    (incarnation, starts): (u128, Starts),
    (addresses, map): (Vec<Addr<ShardActor>>, ShardMap),
    (shared, logged): (&PartitionContext, LoggedEvents),
) -> Arc<Questions> {
    Arc::new(Questions {
        registry,
        clock: Arc::clone(&config.clock),
        owners,
        ask_node: config.ask_node.clone(),
        secrets,
        starts,
        incarnation,
        shards: Arc::new(ShardClient::new(addresses, map)),
        health: Arc::clone(&shared.health),
        versions: Arc::clone(&shared.versions),
        floors: Arc::clone(&shared.floors),
        erasures: Arc::clone(&shared.erasures),
        logged,
        timeout: config.question_timeout,
    })
}

fn scan_settings(config: &EngineConfig) -> ScanSettings<'_> {
    ScanSettings {
        data_dir: &config.data_dir,
        memory_bytes: config.memory_bytes,
        view_bytes: config.view_bytes(),
        max_active: config.max_active_identities,
    }
}

fn archive_settings(config: &EngineConfig) -> ArchiveSettings {
    ArchiveSettings {
        policy: config.archive,
        memory_bytes: config.memory_bytes,
        min_free_bytes: config.min_free_bytes,
        data_dir: config.data_dir.clone(),
        derived_dirs: derived_dirs(&config.data_dir),
        clock: Arc::clone(&config.clock),
        probe: config.archive_probe.clone(),
    }
}

/// Starts the threads of an engine whose data directory is open.
pub(super) fn start(config: EngineConfig, opened: Opened, geo: Option<GeoDatabase>) -> Result<RunningEngine, OpenError> {
    let Opened { registry, owners, secrets, history, logged, state, positions, .. } = opened;
    let OpenedState { shards, context: shared, memory, store, writer, writer_thread, verifier } = state;
    let (map, delivered) = (ShardMap::new(shards.len()), Arc::<AtomicU64>::new(last_position(&*history).into()));
    let ((actors, addresses), unknown) = (start_system(shards)?, Arc::default());
    let sink = sink(addresses.clone(), map, (Arc::clone(&delivered), Arc::clone(&unknown)));
    let log = (opened.commit)(Box::new(sink)).map_err(not_started)?;
    let admission = Arc::new(admission(&config, &shared, &registry));
    let (tracker, mark) = start_tracking(&actors.system, &admission.gate, (&log, &shared.health), config.apply_timeout)?;
    let questions = questions((&config, owners), (registry, secrets), positions, (addresses, map), (&shared, logged));
    let (reads, closing) = ((history, Arc::clone(&shared.dead)), Arc::clone(&admission.closing));
    let scans = Scans::new(Arc::clone(&questions), reads, closing, &scan_settings(&config), &actors.system);
    let ingest = Arc::new(Ingest {
        questions: Arc::clone(&questions),
        clock_guard: Arc::clone(&opened.clock_guard),
        admission: Arc::clone(&admission),
        log,
        imports: opened.imports,
        tracker,
        apply_timeout: config.apply_timeout,
        quotas: shared.limits,
        counts: opened.intake,
        geo,
        features: Arc::default(),
        arbiter: actors.system.arbiter().clone(),
        retention_interval: config.retention_interval,
    });
    let backups = Arc::new(Semaphore::new(1));
    let sources = EngineSources {
        settings: archive_settings(&config),
        scans: scans.clone(),
        ingest: Arc::clone(&ingest),
        files: opened.files,
        store,
        writer: writer.clone(),
        mark,
        backups: Arc::clone(&backups),
        deleted: Arc::clone(&shared.deleted),
        delivered,
        stop: Arc::default(),
    };
    let (archiver, archiving) = Archiver::spawn(sources, Arc::clone(&opened.archives.common)).map_err(not_started)?;
    let partitions = Partitions {
        ingest: Arc::clone(&ingest),
        archives: opened.archives,
        archiver: Arc::clone(&archiver),
        dead: shared.dead,
        deleted: shared.deleted,
        unknown,
        damage: shared.damage,
        followed: AtomicU64::new(0),
        data_dir: config.data_dir.clone(),
    };
    let (data_dir, stores) = (config.data_dir.clone(), opened.stores);
    let threads = Threads::new(actors, (writer, writer_thread), verifier, (archiver, archiving), opened.lock);
    Ok(RunningEngine {
        admission,
        ingest,
        partitions: Arc::new(partitions),
        parts: EngineParts { questions, scans, stores, clock_guard: opened.clock_guard, data_dir },
        config,
        memory,
        watches: Watches::new(shared.feeds),
        backups,
        verifications: Verifications::default(),
        threads: Mutex::new(Some(threads)),
    })
}
