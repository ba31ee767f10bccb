//! What an engine needs to be a member of a cluster.

use std::sync::{Arc, OnceLock};

use headcount_actors::ingest::Ticket;
use headcount_actors::{LogSink, Membership, OpenRegistry, Owners};
use headcount_storage::format::Incarnation;
use headcount_storage::log::Commit;
use tokio::runtime::Handle;

use crate::log::{StreamCommit, StreamLog};

/// The log of an engine, and what it knows of owners.
#[derive(Debug, Clone)]
pub struct MemberLog {
    pub(super) log: Arc<StreamLog>,
    pub(super) commit: Arc<OnceLock<Arc<StreamCommit<Ticket>>>>,
    pub(super) owners: Arc<Owners>,
}

impl MemberLog {
    /// Begins without partitions. It reads and records with `runtime`.
    #[must_use]
    pub fn new(runtime: &Handle) -> Self {
        let log = Arc::new(StreamLog::new(runtime.clone()));
        Self { log, commit: Arc::default(), owners: Arc::new(Owners::unknown()) }
    }

    /// Returns what to open an engine with, once.
    #[must_use]
    pub fn membership(&self, runtime: &Handle, incarnation: Incarnation, registry: OpenRegistry) -> Membership {
        let (runtime, commit) = (runtime.clone(), Arc::clone(&self.commit));
        let start = move |sink: LogSink| {
            Arc::clone(commit.get_or_init(|| Arc::new(StreamCommit::start(&runtime, sink)))) as Arc<dyn Commit<Ticket>>
        };
        let (log, owners) = (Arc::clone(&self.log), Arc::clone(&self.owners));
        Membership { incarnation, registry, log, commit: Box::new(start), owners }
    }
}
