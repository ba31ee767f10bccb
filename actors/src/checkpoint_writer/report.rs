//! Reports from the checkpoint writer to a shard.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use headcount_storage::external_ids::Written;

/// The result of a partition's checkpoint or merge.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) partition: u16,
    /// The number that the shard gave the job.
    pub(crate) job: u64,
    pub(crate) outcome: JobOutcome,
}

/// The result of a job, or of an attempt.
#[derive(Debug)]
pub(crate) enum JobOutcome {
    /// The checkpoint is durable.
    Saved {
        /// The table of its external ids.
        ids: Option<Written>,
    },
    /// The checkpoint could not be written and is retried later.
    Postponed { error: String },
    /// The checkpoint will not be written, because the engine stops or the writer is gone.
    Dropped {
        /// The table of its external ids, if it was written.
        ids: Option<Written>,
    },
    /// A merge is over; `None` if it was stopped or failed.
    Merged(Option<Written>),
}

type Notify = Box<dyn Fn() + Send + Sync>;

/// Delivers reports to one shard.
#[derive(Clone)]
pub(crate) struct Mailbox {
    reports: Sender<Report>,
    notify: Arc<OnceLock<Notify>>,
}

impl Mailbox {
    pub(crate) fn new() -> (Self, Receiver<Report>) {
        let (reports, inbox) = channel();
        (Self { reports, notify: Arc::default() }, inbox)
    }

    /// Calls `notify` after every report from now on. Only the first call counts.
    pub(crate) fn notify_with(&self, notify: impl Fn() + Send + Sync + 'static) {
        let _ = self.notify.set(Box::new(notify));
    }

    fn send(&self, report: Report) {
        if self.reports.send(report).is_ok()
            && let Some(notify) = self.notify.get()
        {
            notify();
        }
    }
}

/// The obligation to report the result of a job; dropping it reports that the job was dropped.
pub(crate) struct Reply {
    pub(super) partition: u16,
    job: u64,
    mailbox: Mailbox,
    is_over: bool,
}

impl Reply {
    pub(crate) fn new(partition: u16, job: u64, mailbox: Mailbox) -> Self {
        Self { partition, job, mailbox, is_over: false }
    }

    /// Reports a result that is not the last one.
    pub(super) fn report(&self, outcome: JobOutcome) {
        self.mailbox.send(Report { partition: self.partition, job: self.job, outcome });
    }

    /// Reports the last result.
    pub(super) fn finish(mut self, outcome: JobOutcome) {
        self.is_over = true;
        self.report(outcome);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.is_over {
            self.report(JobOutcome::Dropped { ids: None });
        }
    }
}
