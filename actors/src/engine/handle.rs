//! The handle to a running engine.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use headcount_common::clock::Clock;
use headcount_common::secrets::Secrets;
use headcount_common::{NodeToken, Owners, SharedArchive, partition_of};
use headcount_control::Registry;
use headcount_domain::fault::Fault;
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_domain::intake::country::Country;
use headcount_domain::intake::event::Position;
use headcount_domain::versions::Depends;
use headcount_storage::log::{Commit, GroupCommit, LogTrimmer, Outcome as LogOutcome};
use headcount_storage::starts::Starts;
use headcount_storage::store::DiskStore;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::admission::Admission;
use super::config::{EngineConfig, OpenError};
use super::derived::derived_dirs;
use super::disk_guard::DiskGuard;
use super::idle_views::start_views;
use super::marks::{Mark, start_tracking};
use super::membership::Membership;
use super::open::{self, EventLog, Opened, SharedState};
use super::scan::{NodeScans, ScanHelpers, ScanTurns, SpillDir, Views};
use super::threads::{Threads, sink, start_system};
use super::verifications::Verifications;
use crate::admission_gate::{Gate, Permit, Refused};
use crate::archiver::{ArchiveSettings, Archiver, EngineSources, RemovalSources, Trimming};
use crate::checkpoint_writer::CheckpointWriter;
use crate::clock_guard::ClockGuard;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::geo::GeoDatabase;
use crate::history::{History, LoggedEvents, PartitionArchives, SealedEvents};
use crate::ingest::{Gathering, Ticket, Tracker};
use crate::intake_counts::IntakeCounts;
use crate::live::Watches;
use crate::local_log::LocalLog;
use crate::memory_budget::MemoryShares;
use crate::privacy::PrivacyRequests;
use crate::profiles::CompanyProfiles;
use crate::shard::{AskError, Pending, ShardClient};
use crate::shard::{CheckpointProgress, Floors, MemoryUsage, PartitionHealth, QuotaTable, Shard, ShardMap, Versions};
use crate::unknown_appends::UnknownAppends;
use crate::verifier::DamageNote;
use crate::webhooks::Webhooks;

/// The number of scans that run at once. Each keeps a core busy, and may have helpers.
pub(super) const MAX_SCANS: usize = 2;
/// The number of exports that run at once. Each may wait for a slow reader.
const MAX_EXPORTS: usize = 12;

/// A running engine. Clones are handles to the same engine.
#[derive(Clone)]
pub struct Engine {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("data_dir", &self.inner.config.data_dir).finish_non_exhaustive()
    }
}

pub(super) struct Inner {
    pub(super) config: EngineConfig,
    pub(super) admission: Admission,
    pub(super) shards: Arc<ShardClient>,
    pub(super) log: Arc<dyn Commit<Ticket>>,
    pub(super) history: Arc<dyn History>,
    pub(super) logged: LoggedEvents,
    pub(super) dead: Arc<DeadLetters>,
    pub(super) sealed: Arc<SealedEvents>,
    pub(super) archives: Arc<PartitionArchives>,
    pub(super) archiver: Arc<Archiver>,
    pub(super) quotas: Arc<QuotaTable>,
    pub(super) versions: Arc<Versions>,
    pub(super) floors: Arc<Floors>,
    pub(super) memory: Arc<MemoryUsage>,
    pub(super) damage: Arc<DamageNote>,
    pub(super) deleted: Arc<DeletedProjects>,
    pub(super) erasures: Arc<Erasures>,
    pub(super) unknown: Arc<UnknownAppends>,
    pub(super) clock_guard: ClockGuard,
    pub(super) intake: Arc<IntakeCounts>,
    pub(super) privacy: PrivacyRequests,
    pub(super) profiles: CompanyProfiles,
    pub(super) watches: Watches,
    pub(super) webhooks: Arc<Webhooks>,
    pub(super) scans: ScanTurns,
    /// Scans for other nodes have their own turns, so that two nodes never wait for each other.
    pub(super) node_scans: NodeScans,
    pub(super) scratch: SpillDir,
    pub(super) views: Arc<Views>,
    pub(super) exports: Gate,
    /// The log on this machine; `None` in a cluster.
    pub(super) local_log: Option<LocalLog>,
    /// The permit for a backup. Only one backup runs at a time.
    pub(super) backups: Arc<Semaphore>,
    pub(super) verifications: Verifications,
    /// The position up to which all events were delivered to their shards.
    pub(super) delivered: Arc<AtomicU64>,
    /// The last record of the control log, of any writer, whose consequences were applied.
    pub(super) followed: AtomicU64,
    pub(super) threads: Mutex<Option<Threads>>,
    registry: Arc<Registry>,
    secrets: Secrets,
    geo: Option<GeoDatabase>,
    tracker: Tracker,
    incarnation: u128,
    starts: Starts,
}

