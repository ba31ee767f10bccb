//! What the keeper tells a shard, and how.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use headcount_storage::external_ids::Written;

/// What became of a partition's checkpoint or merge.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) partition: u16,
    /// The number that the shard gave to the job.
    pub(crate) job: u64,
    pub(crate) outcome: Outcome,
}

#[derive(Debug)]
pub(crate) enum Outcome {
    /// The checkpoint is durable.
    Saved {
        /// The run that its external ids became.
        ids: Option<Written>,
    },
    /// It could not be written and is tried again later.
    Postponed { error: String },
    /// It will not be written: the engine stops, or the keeper is gone.
    Dropped {
        /// The run that its external ids became all the same.
        ids: Option<Written>,
    },
    /// A merge is over. `None`: it was stopped, or failed.
    Merged(Option<Written>),
}

type Nudge = Box<dyn Fn() + Send + Sync>;

/// Brings reports to one shard.
#[derive(Clone)]
pub(crate) struct Mailbox {
    reports: Sender<Report>,
    nudge: Arc<OnceLock<Nudge>>,
}

impl Mailbox {
    pub(crate) fn new() -> (Self, Receiver<Report>) {
        let (reports, inbox) = channel();
        (Self { reports, nudge: Arc::default() }, inbox)
    }

    /// Calls `nudge` after every report from here on. The first one counts.
    pub(crate) fn nudge_by(&self, nudge: impl Fn() + Send + Sync + 'static) {
        let _ = self.nudge.set(Box::new(nudge));
    }

    fn send(&self, report: Report) {
        if self.reports.send(report).is_ok()
            && let Some(nudge) = self.nudge.get()
        {
            nudge();
        }
    }
}

/// The duty to say what became of a job; dropping it says that the job was dropped.
pub(crate) struct Reply {
    partition: u16,
    job: u64,
    mailbox: Mailbox,
    is_over: bool,
}

impl Reply {
    pub(crate) fn new(partition: u16, job: u64, mailbox: Mailbox) -> Self {
        Self { partition, job, mailbox, is_over: false }
    }

    pub(super) fn partition(&self) -> u16 {
        self.partition
    }

    /// An outcome that is not the last one.
    pub(super) fn tell(&self, outcome: Outcome) {
        self.mailbox.send(Report { partition: self.partition, job: self.job, outcome });
    }

    /// The last outcome.
    pub(super) fn finish(mut self, outcome: Outcome) {
        self.is_over = true;
        self.tell(outcome);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_over {
            self.tell(Outcome::Dropped { ids: None });
        }
    }
}
