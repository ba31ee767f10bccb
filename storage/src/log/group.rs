//! Group commit: many submissions, one write and one sync.
//!
//! A thread owns the log. It appends all queued submissions as one block; later submissions wait
//! for the next block. So a lone submission is written at once, and under load blocks grow with the
//! latency of the disk. The queue has no limit of its own: submissions have already passed an
//! admission gate.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::thread::JoinHandle;

use super::commit::{Commit, Committed, Outcome, Refused};
use super::error::LogError;
use super::writer::Log;
use super::{AppendEntry, Position};
use parking_lot::{Mutex, RwLock};

/// Limits of a block.
#[derive(Debug, Clone)]
pub struct GroupOptions {
    /// Maximum bytes of payload in a block; a single submission may be larger.
    pub max_bytes: usize,
    /// Maximum number of events in a block; a single submission may have more.
    pub max_events: u64,
    /// The fault to inject.
    #[cfg(feature = "fault-injection")]
    pub fault: Fault,
}

impl Default for GroupOptions {
    fn default() -> Self {
        GroupOptions {
            max_bytes: 1024 * 1024,
            max_events: 4096,
            #[cfg(feature = "fault-injection")]
            fault: Fault::None,
        }
    }
}

/// A fault to inject, for proving that a crash test detects it.
#[cfg(feature = "fault-injection")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// Reports `Committed` for written but unsynced events: a power cut loses them, but a kill does
    /// not.
    AckBeforeSync,
    /// Reports `Committed` 20 ms before anything is written: a kill loses the events, too.
    AckBeforeWrite,
}

/// The next task of the thread.
enum Command<T> {
    Append(Item<T>),
    /// See [`Commit::end_segment`].
    EndSegment(Position),
}

struct Item<T> {
    partition: u16,
    count: u32,
    payload: Vec<u8>,
    ticket: T,
}

/// The thread that writes a log, and the queue before it.
pub struct GroupCommit<T> {
    /// Taken when closed, so that nothing can be submitted that would not be read.
    queue: RwLock<Option<Sender<Command<T>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static> GroupCommit<T> {
    /// Starts the thread. It calls `sink` after each block, with the outcomes in order of
    /// submission. Nothing is written during the call, so `sink` should only pass them on.
    ///
    /// # Errors
    /// The operating system refuses the thread.
    pub fn spawn(log: Log, options: GroupOptions, sink: impl FnMut(Vec<Outcome<T>>) + Send + 'static) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let thread =
            std::thread::Builder::new().name("log".into()).spawn(move || Committer { log, options, sink }.run(receiver))?;
        Ok(GroupCommit { queue: RwLock::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }
}

impl<T: Send + 'static> Commit<T> for GroupCommit<T> {
    fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: T) -> Result<(), T> {
        let queue = self.queue.read();
        let item = Item { partition, count, payload, ticket };
        let Some(sender) = queue.as_ref() else { return Err(item.ticket) };
        match sender.send(Command::Append(item)) {
            Err(SendError(Command::Append(unsent))) => Err(unsent.ticket),
            Ok(()) | Err(SendError(Command::EndSegment(_))) => Ok(()),
        }
    }

    fn end_segment(&self, until: Position) -> bool {
        if let Some(sender) = self.queue.read().as_ref() {
            // If the thread is gone, the next start asks again.
            let _ = sender.send(Command::EndSegment(until));
        }
        true
    }

    fn close(&self) {
        self.stop();
    }
}

impl<T> GroupCommit<T> {
    fn stop(&self) {
        drop(self.queue.write().take());
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            if thread.thread().id() == std::thread::current().id() {
                // The sink has the last handle; its thread ends when it finds the queue closed.
                return;
            }
            if thread.join().is_err() {
                tracing::error!("the log's commit thread panicked");
            }
        }
    }
}

impl<T> Drop for GroupCommit<T> {
    fn drop(&mut self) {
        self.stop();
    }
}

impl<T> std::fmt::Debug for GroupCommit<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

struct Committer<S> {
    log: Log,
    options: GroupOptions,
    sink: S,
}

type Appended = Result<Position, LogError>;

