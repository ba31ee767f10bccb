//! The keeper: one thread that writes checkpoints and one that merges runs of external ids, so that no shard waits for
//! the disk and no checkpoint waits for a merge.
//!
//! A checkpoint that fails is put aside and tried again later, for as long as it takes; those of other partitions go on
//! meanwhile. Its content stays the same, since what it holds is nowhere else but in the log. What was in doubt after a
//! failed commit is decided by reading which checkpoint the store holds, once it was recovered.

mod claim;
mod job;
mod merger;
mod report;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Stopwatch};

use headcount_storage::store::Store;

pub(crate) use claim::Claim;
use job::Attempt;
pub(crate) use job::Job;
pub(crate) use merger::MergeJob;
use merger::{Stop, merge_all};
pub(crate) use report::{Mailbox, Outcome, Reply, Report};

/// How long a failed checkpoint waits before it is tried again: doubled each time, up to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(4);

enum Order {
    Write(Box<Job>),
    /// Try what this partition has postponed now.
    Hurry(u16),
    /// Drop what is postponed.
    Stop,
}

/// A handle to both threads; they end when the last one is dropped.
#[derive(Clone)]
pub(crate) struct Keeper {
    orders: Sender<Order>,
    merges: Sender<MergeJob>,
    stop: Arc<Stop>,
}

impl Keeper {
    /// Starts the threads. The handle that is returned is that of the first, which ends after the second.
    pub(crate) fn spawn(store: Arc<dyn Store>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let ((orders, inbox), (merges, merge_inbox)) = (channel(), channel());
        let stop = Arc::new(Stop::default());
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let merging = Arc::clone(&stop);
        let merger = thread("merge-ids").spawn(move || merge_all(&merge_inbox, &merging))?;
        let stopping = Arc::clone(&stop);
        let keeper = thread("checkpoint").spawn(move || {
            run(&*store, &inbox, &stopping);
            let _ = merger.join();
        })?;
        Ok((Self { orders, merges, stop }, keeper))
    }

    /// Has a checkpoint written. Bounded by its callers: each partition has at most one.
    pub(crate) fn write(&self, job: Job) {
        // Where the thread is gone the job is dropped, which reports that.
        let _ = self.orders.send(Order::Write(Box::new(job)));
    }

    /// Has the postponed checkpoint of a partition tried now.
    pub(crate) fn hurry(&self, partition: u16) {
        let _ = self.orders.send(Order::Hurry(partition));
    }

    /// Has runs of external ids merged. Bounded by its callers: each partition has at most one merge.
    pub(crate) fn merge(&self, job: MergeJob) {
        let _ = self.merges.send(job);
    }

    /// What can't be written at once is given up from here on, since the log has it; merges are stopped.
    pub(crate) fn stop_trying(&self) {
        self.stop.stop();
        let _ = self.orders.send(Order::Stop);
    }
}

/// A checkpoint that failed.
struct Late {
    job: Box<Job>,
    at: Stopwatch,
    tries: u32,
}

fn run(store: &dyn Store, inbox: &Receiver<Order>, stop: &Stop) {
    let mut late: Vec<Late> = Vec::new();
    loop {
        match next_order(inbox, &late) {
            Ok(Order::Write(job)) => try_to_write(store, job, 0, &mut late, stop),
            Ok(Order::Hurry(partition)) => {
                late.iter_mut().filter(|late| late.job.partition() == partition).for_each(|late| late.at = Stopwatch::now());
            }
            Ok(Order::Stop) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if stop.is_stopped() {
            late.drain(..).for_each(|late| late.job.give_up());
        }
        // One at a time, so that what is new waits for one failing partition at most.
        let now = Stopwatch::now();
        if let Some(due) = late.iter().position(|late| late.at <= now) {
            let Late { job, tries, .. } = late.swap_remove(due);
            try_to_write(store, job, tries, &mut late, stop);
        }
    }
}

fn next_order(inbox: &Receiver<Order>, late: &[Late]) -> Result<Order, RecvTimeoutError> {
    match late.iter().map(|late| late.at).min() {
        Some(at) => inbox.recv_timeout(at.saturating_duration_since(Stopwatch::now())),
        None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

fn try_to_write(store: &dyn Store, mut job: Box<Job>, tries: u32, late: &mut Vec<Late>, stop: &Stop) {
    match job.attempt(store) {
        Attempt::Saved => job.saved(),
        Attempt::TakenBack => {}
        Attempt::Failed(error) if stop.is_stopped() => {
            tracing::warn!(partition = job.partition(), %error, "last checkpoint not written; the next start replays the log");
            job.give_up();
        }
        Attempt::Failed(error) => {
            let tries = tries + 1;
            let wait = FIRST_WAIT.saturating_mul(1 << (tries - 1).min(8)).min(LONGEST_WAIT);
            // Now and then, so that a full disk does not fill the log of the process, too.
            if tries.is_power_of_two() {
                tracing::error!(partition = job.partition(), %error, tries, ?wait, "checkpoint not written; it is tried again");
            }
            job.postponed(error.to_string());
            late.push(Late { job, at: Stopwatch::now() + wait, tries });
        }
    }
}
