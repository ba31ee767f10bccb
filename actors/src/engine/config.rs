//! The configuration of an engine, and the errors of opening one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headcount_common::Owners;
use headcount_common::clock::{Clock, SystemClock};
use headcount_common::nodes::AskNode;
use headcount_common::secrets::SecretsError;
use headcount_control::RegistryError;
use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::quota::Quotas;
use headcount_storage::log::{GroupOptions, LogOptions};

use crate::archiver::{ArchivePolicy, StepProbe};
use crate::geo::GeoError;
use crate::memory_budget::MemoryShares;
use crate::opening_progress::Progress;
use crate::profiles::ResearchSettings;
use crate::shard::{CheckpointPolicy, Probe};
use crate::webhooks::WebhookSettings;

/// The configuration of an engine.
#[derive(Clone)]
pub struct EngineConfig {
    /// The data directory. Created if it is absent; locked while the engine is open.
    pub data_dir: PathBuf,
    /// Number of shards; may differ at every start. Default: the number of cores.
    pub shards: usize,
    /// Memory budget in bytes for records, caches and events under way. Default 1 GiB; at least
    /// [`MIN_MEMORY_BYTES`](crate::memory_budget::MIN_MEMORY_BYTES).
    pub memory_bytes: usize,
    /// Maximum bytes of events under way. Default: a sixteenth of the memory, from 8 to 64 MiB; with less, a batch of the
    /// largest size may find no room.
    pub admission_bytes: Option<usize>,
    /// Minimum free disk space in bytes, below which events are refused. Default 256 MiB.
    pub min_free_bytes: u64,
    /// The `.mmdb` file that maps addresses to countries (GeoLite2, GeoIP2 or DB-IP; country or city). Read at start, held in
    /// memory. Default: none, and then only a proxy can report a country.
    pub geo_db: Option<PathBuf>,
    /// Maximum numbers of different groups, companies, sources and pages of each project.
    pub quotas: Quotas,
    /// How long what an export of a person made is kept. Default 7 days.
    pub export_retention: Duration,
    /// How long a question may take that no rollup answers. Default 60 s.
    pub question_timeout: Duration,
    /// How long recorded events may take to be applied before their sender hears [`TrackError::OutcomeUnknown`](crate::TrackError::OutcomeUnknown). Default 10 s.
    pub apply_timeout: Duration,
    /// Maximum bytes of kept answers; 0 keeps none. Default: a sixteenth of the memory.
    pub view_bytes: Option<usize>,
    /// How webhooks are sent. Default: they are not, and none can be made.
    pub webhooks: Option<WebhookSettings>,
    /// How company profiles are built. Default: they are not, and no build can begin.
    pub research: Option<ResearchSettings>,
    /// When checkpoints are due.
    pub checkpoints: CheckpointPolicy,
    /// When events are sealed.
    pub archive: ArchivePolicy,
    /// The log's options.
    pub log: LogOptions,
    /// Options of the log's group commit.
    pub group: GroupOptions,
    /// Who owns each partition. Default: this machine, alone.
    pub owners: Arc<Owners>,
    /// How other machines are asked about projects that they own. Default: they are not.
    pub ask_node: Option<Arc<dyn AskNode>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Reports the progress of [`Engine::open`](crate::Engine::open).
    pub progress: Arc<Progress>,
    /// Budget for records in bytes, whatever the memory: for tests of eviction.
    #[doc(hidden)]
    pub records: Option<usize>,
    /// How long a start checks store and index before it serves: for tests of later checks.
    #[doc(hidden)]
    pub check_before_serving: Option<Duration>,
    /// How often floors are raised, besides at the start and when a retention changes: for tests of days that pass.
    #[doc(hidden)]
    pub retention_interval: Duration,
    /// The most ids that an organization may have erased: for tests of the limit.
    #[doc(hidden)]
    pub max_erased_ids: usize,
    /// The most identities that a node lists in one answer: for tests of several answers.
    #[doc(hidden)]
    pub max_active_identities: usize,
    /// The pauses after the attempts of an export that failed: for tests of all attempts.
    #[doc(hidden)]
    pub export_pauses: [Duration; 4],
    /// Called between the steps of sealing and merging: for tests of a kill at each of them.
    #[doc(hidden)]
    pub archive_probe: StepProbe,
    /// Called before each event is applied: for tests of panics.
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
            export_retention: Duration::from_secs(7 * 24 * 60 * 60),
            question_timeout: Duration::from_secs(60),
            apply_timeout: Duration::from_secs(10),
            view_bytes: None,
            webhooks: None,
            research: None,
            checkpoints: CheckpointPolicy::default(),
            archive: ArchivePolicy::default(),
            log: LogOptions::default(),
            group: GroupOptions::default(),
            owners: Arc::new(Owners::alone()),
            ask_node: None,
            clock: Arc::new(SystemClock),
            progress: Arc::default(),
            records: None,
            check_before_serving: None,
            retention_interval: Duration::from_secs(60 * 60),
            max_erased_ids: MAX_ERASED_IDS,
            max_active_identities: MAX_ACTIVE_IDENTITIES,
            export_pauses: [1, 5, 30, 120].map(Duration::from_secs),
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

/// The most ids that an organization may have erased. They are kept in memory for as long as the organization exists, so that their events are dropped: some 80 bytes each.
const MAX_ERASED_IDS: usize = 250_000;

/// The most identities that a node lists in one answer: some 16 MB. Of more, it lists some, and reads the events again for the others.
const MAX_ACTIVE_IDENTITIES: usize = 1 << 19;

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
