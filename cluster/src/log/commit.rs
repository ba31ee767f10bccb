//! Commits events to the streams of partitions.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use headcount_storage::log::{Commit, Committed, LogError as StorageError, Outcome, Position, Refused};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::audit::AuditTiming;
use super::message::{Entry, MAX_EVENTS};
use super::waiting::AppendFigures;
use super::writer::LogWriter;
use super::{LogError, position};

/// How long brokers may take for the waiting submissions when it is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A waiting submission.
struct Submission<T> {
    count: u32,
    payload: Vec<u8>,
    ticket: T,
}

/// Receives the outcomes of submissions.
type Sink<T> = dyn Fn(Vec<Outcome<T>>) + Send + Sync;

/// Commits the events of the partitions that this machine owns. Each partition has a task, which
/// records its waiting submissions as one message at a time. Close this before you drop it, or the
/// outcome of the message in flight stays unknown.
pub struct StreamCommit<T> {
    runtime: Handle,
    sink: Arc<Sink<T>>,
    /// The queues by partition. Closing takes them, so later submissions are refused.
    queues: RwLock<Option<HashMap<u16, UnboundedSender<Submission<T>>>>>,
    tasks: Mutex<HashMap<u16, CommitTask>>,
    /// The number of messages sent again for partitions that were released.
    earlier_retries: AtomicU64,
    /// The times of audits.
    pub(crate) audit: AuditTiming,
}

/// The task of a partition.
struct CommitTask {
    task: JoinHandle<()>,
    /// Makes the task give up the messages that brokers don't confirm.
    stop: watch::Sender<bool>,
    has_ended: Arc<AtomicBool>,
    lost: Arc<OnceLock<String>>,
    figures: Arc<AppendFigures>,
}

/// The state of a partition's appends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Appends {
    /// The last position that a confirmed event can have; 0 if no message was confirmed yet.
    pub(crate) position: Position,
    /// How long the append in flight has waited; zero if there is none.
    pub(crate) waits: Duration,
}

impl CommitTask {
    /// Waits until the task has recorded its submissions, for at most `patience`. Then the task
    /// gives them up.
    async fn finish(self, patience: Duration) {
        let Self { mut task, stop, .. } = self;
        let ended = match tokio::time::timeout(patience, &mut task).await {
            Ok(ended) => ended,
            Err(_) => {
                stop.send_replace(true);
                task.await
            }
        };
        if let Err(error) = ended {
            tracing::error!(%error, "a partition's commit task ended early");
        }
    }
}

impl<T: Send + 'static> StreamCommit<T> {
    /// Begins without partitions. Their tasks will run on `runtime`, and call `sink` after each
    /// message with the outcomes in order of submission. The partition waits during the call, so
    /// `sink` should only pass the outcomes on.
    pub fn start(runtime: &Handle, sink: impl Fn(Vec<Outcome<T>>) + Send + Sync + 'static) -> Self {
        let (queues, tasks) = (RwLock::new(Some(HashMap::new())), Mutex::default());
        let (earlier_retries, audit) = (AtomicU64::new(0), AuditTiming::default());
        Self { runtime: runtime.clone(), sink: Arc::new(sink), queues, tasks, earlier_retries, audit }
    }

    /// Sets the times of audits.
    #[must_use]
    pub fn audited(self, audit: AuditTiming) -> Self {
        Self { audit, ..self }
    }

    /// Records the submissions of a partition from now on. The partition must be new to it. Does
    /// nothing after [`Commit::close`].
    pub fn adopt(&self, partition: u16, writer: LogWriter) {
        let (stop, stopped) = watch::channel(false);
        let mut queues = self.queues.write();
        let Some(queues) = queues.as_mut() else { return };
        let (queue, waiting) = unbounded_channel();
        queues.insert(partition, queue);
        let figures = Arc::clone(writer.figures());
        let outcomes = Outcomes { waiting, carried: None, under_way: Vec::new(), sink: Arc::clone(&self.sink) };
        let has_ended = Arc::<AtomicBool>::default();
        let lost = Arc::<OnceLock<String>>::default();
        let ended = Ending { reason: None, has_ended: Arc::clone(&has_ended), lost: Arc::clone(&lost) };
        let committer = Committer { partition, writer, ended, audit: self.audit, stop: stopped };
        let task = self.runtime.spawn(committer.run(outcomes));
        self.tasks.lock().insert(partition, CommitTask { task, stop, has_ended, lost, figures });
    }

    /// Whether a partition can't record events any more, because another machine writes it, or the
    /// brokers lost messages.
    pub fn has_ended(&self, partition: u16) -> bool {
        self.tasks.lock().get(&partition).is_some_and(|task| task.has_ended.load(Ordering::Acquire))
    }

    /// Returns the messages of a partition that the brokers have lost, if an audit has found any.
    pub fn lost(&self, partition: u16) -> Option<String> {
        self.tasks.lock().get(&partition)?.lost.get().cloned()
    }

    /// Returns the state of a partition's appends; `None` without the partition.
    pub(crate) fn appends(&self, partition: u16) -> Option<Appends> {
        let tasks = self.tasks.lock();
        let figures = &tasks.get(&partition)?.figures;
        let position = match figures.last_confirmed() {
            0 => 0,
            sequence => position::last_of(sequence),
        };
        Some(Appends { position, waits: figures.waits() })
    }

    /// Returns the number of messages sent again since the start, of all partitions.
    pub(crate) fn retries(&self) -> u64 {
        let tasks = self.tasks.lock();
        self.earlier_retries.load(Ordering::Relaxed) + tasks.values().map(|task| task.figures.retries()).sum::<u64>()
    }

    /// Refuses further submissions of a partition, and returns when the waiting ones have their
    /// outcomes. If brokers don't confirm a message within `patience`, its outcome is unknown.
    pub async fn release(&self, partition: u16, patience: Duration) {
        drop(self.queues.write().as_mut().and_then(|queues| queues.remove(&partition)));
        let taken = {
            let mut tasks = self.tasks.lock();
            let task = tasks.remove(&partition);
            task.map(|task| {
                let (figures, counted) = (Arc::clone(&task.figures), task.figures.retries());
                self.earlier_retries.fetch_add(counted, Ordering::Relaxed);
                (task, figures, counted)
            })
        };
        if let Some((task, figures, counted)) = taken {
            task.finish(patience).await;
            self.earlier_retries.fetch_add(figures.retries() - counted, Ordering::Relaxed);
        }
    }
}

