//! Blocks are read on one thread, prepared on several, and come out in the order of the file.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc;

use super::events::{Events, Reading};
use super::lines::{Block, Blocks};
use crate::cli::Failure;

/// How many blocks may wait, before and after they are prepared.
const WAITING: usize = 3;

/// A block's events, and what was prepared of them.
pub(crate) struct Batch<P> {
    /// The events.
    pub(crate) events: Events,
    /// What was prepared.
    pub(crate) prepared: P,
}

/// Batches in the order of the file.
pub(crate) struct Ordered<P> {
    batches: mpsc::Receiver<io::Result<Batch<P>>>,
    early: BTreeMap<u64, Batch<P>>,
    next: u64,
}

impl<P> Ordered<P> {
    /// The next batch; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Batch<P>>, Failure> {
        loop {
            if let Some(batch) = self.early.remove(&self.next) {
                self.next += 1;
                return Ok(Some(batch));
            }
            match self.batches.recv().await {
                Some(Ok(batch)) => drop(self.early.insert(batch.events.number, batch)),
                Some(Err(error)) => return Err(Failure::new("the file can't be read", error)),
                // A preparing thread that panicked leaves a hole.
                None if self.early.is_empty() => return Ok(None),
                None => return Err(Failure("a thread that reads events failed".into())),
            }
        }
    }
}

/// Starts the threads; they end when the blocks do, or when nobody wants batches any more.
pub(crate) fn start<P: Send + 'static>(
    blocks: Blocks,
    threads: usize,
    reading: Reading,
    prepare: impl Fn(&mut Events) -> P + Send + Sync + 'static,
) -> io::Result<Ordered<P>> {
    let (to_prepare, blocks_read) = sync_channel::<Block>(WAITING);
    let (to_record, batches) = mpsc::channel(WAITING);
    let failed = to_record.clone();
    std::thread::Builder::new().name("import-read".into()).spawn(move || {
        let mut blocks = blocks;
        loop {
            match blocks.next_block() {
                Ok(Some(block)) => {
                    if to_prepare.send(block).is_err() {
                        break;
                    }
                }
                Ok(None) => break,
                Err(error) => return drop(failed.blocking_send(Err(error))),
            }
        }
    })?;
    let blocks_read = Arc::new(Mutex::new(blocks_read));
    let work = Arc::new((reading, prepare));
    for number in 0..threads.max(1) {
        let (blocks_read, to_record, work) = (Arc::clone(&blocks_read), to_record.clone(), Arc::clone(&work));
        std::thread::Builder::new().name(format!("import-{number}")).spawn(move || {
            while let Some(block) = receive(&blocks_read) {
                let mut events = work.0.read(block);
                let prepared = (work.1)(&mut events);
                if to_record.blocking_send(Ok(Batch { events, prepared })).is_err() {
                    break;
                }
            }
        })?;
    }
    Ok(Ordered { batches, early: BTreeMap::new(), next: 0 })
}

fn receive(blocks: &Mutex<Receiver<Block>>) -> Option<Block> {
    blocks.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
