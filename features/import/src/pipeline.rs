//! One thread reads blocks, several threads prepare them, and the results come out in the order of
//! the file.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};

use headcount_api::command::Failure;
use headcount_storage::background::{self, Tempo};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::events::{Events, Reading};
use super::lines::{Block, Blocks, Opening};
use super::progress::Progress;

/// The maximum number of waiting blocks, before and after preparation.
const WAITING: usize = 3;

/// The events of a block.
pub(crate) struct Batch<P> {
    /// The events as read.
    pub(crate) events: Events,
    /// The result of their preparation.
    pub(crate) prepared: P,
}

/// Batches in the order of the file.
pub(crate) struct Ordered<P> {
    batches: mpsc::Receiver<Result<Batch<P>, (u64, io::Error)>>,
    early: BTreeMap<u64, Batch<P>>,
    next: u64,
    /// The number of blocks before reading failed, and the error.
    failed: Option<(u64, io::Error)>,
    progress: Arc<Progress>,
}

impl<P> Drop for Ordered<P> {
    fn drop(&mut self) {
        // Stop waiting for a followed file.
        self.progress.closed.store(true, Ordering::Relaxed);
    }
}

impl<P> Ordered<P> {
    /// Returns the next batch, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Batch<P>>, Failure> {
        loop {
            if let Some(batch) = self.early.remove(&self.next) {
                self.next += 1;
                return Ok(Some(batch));
            }
            if let Some((_, error)) = self.failed.take_if(|(after, _)| *after == self.next) {
                return Err(Failure::new("the file can't be read", error));
            }
            match self.batches.recv().await {
                Some(Ok(batch)) => drop(self.early.insert(batch.events.number, batch)),
                Some(Err(failed)) => self.failed = Some(failed),
                // A preparing thread that panicked leaves a gap.
                None if self.early.is_empty() && self.failed.is_none() => return Ok(None),
                None => return Err(Failure("a thread that reads events failed".into())),
            }
        }
    }
}

/// Starts the threads. They end with the input, or when [`Ordered`] is dropped. A thread opens the
/// input, since opening a pipe may block.
pub(crate) fn start<P: Send + 'static>(
    opening: Opening,
    threads: usize,
    reading: Reading,
    prepare: impl Fn(&mut Events) -> P + Send + Sync + 'static,
) -> io::Result<Ordered<P>> {
    let (to_prepare, blocks_read) = sync_channel::<Block>(WAITING);
    let (to_record, batches) = mpsc::channel(WAITING);
    let failed = to_record.clone();
    let progress = Arc::clone(&opening.progress);
    std::thread::Builder::new().name("import-read".into()).spawn(move || {
        let mut number = 0;
        let read = || -> io::Result<()> {
            let mut blocks = Blocks::open(opening)?;
            while let Some(block) = blocks.next_block()? {
                number = block.number + 1;
                if to_prepare.send(block).is_err() {
                    break;
                }
            }
            Ok(())
        };
        if let Err(error) = read() {
            drop(failed.blocking_send(Err((number, error))));
        }
    })?;
    let blocks_read = Arc::new(Mutex::new(blocks_read));
    let work = Arc::new((reading, prepare));
    for number in 0..threads.max(1) {
        let (blocks_read, to_record, work) = (Arc::clone(&blocks_read), to_record.clone(), Arc::clone(&work));
        std::thread::Builder::new().name(format!("import-{number}")).spawn(move || {
            // Shards have priority, but no other thread needs the processors.
            background::begin(|| Tempo::Full);
            while let Some(block) = receive(&blocks_read) {
                let mut events = work.0.read(block);
                let prepared = (work.1)(&mut events);
                if to_record.blocking_send(Ok(Batch { events, prepared })).is_err() {
                    break;
                }
            }
        })?;
    }
    Ok(Ordered { batches, early: BTreeMap::new(), next: 0, failed: None, progress })
}

fn receive(blocks: &Mutex<Receiver<Block>>) -> Option<Block> {
    blocks.lock().recv().ok()
}