impl<T: Send + 'static> Commit<T> for StreamCommit<T> {
    /// Also returns the ticket if this machine does not own the partition.
    fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: T) -> Result<(), T> {
        let queues = self.queues.read();
        match queues.as_ref().and_then(|queues| queues.get(&partition)) {
            Some(queue) => queue.send(Submission { count, payload, ticket }).map_err(|unsent| unsent.0.ticket),
            None => Err(ticket),
        }
    }

    /// A stream has no segments.
    fn end_segment(&self, _: Position) -> bool {
        false
    }

    /// If brokers don't confirm a message within ten seconds, its outcome is unknown, and the
    /// submissions after it are refused. A task of a runtime can't wait for that: if one calls
    /// this, it returns at once, and the outcomes of messages in flight are unknown.
    fn close(&self) {
        drop(self.queues.write().take());
        let tasks = std::mem::take(&mut *self.tasks.lock());
        if Handle::try_current().is_ok() {
            for task in tasks.into_values() {
                let _was_stopped = task.stop.send_replace(true);
            }
            return;
        }
        self.runtime.block_on(join_all(tasks.into_values().map(|task| task.finish(CLOSE_TIMEOUT))));
    }
}

impl<T> std::fmt::Debug for StreamCommit<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamCommit").finish_non_exhaustive()
    }
}

/// The queue of a partition. Every submission gets an outcome, whatever ends the task.
struct Outcomes<T> {
    waiting: UnboundedReceiver<Submission<T>>,
    /// The submission that did not fit into the last batch.
    carried: Option<Submission<T>>,
    /// The tickets of the message in flight, with their numbers of events.
    under_way: Vec<(u32, T)>,
    sink: Arc<Sink<T>>,
}

impl<T> Outcomes<T> {
    /// Waits for submissions, and takes as many as fit into `most` bytes, or one that is larger.
    /// Returns their entries; `None` if the queue is closed and empty.
    async fn gather(&mut self, most: usize) -> Option<Vec<Entry>> {
        let first = match self.carried.take() {
            Some(first) => first,
            None => self.waiting.recv().await?,
        };
        let (mut events, mut bytes) = (u64::from(first.count), first.payload.len());
        let mut entries = vec![self.begin(first)];
        while let Ok(next) = self.waiting.try_recv() {
            events += u64::from(next.count);
            bytes += next.payload.len();
            if events > u64::from(MAX_EVENTS) || bytes > most {
                self.carried = Some(next);
                break;
            }
            entries.push(self.begin(next));
        }
        Some(entries)
    }

    fn begin(&mut self, submission: Submission<T>) -> Entry {
        let Submission { count, payload, ticket } = submission;
        self.under_way.push((count, ticket));
        Entry { count, payload }
    }

    /// Reports the outcomes of the first `count` submissions in flight.
    fn report(&mut self, count: usize, outcome: impl FnMut((u32, T)) -> Outcome<T>) {
        let outcomes = self.under_way.drain(..count).map(outcome).collect();
        (self.sink)(outcomes);
    }
}