impl<S> Committer<S> {
    /// Commits until the queue is closed. It owns the queue, so after a panic nothing more is taken
    /// once the sink is gone.
    fn run<T>(mut self, queue: Receiver<Command<T>>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        let mut carried = None;
        // After the queue is closed, `recv` still returns its contents.
        while let Some(command) = carried.take().or_else(|| queue.recv().ok()) {
            match command {
                Command::Append(item) => {
                    let mut batch = vec![item];
                    carried = self.gather(&mut batch, &queue);
                    self.commit(batch);
                }
                Command::EndSegment(until) => {
                    if let Err(error) = self.log.end_segment(until) {
                        tracing::warn!(%error, "could not begin a new segment of the log");
                    }
                }
            }
        }
    }

    /// Adds queued items to the batch, up to the limits. Returns the command that no longer fits.
    fn gather<T>(&self, batch: &mut Vec<Item<T>>, queue: &Receiver<Command<T>>) -> Option<Command<T>> {
        let mut bytes: usize = batch.iter().map(|item| item.payload.len()).sum();
        let mut events: u64 = batch.iter().map(|item| u64::from(item.count)).sum();
        while let Ok(command) = queue.try_recv() {
            let item = match command {
                Command::Append(item) => item,
                other @ Command::EndSegment(_) => return Some(other),
            };
            bytes += item.payload.len();
            events += u64::from(item.count);
            if bytes > self.options.max_bytes || events > self.options.max_events {
                return Some(Command::Append(item));
            }
            batch.push(item);
        }
        None
    }

    #[cfg(not(feature = "fault-injection"))]
    fn commit<T>(&mut self, batch: Vec<Item<T>>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        self.append_and_report(batch, Log::append);
    }

    #[cfg(feature = "fault-injection")]
    fn commit<T>(&mut self, batch: Vec<Item<T>>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        match self.options.fault {
            Fault::None => self.append_and_report(batch, Log::append),
            Fault::AckBeforeSync => self.append_and_report(batch, Log::append_unsynced),
            Fault::AckBeforeWrite => self.report_then_append(batch),
        }
    }

    #[cfg(feature = "fault-injection")]
    fn report_then_append<T>(&mut self, batch: Vec<Item<T>>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        let first = self.log.last_position() + 1;
        let items: Vec<Item<()>> = batch
            .iter()
            .map(|item| Item { partition: item.partition, count: item.count, payload: item.payload.clone(), ticket: () })
            .collect();
        (self.sink)(committed(batch, first));
        std::thread::sleep(std::time::Duration::from_millis(20));
        if let Err(error) = self.log.append(&entries(&items)) {
            tracing::error!(%error, "an append failed that was acknowledged on purpose");
        }
    }

    /// Appends a batch as one block and reports the outcomes. After a panic the state of the log is
    /// unknown: the batch is undecided, and the thread ends.
    fn append_and_report<T>(&mut self, batch: Vec<Item<T>>, append: fn(&mut Log, &[AppendEntry<'_>]) -> Appended)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        let outcomes = match catch_unwind(AssertUnwindSafe(|| append(&mut self.log, &entries(&batch)))) {
            Ok(Ok(first)) => committed(batch, first),
            // One item can't be appended: append each one alone, so that it doesn't fail the
            // others.
            Ok(Err(LogError::TooLarge { .. } | LogError::Empty)) if batch.len() > 1 => {
                return batch.into_iter().for_each(|item| self.append_and_report(vec![item], append));
            }
            Ok(Err(error)) => refused(batch, error),
            Err(panic) => {
                (self.sink)(batch.into_iter().map(|item| Outcome::Undecided(item.ticket)).collect());
                resume_unwind(panic);
            }
        };
        (self.sink)(outcomes);
    }
}

fn entries<T>(batch: &[Item<T>]) -> Vec<AppendEntry<'_>> {
    batch.iter().map(|item| AppendEntry { partition: item.partition, count: item.count, payload: &item.payload }).collect()
}

fn committed<T>(batch: Vec<Item<T>>, mut next: Position) -> Vec<Outcome<T>> {
    batch
        .into_iter()
        .map(|Item { partition, count, ticket, .. }| {
            let first = next;
            next += u64::from(count);
            Outcome::Committed(Committed { partition, first, count, ticket })
        })
        .collect()
}

fn refused<T>(batch: Vec<Item<T>>, error: LogError) -> Vec<Outcome<T>> {
    let reason = Arc::new(error);
    batch.into_iter().map(|item| Outcome::Refused(Refused { reason: Arc::clone(&reason), ticket: item.ticket })).collect()
}
