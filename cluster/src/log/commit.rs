//! Committing events to the streams of partitions.

use std::collections::HashMap;
use std::sync::Arc;

use headcount_storage::log::{Commit, Committed, Outcome, Position, Refused};
use parking_lot::{Mutex, RwLock};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::message::{Entry, MAX_EVENTS};
use super::writer::LogWriter;
use super::{LogError, position};

/// How much is gathered in a message; a single submission may be larger.
const MAX_GATHERED_BYTES: usize = 1 << 20;

/// A submission that waits.
struct Submission<T> {
    count: u32,
    payload: Vec<u8>,
    ticket: T,
}

/// Commits the events of the partitions that this machine owns. Each has a task, which records what waits as one message, one at a time.
pub struct StreamCommit<T> {
    runtime: Handle,
    /// By partition. Taken when closed, so that nothing can be submitted that nobody would read.
    queues: RwLock<Option<HashMap<u16, UnboundedSender<Submission<T>>>>>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl<T: Send + 'static> StreamCommit<T> {
    /// Starts a task for each partition on `runtime`. They call `sink` after each message, with the outcomes in order of submission. The partition waits during the
    /// call, so `sink` should only pass them on.
    pub fn start<S>(runtime: &Handle, owned: Vec<(u16, LogWriter)>, sink: S) -> Self
    where
        S: Fn(Vec<Outcome<T>>) + Send + Sync + 'static,
    {
        let (sink, mut queues, mut tasks) = (Arc::new(sink), HashMap::new(), Vec::new());
        for (partition, writer) in owned {
            let (queue, waiting) = unbounded_channel();
            queues.insert(partition, queue);
            let committer = Committer { partition, writer, ended: None };
            tasks.push(runtime.spawn(committer.run(waiting, Arc::clone(&sink))));
        }
        Self { runtime: runtime.clone(), queues: RwLock::new(Some(queues)), tasks: Mutex::new(tasks) }
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
    fn end_segment(&self, _: Position) {}

    /// Must not be called by a task of the runtime.
    fn close(&self) {
        drop(self.queues.write().take());
        for task in std::mem::take(&mut *self.tasks.lock()) {
            if let Err(error) = self.runtime.block_on(task) {
                tracing::error!(%error, "a partition's commit task panicked");
            }
        }
    }
}

impl<T> std::fmt::Debug for StreamCommit<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamCommit").finish_non_exhaustive()
    }
}

/// The owner of one partition.
struct Committer {
    partition: u16,
    writer: LogWriter,
    /// Why nothing can be written any more.
    ended: Option<Arc<headcount_storage::log::LogError>>,
}

impl Committer {
    /// Commits until the queue is closed.
    async fn run<T>(mut self, mut waiting: UnboundedReceiver<Submission<T>>, sink: Arc<impl Fn(Vec<Outcome<T>>)>) {
        let mut carried = None;
        loop {
            // After the queue is closed, `recv` still returns what is in it.
            let first = match carried.take() {
                Some(first) => first,
                None => match waiting.recv().await {
                    Some(first) => first,
                    None => return,
                },
            };
            let batch;
            (batch, carried) = gather(first, &mut waiting);
            sink(self.commit(batch).await);
        }
    }

    /// Records a batch as one message. Returns the outcomes.
    async fn commit<T>(&mut self, batch: Vec<Submission<T>>) -> Vec<Outcome<T>> {
        let (mut entries, mut tickets) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for Submission { count, payload, ticket } in batch {
            entries.push(Entry { count, payload });
            tickets.push((count, ticket));
        }
        if let Some(reason) = &self.ended {
            return refused(tickets, reason);
        }
        match self.writer.append(entries).await {
            Ok(sequence) => self.committed(tickets, sequence),
            Err(error) => {
                let ends = matches!(error, LogError::Fenced { .. } | LogError::Broken { .. });
                let reason = Arc::new(error.into());
                if ends {
                    tracing::warn!(partition = self.partition, %reason, "this machine no longer writes the partition");
                    self.ended = Some(Arc::clone(&reason));
                }
                refused(tickets, &reason)
            }
        }
    }

    fn committed<T>(&self, tickets: Vec<(u32, T)>, sequence: u64) -> Vec<Outcome<T>> {
        let mut next = position::first_of(sequence);
        let outcome = |(count, ticket)| {
            let first = next;
            next += u64::from(count);
            Outcome::Committed(Committed { partition: self.partition, first, count, ticket })
        };
        tickets.into_iter().map(outcome).collect()
    }
}

/// Adds what waits to the first submission, up to the limits. Returns also the submission that no longer fits.
fn gather<T>(
    first: Submission<T>,
    waiting: &mut UnboundedReceiver<Submission<T>>,
) -> (Vec<Submission<T>>, Option<Submission<T>>) {
    let (mut events, mut bytes) = (u64::from(first.count), first.payload.len());
    let mut batch = vec![first];
    while let Ok(next) = waiting.try_recv() {
        events += u64::from(next.count);
        bytes += next.payload.len();
        // What can't be recorded at all is refused alone.
        if events > u64::from(MAX_EVENTS) || bytes > MAX_GATHERED_BYTES || next.count == 0 || batch[0].count == 0 {
            return (batch, Some(next));
        }
        batch.push(next);
    }
    (batch, None)
}

fn refused<T>(tickets: Vec<(u32, T)>, reason: &Arc<headcount_storage::log::LogError>) -> Vec<Outcome<T>> {
    let outcome = |(_, ticket)| Outcome::Refused(Refused { reason: Arc::clone(reason), ticket });
    tickets.into_iter().map(outcome).collect()
}
