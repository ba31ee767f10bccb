//! The configuration of an engine, and the errors of opening one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::clock::{Clock, SystemClock};
use headcount_common::nodes::AskNode;
use headcount_common::secrets::SecretsError;
use headcount_control::RegistryError;
use headcount_domain::{Fault, FaultKind, Quotas};
use headcount_storage::log::{GroupOptions, LogOptions};

use crate::archiver::{ArchivePolicy, StepProbe};
use crate::feature::InstallFeature;
use crate::geo::GeoError;
use crate::memory_budget::MemoryShares;
use crate::opening_progress::Progress;
use crate::shard::{CheckpointPolicy, Probe};

/// The configuration of an engine.
#[derive(Clone)]
pub struct EngineConfig {
    /// The data directory. It is created if it is absent, and locked while the engine is open.
    pub data_dir: PathBuf,
    /// The number of shards, which may differ at every start. Default: the number of cores.
    pub shards: usize,
    /// The memory budget in bytes for records, caches and events in flight. Default 1 GiB; at least
    /// [`MIN_MEMORY_BYTES`](crate::memory_budget::MIN_MEMORY_BYTES).
    pub memory_bytes: usize,
    /// The maximum bytes of events in flight. Default: a sixteenth of the memory, from 8 to 64 MiB.
    /// With less, a batch of the largest size may find no room.
    pub admission_bytes: Option<usize>,
    /// Minimum free disk space in bytes, below which events are refused. Default 256 MiB.
    pub min_free_bytes: u64,
    /// The `.mmdb` file that maps addresses to countries (GeoLite2, GeoIP2 or DB-IP; country or
    /// city). It is read at the start and held in memory. Without it, only a proxy can report a
    /// country.
    pub geo_db: Option<PathBuf>,
    /// The maximum numbers of different groups, companies, sources and pages of each project.
    pub quotas: Quotas,
    /// How long a question may take that needs a scan of events. Default 60 s.
    pub question_timeout: Duration,
    /// How long recorded events may take to be applied before their sender gets
    /// [`TrackError::OutcomeUnknown`](crate::TrackError::OutcomeUnknown). Default 10 s.
    pub apply_timeout: Duration,
    /// The maximum bytes of kept answers; 0 keeps none. Default: a sixteenth of the memory.
    pub view_bytes: Option<usize>,
    /// The features. Default: none.
    pub features: Vec<InstallFeature>,
    /// The times at which checkpoints are due.
    pub checkpoints: CheckpointPolicy,
    /// The times at which events are sealed.
    pub archive: ArchivePolicy,
    /// The log's options.
    pub log: LogOptions,
    /// The options of the log's group commit.
    pub group: GroupOptions,
    /// The way to ask other machines about projects that they own. Default: none.
    pub ask_node: Option<Arc<dyn AskNode>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Reports the progress of [`Engine::open`](crate::Engine::open).
    pub progress: Arc<Progress>,
    /// A budget for records in bytes, independent of the memory. Tests of eviction set it.
    #[doc(hidden)]
    pub records: Option<usize>,
    /// How long a start checks store and index before it serves. Tests of later checks set it.
    #[doc(hidden)]
    pub check_before_serving: Option<Duration>,
    /// How often floors are raised, besides at the start and when a retention changes. Tests of
    /// passing days set it.
    #[doc(hidden)]
    pub retention_interval: Duration,
    /// The maximum number of erased ids of an organization. Tests of the limit set it.
    #[doc(hidden)]
    pub max_erased_ids: usize,
    /// The maximum number of identities that a node lists in one answer. Tests of several answers
    /// set it.
    #[doc(hidden)]
    pub max_active_identities: usize,
    /// Called between the steps of sealing and merging. Tests that kill the process at each step
    /// set it.
    #[doc(hidden)]
    pub archive_probe: StepProbe,
    /// Called before each event is applied. Tests of panics set it.
    #[doc(hidden)]
    pub probe: Probe,
}

impl EngineConfig {
    /// Returns the defaults for `data_dir`.
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            shards: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory_bytes: 1 << 30,
            admission_bytes: None,
            min_free_bytes: 256 << 20,
            geo_db: None,
            quotas: Quotas::default(),
            question_timeout: Duration::from_secs(60),
            apply_timeout: Duration::from_secs(10),
            view_bytes: None,
            features: Vec::new(),
            checkpoints: CheckpointPolicy::default(),
            archive: ArchivePolicy::default(),
            log: LogOptions::default(),
            group: GroupOptions::default(),
            ask_node: None,
            clock: Arc::new(SystemClock),
            progress: Arc::default(),
            records: None,
            check_before_serving: None,
            retention_interval: Duration::from_secs(60 * 60),
            max_erased_ids: MAX_ERASED_IDS,
            max_active_identities: MAX_ACTIVE_IDENTITIES,
            archive_probe: None,
            probe: None,
        }
    }

    pub(crate) fn view_bytes(&self) -> usize {
        self.view_bytes.unwrap_or_else(|| MemoryShares::of(self.memory_bytes).views)
    }

    pub(crate) fn record_bytes(&self) -> usize {
        self.records.unwrap_or_else(|| MemoryShares::of(self.memory_bytes).records)
    }
}

impl std::fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineConfig").field("data_dir", &self.data_dir).field("shards", &self.shards).finish_non_exhaustive()
    }
}

/// The maximum number of erased ids of an organization. They stay in memory while the organization
/// exists, so that their events are dropped. Each takes some 80 bytes.
const MAX_ERASED_IDS: usize = 250_000;

/// The maximum number of identities that a node lists in one answer: some 16 MB. If there are more,
/// it lists some, and reads the events again for the rest.
const MAX_ACTIVE_IDENTITIES: usize = 1 << 19;

/// The reason why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory can't be used: it is locked, of another version, or unreadable.
    #[error("{0}")]
    Directory(String),
    /// A key file can't be used.
    #[error(transparent)]
    Secrets(#[from] SecretsError),
    /// The control data can't be opened.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// The event log can't be opened.
    #[error(transparent)]
    Log(#[from] headcount_storage::log::LogError),
    /// The state could not be brought up to the end of the log. All files are unchanged.
    #[error("{}", explain(.0))]
    State(#[from] Fault),
    /// The database of countries can't be used.
    #[error(transparent)]
    Geo(#[from] GeoError),
    /// A thread could not be started.
    #[error("could not start: {0}")]
    Start(String),
}

fn explain(fault: &Fault) -> String {
    let message = &fault.message;
    match fault.kind {
        FaultKind::Io => format!("the state could not be opened: {message}; nothing was removed"),
        FaultKind::DamagedStore | FaultKind::DamagedIndex => {
            format!("the state is damaged although it was just rebuilt from the log: {message}")
        }
        FaultKind::DamagedLog => {
            format!(
                "the event log can't be read: {message}; nothing was removed; restore the log from a copy of the data directory"
            )
        }
        FaultKind::DamagedArchive => {
            format!(
                "a part of the archive can't be read: {message}; nothing was removed; restore the file from a copy of the data directory"
            )
        }
        FaultKind::Defect => {
            format!("the state could not be opened because of a defect of the program: {message}; nothing was removed")
        }
    }
}

pub(crate) fn directory(error: impl std::fmt::Display) -> OpenError {
    OpenError::Directory(error.to_string())
}
