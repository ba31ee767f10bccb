//! The keeper: one thread that writes checkpoints, so that no shard ever waits for the store.
//!
//! A checkpoint that can't be written (the disk is full) is tried again every second with the same content, until it is
//! written or its shard takes it back. The log has everything meanwhile, so a crash costs a longer replay and nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use headcount_domain::fold::Position;
use headcount_storage::fingerprints::{Frozen, Merge, Written};
use headcount_storage::store::{Realm, Store, StoreError};

use crate::aggregator::Entries;

const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What became of a checkpoint.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) partition: u16,
    pub(crate) position: Position,
    /// The runs that fingerprints became.
    pub(crate) runs: Vec<Written>,
    /// Whether it is durable; otherwise it was taken back.
    pub(crate) durable: bool,
}

/// One partition's checkpoint.
pub(crate) struct Job {
    pub(crate) partition: u16,
    /// The part of the store that the partition is kept in.
    pub(crate) realm: u16,
    pub(crate) position: Position,
    pub(crate) entries: Entries,
    pub(crate) fingerprints: Option<Frozen>,
    pub(crate) merge: Option<Merge>,
    /// Set by the shard to take it back.
    pub(crate) cancelled: Arc<AtomicBool>,
    pub(crate) done: Box<dyn FnOnce(Saved) + Send>,
}

enum Order {
    Write(Box<Job>),
    /// Answer when everything before is decided.
    Settle(SyncSender<()>),
}

/// A handle to the thread; it ends when the last one is dropped.
#[derive(Clone)]
pub(crate) struct Keeper {
    orders: Sender<Order>,
    stopping: Arc<AtomicBool>,
}

impl Keeper {
    /// Starts the thread.
    pub(crate) fn spawn(store: Arc<dyn Store>) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (orders, inbox) = channel();
        let stopping = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopping);
        let thread = std::thread::Builder::new().name("hc-keeper".into()).spawn(move || run(&*store, &inbox, &stop))?;
        Ok((Self { orders, stopping }, thread))
    }

    /// Has a checkpoint written. Bounded by its callers: each partition has at most one.
    pub(crate) fn write(&self, job: Job) {
        if self.orders.send(Order::Write(Box::new(job))).is_err() {
            tracing::error!("the checkpoint thread is gone; the log keeps everything");
        }
    }

    /// What can't be written at once is given up from here on: the log has it.
    pub(crate) fn stop_trying(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    /// Waits until every checkpoint handed in before is written or taken back.
    pub(crate) fn settle(&self) {
        let (done, wait) = sync_channel(1);
        if self.orders.send(Order::Settle(done)).is_ok() {
            let _ = wait.recv();
        }
    }
}

fn run(store: &dyn Store, inbox: &Receiver<Order>, stopping: &AtomicBool) {
    while let Ok(order) = inbox.recv() {
        match order {
            Order::Write(job) => keep(store, *job, stopping),
            Order::Settle(done) => drop(done.send(())),
        }
    }
}

fn keep(store: &dyn Store, mut job: Job, stopping: &AtomicBool) {
    job.entries.sort();
    let mut written = None;
    let durable = loop {
        if job.cancelled.load(Ordering::Acquire) {
            break false;
        }
        match write(store, &job, &mut written) {
            Ok(()) => break true,
            // Only opening the store again decides whether that commit counts. Until then this partition has no more
            // checkpoints, and the next start replays the log from the last one.
            Err(error @ StoreError::Stopped { .. }) => {
                tracing::error!(partition = job.partition, %error, "no more checkpoints until a restart");
                break false;
            }
            Err(error) if stopping.load(Ordering::Acquire) => {
                tracing::warn!(partition = job.partition, %error, "last checkpoint not written; the next start replays the log");
                break false;
            }
            Err(error) => {
                tracing::warn!(partition = job.partition, %error, "checkpoint not written, trying again");
                std::thread::sleep(RETRY_AFTER);
            }
        }
    };
    let mut runs: Vec<Written> = written.into_iter().collect();
    if let (true, Some(merge)) = (durable, &job.merge) {
        match merge.write(&job.cancelled) {
            Ok(run) => runs.push(run),
            Err(error) => tracing::warn!(partition = job.partition, %error, "fingerprints not merged; that can wait"),
        }
    }
    (job.done)(Saved { partition: job.partition, position: job.position, runs, durable });
}

fn write(store: &dyn Store, job: &Job, written: &mut Option<Written>) -> Result<(), StoreError> {
    // Durable before the position that covers them: an index that is ahead is harmless, one that is behind is not.
    if let (Some(frozen), None) = (&job.fingerprints, &written) {
        let failed = |error: headcount_storage::fingerprints::FingerprintError| StoreError::Io {
            action: "write fingerprints".into(),
            source: std::io::Error::other(error.to_string()),
        };
        *written = Some(frozen.write().map_err(failed)?);
    }
    let mut checkpoint = store.begin(Realm::new(job.realm))?;
    for (key, value) in job.entries.iter() {
        match value {
            Some(value) => checkpoint.put(key, value)?,
            None => checkpoint.delete(key)?,
        }
    }
    checkpoint.commit()
}