impl<T> Drop for Outcomes<T> {
    fn drop(&mut self) {
        self.waiting.close();
        let mut outcomes: Vec<_> = self.under_way.drain(..).map(|(_, ticket)| Outcome::Undecided(ticket)).collect();
        let reason = Arc::new(LogError::unavailable("the partition is no longer written").into());
        let refused =
            |submission: Submission<T>| Outcome::Refused(Refused { reason: Arc::clone(&reason), ticket: submission.ticket });
        outcomes.extend(self.carried.take().map(refused));
        while let Ok(submission) = self.waiting.try_recv() {
            outcomes.push(refused(submission));
        }
        if !outcomes.is_empty() && catch_unwind(AssertUnwindSafe(|| (self.sink)(outcomes))).is_err() {
            tracing::error!("outcomes could not be handed out");
        }
    }
}

/// The owner of one partition.
struct Committer {
    partition: u16,
    writer: LogWriter,
    ended: Ending,
    audit: AuditTiming,
    stop: watch::Receiver<bool>,
}

/// The reason why a partition can't be written any more.
struct Ending {
    reason: Option<Arc<StorageError>>,
    /// Whether it can't be written any more.
    has_ended: Arc<AtomicBool>,
    /// The messages that the brokers have lost.
    lost: Arc<OnceLock<String>>,
}

impl Committer {
    /// Commits until the queue is closed and empty, or the task has to stop.
    async fn run<T>(mut self, mut outcomes: Outcomes<T>) {
        let mut audits = interval_at(Instant::now() + self.audit.every, self.audit.every);
        audits.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let gathered = tokio::select! {
                // Audits come first, even if there are always events to record.
                biased;
                _ = audits.tick() => {
                    if self.audit().await.is_none() {
                        return;
                    }
                    continue;
                }
                gathered = outcomes.gather(self.writer.gathered_bytes()) => gathered,
            };
            let Some(entries) = gathered else { return };
            // A submission that can't be recorded is refused alone.
            let is_refused = entries.iter().any(|entry| entry.count == 0);
            let batches = if is_refused { entries.into_iter().map(|entry| vec![entry]).collect() } else { vec![entries] };
            for batch in batches {
                if self.commit(&mut outcomes, batch).await.is_none() {
                    return;
                }
            }
        }
    }

    /// Checks that the brokers still have the confirmed messages. Returns `None` if the task has to
    /// stop.
    async fn audit(&mut self) -> Option<()> {
        if self.ended.lost.get().is_some() {
            return Some(());
        }
        let found = tokio::select! {
            found = self.writer.audit(self.audit) => found,
            _ = self.stop.wait_for(|stopped| *stopped) => return None,
        };
        if let Err(error) = found {
            tracing::error!(partition = self.partition, %error, "the brokers lost what they had confirmed: the partition is stopped");
            let _is_first = self.ended.lost.set(error.to_string()).is_ok();
            self.ended.reason.get_or_insert(Arc::new(error.into()));
            self.ended.has_ended.store(true, Ordering::Release);
        }
        Some(())
    }

    /// Records the first entries in flight as one message, and reports their outcomes. Returns
    /// `None` if the task has to stop.
    async fn commit<T>(&mut self, outcomes: &mut Outcomes<T>, entries: Vec<Entry>) -> Option<()> {
        let count = entries.len();
        if let Some(reason) = &self.ended.reason {
            outcomes.report(count, |(_, ticket)| Outcome::Refused(Refused { reason: Arc::clone(reason), ticket }));
            return Some(());
        }
        let appended = tokio::select! {
            appended = self.writer.append(entries) => appended,
            // The outcome of the message is unknown.
            _ = self.stop.wait_for(|stopped| *stopped) => return None,
        };
        let error = match appended {
            Ok(sequence) => {
                let mut next = position::first_of(sequence);
                outcomes.report(count, |(count, ticket)| {
                    let first = next;
                    next += u64::from(count);
                    Outcome::Committed(Committed { partition: self.partition, first, count, ticket })
                });
                return Some(());
            }
            Err(error) => error,
        };
        let is_unknown = matches!(error, LogError::Broken { .. } | LogError::Missing { .. });
        let ends = is_unknown || matches!(error, LogError::Fenced { .. });
        let reason: Arc<StorageError> = Arc::new(error.into());
        if ends {
            tracing::warn!(partition = self.partition, %reason, "this machine no longer writes the partition");
            self.ended.reason = Some(Arc::clone(&reason));
        }
        outcomes.report(count, |(_, ticket)| match is_unknown {
            true => Outcome::Undecided(ticket),
            false => Outcome::Refused(Refused { reason: Arc::clone(&reason), ticket }),
        });
        if is_unknown {
            self.audit().await?;
        }
        // Set last: once it is known whether messages are lost, the partition may be given up.
        self.ended.has_ended.fetch_or(ends, Ordering::AcqRel);
        Some(())
    }
}
