//! The handle to a running engine.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use headcount_common::Owners;
use headcount_common::secrets::Secrets;
use headcount_control::Registry;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::country::Country;
use headcount_storage::log::Commit;
use headcount_storage::starts::Starts;
use headcount_storage::store::DiskStore;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::admission::Admission;
use super::common::Common;
use super::config::{EngineConfig, OpenError};
use super::derived::derived_dirs;
use super::disk_guard::DiskGuard;
#[cfg(feature = "fault-injection")]
use super::fault_injection::plant as planted;
use super::marks::{Mark, start_tracking};
use super::open::{self, Opened};
use super::threads::{Threads, sink, start_system};
use super::verifications::Verifications;
use crate::admission_gate::{Gate, Permit, Refused};
use crate::archiver::{ArchiveSettings, Archiver, EngineSources, RemovalSources};
use crate::checkpoint_writer::CheckpointWriter;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::feature::Feature;
use crate::geo::GeoDatabase;
use crate::history::{History, LoggedEvents, PartitionArchives, SealedEvents};
use crate::ingest::{Gathering, Ticket, Tracker};
use crate::intake_counts::IntakeCounts;
use crate::live::Watches;
use crate::local_log::LocalLog;
use crate::memory_budget::MemoryShares;
use crate::parts::EngineParts;
use crate::questions::Questions;
use crate::scans::{ScanSettings, Scans};
use crate::shard::{CheckpointProgress, MemoryUsage, PartitionContext, PartitionHealth, QuotaTable, ShardClient, ShardMap};
use crate::unknown_appends::UnknownAppends;
use crate::verifier::DamageNote;

/// A running engine. Clones are handles to the same one.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("data_dir", &self.inner.config.data_dir).finish_non_exhaustive()
    }
}

impl Deref for Engine {
    type Target = EngineParts;

    fn deref(&self) -> &EngineParts {
        &self.inner.parts
    }
}

pub(super) struct Inner {
    pub(super) config: EngineConfig,
    parts: EngineParts,
    pub(super) admission: Admission,
    pub(super) log: Arc<dyn Commit<Ticket>>,
    pub(super) history: Arc<dyn History>,
    pub(super) dead: Arc<DeadLetters>,
    pub(super) sealed: Arc<SealedEvents>,
    pub(super) archives: Arc<PartitionArchives>,
    pub(super) archiver: Arc<Archiver>,
    pub(super) quotas: Arc<QuotaTable>,
    pub(super) memory: Arc<MemoryUsage>,
    pub(super) damage: Arc<DamageNote>,
    pub(super) deleted: Arc<DeletedProjects>,
    pub(super) erasures: Arc<Erasures>,
    pub(super) unknown: Arc<UnknownAppends>,
    pub(super) intake: Arc<IntakeCounts>,
    pub(super) watches: Watches,
    pub(super) features: OnceLock<Vec<Arc<dyn Feature>>>,
    /// The log on this machine; `None` in a cluster.
    pub(super) local_log: Option<LocalLog>,
    /// The permit for a backup. Only one backup runs at a time.
    pub(super) backups: Arc<Semaphore>,
    pub(super) verifications: Verifications,
    /// The last record of the control log, of any writer, whose consequences were applied.
    pub(super) followed: AtomicU64,
    pub(super) threads: Mutex<Option<Threads>>,
    geo: Option<GeoDatabase>,
    tracker: Tracker,
}

fn admission(config: &EngineConfig, health: Arc<PartitionHealth>, checkpoints: Arc<CheckpointProgress>) -> Admission {
    let others = MemoryShares::of(config.memory_bytes).admission;
    let gates = [config.admission_bytes.unwrap_or(others), others].map(Gate::of_bodies);
    Admission::new(gates, DiskGuard::new(&config.data_dir, config.min_free_bytes), health, checkpoints)
}

#[cfg(not(feature = "fault-injection"))]
#[expect(clippy::unnecessary_wraps, reason = "as in `fault_injection`")]
fn planted(config: EngineConfig) -> Result<EngineConfig, OpenError> {
    Ok(config)
}