fn admission(config: &EngineConfig, health: Arc<PartitionHealth>, checkpoints: Arc<CheckpointProgress>) -> Admission {
    let others = MemoryShares::of(config.memory_bytes).admission;
    let gates = [config.admission_bytes.unwrap_or(others), others].map(Gate::of_bodies);
    Admission::new(gates, DiskGuard::new(&config.data_dir, config.min_free_bytes), health, checkpoints)
}

/// The parts that are opened before the engine starts.
type OpenedParts = (Opened, (CompanyProfiles, Webhooks));

fn not_started(error: std::io::Error) -> OpenError {
    OpenError::Start(error.to_string())
}

/// Starts the commit of events.
fn commit(
    config: &EngineConfig,
    log: EventLog,
    sink: impl Fn(Vec<LogOutcome<Ticket>>) + Send + Sync + 'static,
) -> Result<Arc<dyn Commit<Ticket>>, OpenError> {
    match log {
        EventLog::Local(log) => Ok(Arc::new(GroupCommit::spawn(*log, config.group.clone(), sink).map_err(not_started)?)),
        EventLog::Shared(start) => Ok(start(Box::new(sink))),
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
    shared: &SharedState,
    (backups, views, shards): (&Arc<Semaphore>, &Arc<Views>, &Arc<ShardClient>),
) -> RemovalSources {
    let (log, views) = (Arc::clone(log), Arc::clone(views));
    RemovalSources {
        admitted: admitted.clone(),
        store,
        writer: writer.clone(),
        end_segment: Box::new(move |until| log.end_segment(until)),
        mark,
        backups: Arc::clone(backups),
        erasures: Arc::clone(&shared.erasures),
        floors: Arc::clone(&shared.floors),
        forget_answers: Box::new(move |project| views.forget(project)),
        folded: Arc::clone(shards),
    }
}

fn trimming(trimmer: Option<LogTrimmer>, shared: Option<Arc<dyn SharedArchive>>) -> Trimming {
    trimmer.map(Trimming::Local).or_else(|| shared.map(Trimming::Shared)).unwrap_or(Trimming::Never)
}

impl Engine {
    /// Opens a data directory: recovers the log, rebuilds what the store lacks, and starts.
    ///
    /// Blocking; takes as long as replaying the log since the last checkpoint.
    ///
    /// # Errors
    /// See [`OpenError`]. A damaged log is an error; a damaged store is rebuilt.
    pub fn open(config: EngineConfig) -> Result<Self, OpenError> {
        Self::open_with(config, None)
    }

    /// Like [`Engine::open`], for a node of a cluster. It has no partitions until
    /// [`Engine::adopt`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_member(config: EngineConfig, membership: Membership) -> Result<Self, OpenError> {
        let owners = Arc::clone(&membership.owners);
        Self::open_with(EngineConfig { owners, ..config }, Some(membership))
    }

    fn open_with(config: EngineConfig, membership: Option<Membership>) -> Result<Self, OpenError> {
        #[cfg(feature = "fault-injection")]
        let config = super::fault_injection::plant(config)?;
        // Opened first, so that a wrong file is reported before a long replay.
        let geo = config.geo_db.as_deref().map(GeoDatabase::open).transpose()?;
        let profiles = membership.as_ref().map(|membership| Arc::clone(&membership.profiles));
        let webhooks = membership.as_ref().map(|membership| membership.webhooks.clone());
        let opened = open::open(&config, membership)?;
        let is_alone = webhooks.is_none();
        let webhooks = webhooks.map_or_else(|| open::local_webhooks(&config.data_dir), Ok)?;
        let webhooks = Webhooks::new(webhooks, opened.secrets.signer().clone());
        let profiles = open::open_profiles(&config.data_dir, profiles)?;
        if is_alone {
            let unread = |error| OpenError::Directory(format!("webhooks or company profiles can't be read: {error}"));
            webhooks.follow().and_then(|_| profiles.follow()).map_err(unread)?;
        }
        let files = (profiles, webhooks);
        let engine = Self::start(config, (opened, files), geo)?;
        engine.start_known_time();
        engine.start_retention();
        engine.start_intake();
        engine.start_privacy_requests();
        engine.start_webhooks().map_err(not_started)?;
        engine.start_builds().map_err(not_started)?;
        Ok(engine)
    }

    fn start(config: EngineConfig, (opened, kept): OpenedParts, geo: Option<GeoDatabase>) -> Result<Self, OpenError> {
        let Opened { registry, intake, privacy, secrets, log, history, archive, logged, dead, state, incarnation, .. } = opened;
        let open::OpenedState { shards, shared, memory, store, writer, writer_thread, verifier } = state;
        let (map, delivered, unknown) = (ShardMap::new(shards.len()), Arc::new(log.last_position().into()), Arc::default());
        let ((actors, addresses), (local_log, trimmer)) = (start_system(shards)?, log.local_parts(&config.data_dir).unzip());
        let log = commit(&config, log, sink(addresses.clone(), map, (Arc::clone(&delivered), Arc::clone(&unknown))))?;
        let admission = admission(&config, Arc::clone(&shared.health), Arc::clone(&shared.checkpoints));
        let (tracker, mark) = start_tracking(&actors.system, &admission.gate, (&log, &shared.health), config.apply_timeout)?;
        let views = start_views(config.view_bytes(), &actors.system, &registry);
        let (shards, backups) = (Arc::new(ShardClient::new(addresses, map)), Arc::new(Semaphore::new(1)));
        let sources = EngineSources {
            settings: archive_settings(&config),
            logged: logged.clone(),
            trimming: trimming(trimmer, archive.shared),
            dead: Arc::clone(&dead),
            hasher: secrets.hasher().clone(),
            registry: Arc::clone(&registry),
            shards: Arc::clone(&shards),
            delivered: Arc::clone(&delivered),
            stop: Arc::default(),
            deleted: Arc::clone(&shared.deleted),
            removal: removal((&admission.gate, mark), (store, &writer, &log), &shared, (&backups, &views, &shards)),
        };
        let (archiver, archiving) = Archiver::spawn(sources, Arc::clone(&archive.sealed)).map_err(not_started)?;
        let threads = Threads::new(actors, (writer, writer_thread), verifier, (Arc::clone(&archiver), archiving), opened.lock);
        let inner = Inner {
            admission,
            shards,
            log,
            history,
            logged,
            dead,
            quotas: shared.quotas,
            versions: shared.versions,
            floors: shared.floors,
            memory,
            damage: shared.damage,
            deleted: shared.deleted,
            erasures: shared.erasures,
            unknown,
            clock_guard: opened.clock_guard,
            intake,
            privacy,
            profiles: kept.0,
            watches: Watches::new(shared.feeds),
            webhooks: Arc::new(kept.1),
            scans: ScanTurns::new(MAX_SCANS, ScanHelpers::new(config.memory_bytes)),
            node_scans: NodeScans::default(),
            scratch: SpillDir::new(&config.data_dir),
            views,
            exports: Gate::new(MAX_EXPORTS),
            local_log,
            backups,
            verifications: Verifications::default(),
            delivered,
            followed: AtomicU64::new(0),
            threads: Mutex::new(Some(threads)),
            archiver,
            sealed: archive.sealed,
            archives: archive.archives,
            registry,
            secrets,
            geo,
            tracker,
            incarnation,
            starts: opened.starts,
            config,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Organizations, projects, keys and tokens.
    #[must_use]
    pub fn registry(&self) -> &Registry {
        &self.inner.registry
    }

    /// The engine's clock.
    #[must_use]
    pub fn clock(&self) -> &dyn Clock {
        &*self.inner.config.clock
    }

    /// The owner of each partition.
    #[must_use]
    pub fn owners(&self) -> &Owners {
        &self.inner.config.owners
    }

    /// The token that authenticates the machines of a cluster to each other.
    #[must_use]
    pub fn node_token(&self) -> &NodeToken {
        self.inner.secrets.node_token()
    }

    /// The time limit of questions that need a scan of events.
    #[must_use]
    pub fn question_timeout(&self) -> Duration {
        self.inner.config.question_timeout
    }

    /// The data directory.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.inner.config.data_dir
    }

    /// The directory of the scans' temporary files.
    pub(super) fn scratch(&self) -> &SpillDir {
        &self.inner.scratch
    }

    /// The country of an address; `None` if unknown, or without a database
    /// ([`EngineConfig::geo_db`]).
    #[must_use]
    pub fn country_of(&self, address: IpAddr) -> Option<Country> {
        self.inner.geo.as_ref()?.country(address)
    }

    pub(super) fn secrets(&self) -> &Secrets {
        &self.inner.secrets
    }

    pub(super) fn hasher(&self) -> &KeyHasher {
        self.inner.secrets.hasher()
    }

    pub(super) fn incarnation(&self) -> u128 {
        self.inner.incarnation
    }

    /// Returns a number of this start and of the project's log, for [`Engine::has_position`].
    #[must_use]
    pub fn start_number(&self, project: ProjectId) -> u64 {
        self.inner.starts.present() ^ self.resumed(project)
    }

    /// Whether a position, a project's last one during the start with this number, still means the
    /// same event. It doesn't if the data directory was restored from an earlier copy, or if
    /// brokers have lost events and the partition continues without them.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn has_position(&self, project: ProjectId, position: Position, start_number: u64) -> Result<bool, AskError> {
        let (_, last) = self.version(project, &Depends::Everything).await?;
        Ok(position <= last && self.inner.starts.has(start_number ^ self.resumed(project), position))
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

    /// Returns a value that changes exactly when an answer that depends on `depends` may have
    /// changed: the incarnation of the data, the floor if sessions are read, and the last event's
    /// position.
    ///
    /// # Errors
    /// See [`AskError`].
    pub async fn version(&self, project: ProjectId, depends: &Depends) -> Result<(u128, Position), AskError> {
        // While the state is rebuilt or replaced, the version would be that of an earlier state.
        let check = || self.inner.admission.health.check_project_answers(project).map_err(AskError::Lost);
        check()?;
        let known = || Some(self.inner.versions.get(&project)?.of(depends));
        if !self.inner.versions.contains_key(&project) {
            // The project is not loaded since the start. Reading it loads it.
            self.last(project).await?;
        }
        // Read before the version: a floor that rises meanwhile belongs to the next version.
        let floor = self.known_floor(project).filter(|_| depends.reads_sessions());
        let incarnation = self.incarnation_of(project) ^ floor.map_or(0, |floor| u128::from(floor.0.cast_unsigned()) << 32);
        let version = known().unwrap_or(0);
        check()?;
        Ok((incarnation, version))
    }

    /// Returns the incarnation of a project's data. Each erasure changes it, as versions may recur.
    fn incarnation_of(&self, project: ProjectId) -> u128 {
        self.log_incarnation(project) ^ u128::from(self.reflected_erasures(project))
    }

    /// The incarnation of a project's log.
    pub(super) fn log_incarnation(&self, project: ProjectId) -> u128 {
        self.inner.incarnation ^ u128::from(self.resumed(project)) << 64
    }

    /// See [`ReadLog::resumed`](headcount_storage::log::ReadLog::resumed).
    pub(super) fn resumed(&self, project: ProjectId) -> u64 {
        self.inner.logged.resumed(partition_of(project))
    }

    /// The number of erasures that the project's answers reflect.
    pub(super) fn reflected_erasures(&self, project: ProjectId) -> u64 {
        self.inner.erasures.reflected(project)
    }

    /// The position of a project's last event that counted.
    pub(super) async fn last(&self, project: ProjectId) -> Result<Position, AskError> {
        self.ask_shard(project, move |shard| shard.last(project)).await
    }

    pub(super) async fn ask_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<R, AskError> {
        self.send_to_shard(project, request)?.wait().await
    }

    pub(super) fn send_to_shard<R: Send + 'static>(
        &self,
        project: ProjectId,
        request: impl FnOnce(&mut Shard) -> Result<R, Fault> + Send + 'static,
    ) -> Result<Pending<R>, AskError> {
        let organization = self.registry().policy(project).map(|config| config.policy.organization);
        self.inner.shards.send(project, organization, request)
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
