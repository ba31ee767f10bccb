//! Receives events: admission, decisions, batching, and the answers to senders.

mod actor;
mod admission;
mod answers;
mod counting;
mod disk_guard;
mod gathering;
mod importing;
mod known_agents;
mod new_event;
mod prepared;
mod quotas;
mod receipt;
mod refusal;
mod retention;
mod segment;
mod tracker;
mod tracking;

use std::sync::Arc;
use std::time::Duration;

use actix::ArbiterHandle;
use headcount_domain::ProjectId;
use headcount_storage::log::Commit;

use crate::clock_guard::ClockGuard;
use crate::feature::InstalledFeatures;
use crate::geo::GeoDatabase;
use crate::import_log::ImportLog;
use crate::intake_counts::IntakeCounts;
use crate::questions::Questions;
use crate::shard::QuotaTable;

pub use admission::Admission;

#[cfg(feature = "fault-injection")]
pub(crate) use answers::Return;
pub use counting::ProjectIntake;
pub(crate) use disk_guard::DiskGuard;
pub(crate) use gathering::Gathering;
pub use gathering::Ticket;
pub use new_event::{Field, NewEvent};
pub use prepared::{Origin, Prepared};
pub use receipt::{BatchReceipt, ImportReceipt, MAX_BATCH_WARNINGS, Receipt, Status};
pub use refusal::{QuotaExceeded, Refusal, TrackError};
pub use segment::SegmentRequest;
pub use tracker::Tracker;

/// The maximum number of events in a batch.
pub const MAX_BATCH_EVENTS: usize = 5_000;

/// Decides about events, and records them.
pub struct Ingest {
    pub(crate) questions: Arc<Questions>,
    pub(crate) clock_guard: Arc<ClockGuard>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) log: Arc<dyn Commit<Ticket>>,
    pub(crate) imports: ImportLog,
    /// Records events from threads that are no HTTP workers.
    pub tracker: Tracker,
    /// How long recorded events may take to be applied.
    pub(crate) apply_timeout: Duration,
    pub(crate) quotas: Arc<QuotaTable>,
    pub(crate) counts: Arc<IntakeCounts>,
    pub(crate) geo: Option<GeoDatabase>,
    pub(crate) features: Arc<InstalledFeatures>,
    /// The thread of background tasks.
    pub(crate) arbiter: ArbiterHandle,
    /// How often floors are raised.
    pub(crate) retention_interval: Duration,
}

impl Ingest {
    /// Returns a tracker for the calling thread, which must be an HTTP worker (an actix arbiter).
    #[must_use]
    pub fn local_tracker(&self) -> Tracker {
        Tracker::start(Gathering::new(Arc::clone(&self.log), Arc::clone(&self.admission.health)), self.apply_timeout)
    }

    /// Tells the features that a project has a new notification.
    fn tell_of_notification(&self, project: ProjectId) {
        self.features.all().iter().for_each(|feature| feature.notified(project));
    }
}
