//! Writes checkpoints. A failed checkpoint is postponed and retried until it succeeds, while those
//! of other partitions continue. Its content stays the same, since only the log has it otherwise.
//! After a failed commit, the writer recovers the store and reads its last checkpoint, to decide
//! whether the commit counts.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant as Stopwatch};

use headcount_storage::background::{self, Tempo};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{Store, StoreError};

use super::job::{Attempt, Job};
use super::merger::{MergeJob, StopSignal, merge_all};
use super::removal::Removal;
use super::urgency::{Hurry, Urgency};

/// How long a failed checkpoint waits before it is retried. The time doubles each time, up to the
/// maximum.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(4);

/// Work for the checkpoint thread.
pub(super) enum Command {
    Write(Box<Job>),
    /// Retries the postponed checkpoint of this partition now.
    RetryNow(u16),
    /// Deletes a project's data from the store.
    Remove(Removal),
    /// Drops postponed checkpoints.
    Stop,
}

/// A handle to both threads; they end when the last one is dropped.
#[derive(Clone)]
pub(crate) struct CheckpointWriter {
    pub(super) commands: Sender<Command>,
    pub(super) merges: Sender<MergeJob>,
    stop: Arc<StopSignal>,
    urgency: Urgency,
}

impl CheckpointWriter {
    /// Starts the threads. Returns the handle of the checkpoint thread, which ends after the merge
    /// thread.
    pub(crate) fn spawn(store: Arc<dyn Store>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let ((commands, inbox), (merges, merge_inbox)) = (channel(), channel());
        let stop = Arc::new(StopSignal::default());
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let merging = Arc::clone(&stop);
        let merger = thread("merge-ids").spawn(move || {
            background::begin(|| Tempo::Steady);
            merge_all(&merge_inbox, &merging);
        })?;
        let stopping = Arc::clone(&stop);
        let urgency = Urgency::default();
        let (seen, raised, stopped) = (urgency.clone(), urgency.clone(), Arc::clone(&stop));
        let writer = thread("checkpoint").spawn(move || {
            background::begin(move || Tempo::urgent_if(seen.is_urgent() || stopped.is_stopped()));
            run(&*store, &inbox, &stopping, &raised);
            let _ = merger.join();
        })?;
        Ok((Self { commands, merges, stop, urgency }, writer))
    }

    /// Writes checkpoints at full speed while the result exists, however busy the processors are.
    pub(crate) fn hurry(&self) -> Hurry {
        self.urgency.hurry()
    }

    /// Queues a checkpoint. The callers bound the queue: each partition has at most one.
    pub(crate) fn write(&self, job: Job) {
        // Without the thread the job is dropped, which reports that.
        let _ = self.commands.send(Command::Write(Box::new(job)));
    }

    /// Retries the postponed checkpoint of a partition now.
    pub(crate) fn retry_now(&self, partition: u16) {
        let _ = self.commands.send(Command::RetryNow(partition));
    }

    /// Deletes the pairs under `prefixes`, which no checkpoint has any more. Blocks. Returns `None`
    /// if the thread is gone.
    pub(crate) fn remove(&self, stored_as: PartitionId, prefixes: Vec<Vec<u8>>) -> Option<Result<(), StoreError>> {
        let _hurry = self.hurry();
        let (reply, answer) = channel();
        self.commands.send(Command::Remove(Removal { stored_as, prefixes, reply })).ok()?;
        answer.recv().ok()
    }

    /// Queues a merge of external ids. The callers bound the queue: each partition has at most one
    /// merge.
    pub(crate) fn merge(&self, job: MergeJob) {
        let _ = self.merges.send(job);
    }

    /// Gives up checkpoints that fail at the first attempt, since the log has their events, and
    /// stops merges.
    pub(crate) fn stop_retrying(&self) {
        self.stop.stop();
        let _ = self.commands.send(Command::Stop);
    }
}

/// A failed checkpoint that will be retried.
struct Postponed {
    job: Box<Job>,
    at: Stopwatch,
    tries: u32,
}

fn run(store: &dyn Store, inbox: &Receiver<Command>, stop: &StopSignal, urgency: &Urgency) {
    let mut postponed: Vec<Postponed> = Vec::new();
    loop {
        let command = next_command(inbox, &postponed);
        // Their partitions keep all changes in memory, and the server is not ready.
        let _hurry = (!postponed.is_empty()).then(|| urgency.hurry());
        match command {
            Ok(Command::Write(job)) => try_to_write(store, job, 0, &mut postponed, stop),
            Ok(Command::RetryNow(partition)) => {
                postponed.iter_mut().filter(|one| one.job.partition() == partition).for_each(|one| one.at = Stopwatch::now());
            }
            Ok(Command::Remove(removal)) => removal.run(store),
            Ok(Command::Stop) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if stop.is_stopped() {
            postponed.drain(..).for_each(|one| one.job.give_up());
        }
        // One at a time, so that a new checkpoint waits for at most one failing partition.
        let now = Stopwatch::now();
        if let Some(due) = postponed.iter().position(|one| one.at <= now) {
            let Postponed { job, tries, .. } = postponed.swap_remove(due);
            try_to_write(store, job, tries, &mut postponed, stop);
        }
    }
}

fn next_command(inbox: &Receiver<Command>, postponed: &[Postponed]) -> Result<Command, RecvTimeoutError> {
    match postponed.iter().map(|one| one.at).min() {
        Some(at) => inbox.recv_timeout(at.saturating_duration_since(Stopwatch::now())),
        None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
    }
}

fn try_to_write(store: &dyn Store, mut job: Box<Job>, tries: u32, postponed: &mut Vec<Postponed>, stop: &StopSignal) {
    match job.attempt(store) {
        Attempt::Saved => {
            job.saved();
            // The cause, such as a full disk, may have stopped the others, too.
            if tries > 0 {
                postponed.iter_mut().for_each(|one| one.at = Stopwatch::now());
            }
        }
        Attempt::TakenBack => {}
        Attempt::Failed(error) if stop.is_stopped() => {
            tracing::warn!(partition = job.partition(), %error, "last checkpoint not written; the next start replays the log");
            job.give_up();
        }
        Attempt::Failed(error) => {
            let tries = tries + 1;
            let wait = FIRST_WAIT.saturating_mul(1 << (tries - 1).min(8)).min(MAX_WAIT);
            // Logged seldom, so that log lines don't fill the disk.
            if tries.is_power_of_two() {
                tracing::error!(partition = job.partition(), %error, tries, ?wait, "checkpoint not written; it is tried again");
            }
            job.postponed(error.to_string());
            postponed.push(Postponed { job, at: Stopwatch::now() + wait, tries });
        }
    }
}
