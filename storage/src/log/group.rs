//! Group commit: many submissions, one write and one sync.
//!
//! A thread owns the log. It takes what is queued and appends it as one block; what is submitted meanwhile waits for the
//! next. So a lone submission is written at once, and under load the blocks grow as large as the disk is slow. The
//! queue itself has no bound: whoever submits has admitted the bytes before.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::JoinHandle;

use super::error::LogError;
use super::{EventLog, Position, Share};

/// How much goes into one block.
#[derive(Debug, Clone)]
pub struct GroupOptions {
    /// Most bytes of payload in a block; a single submission may be larger.
    pub max_bytes: usize,
    /// Most events in a block; a single submission may have more.
    pub max_events: u64,
    /// What to do wrong.
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

/// A mistake to make on purpose: a test of crashes that doesn't notice it proves nothing.
#[cfg(feature = "fault-injection")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// None.
    #[default]
    None,
    /// Hands out `Committed` for what is written but not synced: lost by a power cut, though not by a kill.
    AckBeforeSync,
    /// Hands out `Committed` 20 ms before anything is written: lost by a kill, too.
    AckBeforeWrite,
}

/// A submission that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed<T> {
    /// Its partition.
    pub partition: u16,
    /// Position of its first event; the others follow.
    pub first: Position,
    /// Number of its events.
    pub count: u32,
    /// What it was submitted with.
    pub ticket: T,
}

/// A submission that was not recorded, and never will be.
#[derive(Debug, Clone)]
pub struct Refused<T> {
    /// Why; the same for all that were refused together.
    pub reason: Arc<LogError>,
    /// What it was submitted with.
    pub ticket: T,
}

/// What became of a submission.
#[derive(Debug, Clone)]
pub enum Outcome<T> {
    /// It is on disk.
    Committed(Committed<T>),
    /// It was not recorded.
    Refused(Refused<T>),
}

struct Item<T> {
    partition: u16,
    count: u32,
    payload: Vec<u8>,
    ticket: T,
}

/// The thread that writes a log, and the queue before it. Share it by `Arc`.
pub struct GroupCommit<T> {
    /// Taken when closed, so that nothing can be submitted that nobody would read.
    queue: RwLock<Option<Sender<Item<T>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl<T: Send + 'static> GroupCommit<T> {
    /// Starts the thread. `sink` is called on it after each block, with the outcomes in order of submission; while it
    /// runs nothing is written, so it should only pass them on.
    ///
    /// # Errors
    /// If the operating system gives no thread.
    pub fn spawn(
        log: impl EventLog + 'static,
        options: GroupOptions,
        sink: impl FnMut(Vec<Outcome<T>>) + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, receiver) = channel();
        let thread =
            std::thread::Builder::new().name("log".into()).spawn(move || Committer { log, options, sink }.run(&receiver))?;
        Ok(GroupCommit { queue: RwLock::new(Some(sender)), thread: Mutex::new(Some(thread)) })
    }

    /// Queues `count` events of a partition. Their outcome is handed to the sink.
    ///
    /// # Errors
    /// Gives the ticket back if the queue is closed, or the thread gone because the sink panicked: nothing was recorded.
    pub fn submit(&self, partition: u16, count: u32, payload: Vec<u8>, ticket: T) -> Result<(), T> {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let item = Item { partition, count, payload, ticket };
        match queue.as_ref() {
            Some(sender) => sender.send(item).map_err(|unsent| unsent.0.ticket),
            None => Err(item.ticket),
        }
    }
}

impl<T> GroupCommit<T> {
    /// Takes no more submissions, writes those that are queued, hands out their outcomes, and ends the thread. Does
    /// nothing the second time.
    pub fn close(&self) {
        drop(self.queue.write().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            if thread.thread().id() == std::thread::current().id() {
                // The sink holds the last handle; its thread ends by itself when it finds the queue closed.
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
        self.close();
    }
}

impl<T> std::fmt::Debug for GroupCommit<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommit").finish_non_exhaustive()
    }
}

struct Committer<L, S> {
    log: L,
    options: GroupOptions,
    sink: S,
}

impl<L: EventLog, S> Committer<L, S> {
    fn run<T>(mut self, queue: &Receiver<Item<T>>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        let mut carried = None;
        // After the queue is closed `recv` still returns what is in it.
        while let Some(item) = carried.take().or_else(|| queue.recv().ok()) {
            let mut batch = vec![item];
            carried = self.gather(&mut batch, queue);
            self.commit(batch);
        }
    }

    /// Adds to the batch what is queued, as far as it goes. Returns the one that no longer fitted.
    fn gather<T>(&self, batch: &mut Vec<Item<T>>, queue: &Receiver<Item<T>>) -> Option<Item<T>> {
        let mut bytes: usize = batch.iter().map(|item| item.payload.len()).sum();
        let mut events: u64 = batch.iter().map(|item| u64::from(item.count)).sum();
        while let Ok(item) = queue.try_recv() {
            bytes += item.payload.len();
            events += u64::from(item.count);
            if bytes > self.options.max_bytes || events > self.options.max_events {
                return Some(item);
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
        let result = append(&batch, |shares| self.log.append(shares));
        self.settle(batch, result);
    }

    #[cfg(feature = "fault-injection")]
    fn commit<T>(&mut self, batch: Vec<Item<T>>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        match self.options.fault {
            Fault::None => {
                let result = append(&batch, |shares| self.log.append(shares));
                self.settle(batch, result);
            }
            Fault::AckBeforeSync => {
                let result = append(&batch, |shares| self.log.append_unsynced(shares));
                self.settle(batch, result);
            }
            Fault::AckBeforeWrite => self.acknowledge_then_append(batch),
        }
    }

    #[cfg(feature = "fault-injection")]
    fn acknowledge_then_append<T>(&mut self, batch: Vec<Item<T>>)
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
        if let Err(error) = append(&items, |shares| self.log.append(shares)) {
            tracing::error!(%error, "an append failed that was acknowledged on purpose");
        }
    }

    /// Hands out the outcomes of one append.
    fn settle<T>(&mut self, batch: Vec<Item<T>>, result: Result<Position, LogError>)
    where
        S: FnMut(Vec<Outcome<T>>),
    {
        let outcomes = match result {
            Ok(first) => committed(batch, first),
            // One of them can't be appended: the others are not to suffer for it.
            Err(LogError::TooLarge { .. } | LogError::Empty) if batch.len() > 1 => {
                batch.into_iter().flat_map(|item| self.commit_alone(item)).collect()
            }
            Err(error) => refused(batch, error),
        };
        (self.sink)(outcomes);
    }

    fn commit_alone<T>(&mut self, item: Item<T>) -> Vec<Outcome<T>> {
        let batch = vec![item];
        match append(&batch, |shares| self.log.append(shares)) {
            Ok(first) => committed(batch, first),
            Err(error) => refused(batch, error),
        }
    }
}

fn append<T>(batch: &[Item<T>], append: impl FnOnce(&[Share<'_>]) -> Result<Position, LogError>) -> Result<Position, LogError> {
    let shares: Vec<Share<'_>> =
        batch.iter().map(|item| Share { partition: item.partition, count: item.count, payload: &item.payload }).collect();
    append(&shares)
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