fn not_started(error: std::io::Error) -> OpenError {
    OpenError::Start(error.to_string())
}

fn questions(
    (config, owners): (&EngineConfig, Arc<Owners>),
    (registry, secrets): (Arc<Registry>, Secrets),
    (incarnation, starts): (u128, Starts),
    shards: Arc<ShardClient>,
    (shared, logged): (&PartitionContext, LoggedEvents),
) -> Questions {
    Questions {
        registry,
        clock: Arc::clone(&config.clock),
        owners,
        ask_node: config.ask_node.clone(),
        secrets,
        starts,
        incarnation,
        shards,
        health: Arc::clone(&shared.health),
        versions: Arc::clone(&shared.versions),
        floors: Arc::clone(&shared.floors),
        erasures: Arc::clone(&shared.erasures),
        logged,
        timeout: config.question_timeout,
    }
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

fn removal(
    (admitted, mark): (&Gate, Mark),
    (store, writer, log): (Arc<DiskStore>, &CheckpointWriter, &Arc<dyn Commit<Ticket>>),
    shared: &PartitionContext,
    (backups, parts): (&Arc<Semaphore>, &EngineParts),
) -> RemovalSources {
    let (log, scans) = (Arc::clone(log), parts.scans.clone());
    RemovalSources {
        admitted: admitted.clone(),
        store,
        writer: writer.clone(),
        end_segment: Box::new(move |until| log.end_segment(until)),
        mark,
        backups: Arc::clone(backups),
        erasures: Arc::clone(&shared.erasures),
        floors: Arc::clone(&shared.floors),
        forget_answers: Box::new(move |project| scans.forget(project)),
        folded: Arc::<ShardClient>::clone(&parts.questions.shards),
    }
}

impl Engine {
    /// Opens a data directory: recovers the log, rebuilds what the store lacks, and starts.
    ///
    /// Blocking; takes as long as replaying the log since the last checkpoint.
    ///
    /// # Errors
    /// See [`OpenError`]. A damaged log is an error; a damaged store is rebuilt.
    pub fn open(config: EngineConfig) -> Result<Self, OpenError> {
        let config = planted(config)?;
        let common = Common::local(&config)?;
        Self::open_with(config, common)
    }

    /// Like [`Engine::open`], with parts that others may share. A node of a cluster has no
    /// partitions until [`Engine::adopt`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_on(config: EngineConfig, common: Common) -> Result<Self, OpenError> {
        Self::open_with(planted(config)?, common)
    }

    fn open_with(config: EngineConfig, common: Common) -> Result<Self, OpenError> {
        // Opened first, so that a wrong file is reported before a long replay.
        let geo = config.geo_db.as_deref().map(GeoDatabase::open).transpose()?;
        let opened = open::open(&config, common)?;
        let engine = Self::start(config, opened, geo)?;
        engine.start_known_time();
        engine.start_retention();
        engine.start_intake();
        engine.start_features()?;
        Ok(engine)
    }

    fn start(config: EngineConfig, opened: Opened, geo: Option<GeoDatabase>) -> Result<Self, OpenError> {
        let Opened { registry, owners, intake, secrets, history, sealed, logged, dead, state, incarnation, .. } = opened;
        let open::OpenedState { shards, context: shared, memory, store, writer, writer_thread, verifier } = state;
        let (map, delivered) = (ShardMap::new(shards.len()), Arc::<AtomicU64>::new(open::last_position(&*history).into()));
        let ((actors, addresses), unknown) = (start_system(shards)?, Arc::default());
        let sink = sink(addresses.clone(), map, (Arc::clone(&delivered), Arc::clone(&unknown)));
        let log = (opened.commit)(Box::new(sink)).map_err(not_started)?;
        let admission = admission(&config, Arc::clone(&shared.health), Arc::clone(&shared.checkpoints));
        let (tracker, mark) = start_tracking(&actors.system, &admission.gate, (&log, &shared.health), config.apply_timeout)?;
        let shards = Arc::new(ShardClient::new(addresses, map));
        let (reads, starts) = ((Arc::clone(&history), Arc::clone(&dead)), (incarnation, opened.starts));
        let questions = Arc::new(questions((&config, owners), (registry, secrets), starts, shards, (&shared, logged.clone())));
        let settings = scan_settings(&config);
        let scans = Scans::new(Arc::clone(&questions), reads, admission.closing(), &settings, &actors.system);
        let (parts, backups) = (
            EngineParts {
                data_dir: config.data_dir.clone(),
                questions,
                scans,
                stores: opened.stores,
                clock_guard: opened.clock_guard,
            },
            Arc::new(Semaphore::new(1)),
        );
        let sources = EngineSources {
            settings: archive_settings(&config),
            logged,
            files: opened.files,
            dead: Arc::clone(&dead),
            delivered: Arc::clone(&delivered),
            hasher: parts.hasher().clone(),
            registry: Arc::clone(&parts.questions.registry),
            shards: Arc::clone(&parts.questions.shards),
            stop: Arc::default(),
            deleted: Arc::clone(&shared.deleted),
            removal: removal((&admission.gate, mark), (store, &writer, &log), &shared, (&backups, &parts)),
        };
        let (archiver, archiving) = Archiver::spawn(sources, Arc::clone(&sealed)).map_err(not_started)?;
        let threads = Threads::new(actors, (writer, writer_thread), verifier, (Arc::clone(&archiver), archiving), opened.lock);
        let inner = Inner {
            admission,
            parts,
            log,
            history,
            dead,
            quotas: shared.limits,
            memory,
            damage: shared.damage,
            deleted: shared.deleted,
            erasures: shared.erasures,
            unknown,
            intake,
            watches: Watches::new(shared.feeds),
            features: OnceLock::new(),
            local_log: opened.local_log,
            backups,
            verifications: Verifications::default(),
            followed: AtomicU64::new(0),
            threads: Mutex::new(Some(threads)),
            archiver,
            sealed,
            archives: opened.archives,
            geo,
            tracker,
            config,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The country of an address; `None` if unknown, or without a database
    /// ([`EngineConfig::geo_db`]).
    #[must_use]
    pub fn country_of(&self, address: IpAddr) -> Option<Country> {
        self.inner.geo.as_ref()?.country(address)
    }

    /// Admits `bytes` of events of a project that came from `address`. The bytes count against the
    /// admission limit and the shares of the project and the address, until the events are applied.
    ///
    /// # Errors
    /// The events can't be taken now.
    pub fn admit(&self, project: ProjectId, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        let permit = self.inner.admission.admit(project, address, bytes)?;
        // A deletion waits for the permits of its project. No further permit is given.
        if self.is_deleted(project) {
            return Err(Refused::Unavailable("the project was deleted"));
        }
        Ok(permit)
    }

    /// Admits `bytes` from `address` whose project is not known yet.
    ///
    /// # Errors
    /// The bytes can't be taken now.
    pub fn admit_from(&self, address: Option<IpAddr>, bytes: usize) -> Result<Permit, Refused> {
        self.inner.admission.admit_from(address, bytes)
    }

    /// Takes `bytes` of the admission limit without a holder. Returns `None` if there is no room.
    #[must_use]
    pub fn admit_bytes(&self, bytes: usize) -> Option<Permit> {
        self.inner.admission.gate.take(bytes)
    }

    /// Returns the reason why no event can be taken now, if there is one.
    #[must_use]
    pub fn unavailable(&self) -> Option<&'static str> {
        self.inner.admission.unavailable()
    }

    /// Checks that the checkpoints of a project's partition allow new events.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn accepts(&self, project: ProjectId) -> Result<(), &'static str> {
        self.inner.admission.accepts(project)
    }

    /// The tracker of the embedded API.
    #[must_use]
    pub fn tracker(&self) -> Tracker {
        self.inner.tracker.clone()
    }

    /// A tracker for the calling thread, which must be an HTTP worker (an actix arbiter).
    #[must_use]
    pub fn local_tracker(&self) -> Tracker {
        let gathering = Gathering::new(Arc::clone(&self.inner.log), Arc::clone(&self.inner.admission.health));
        Tracker::start(gathering, self.inner.config.apply_timeout)
    }
}
