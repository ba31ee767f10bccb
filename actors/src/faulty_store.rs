//! A store that fails when a test asks for it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{MemoryStore, OpenCheckpoint, Store, StoreError, Visit};
use parking_lot::Mutex;

/// A store that fails when a test asks for it. Clones are the same store.
#[derive(Clone, Default)]
pub(crate) struct FaultyStore {
    inner: MemoryStore,
    partitions: Arc<Mutex<HashMap<PartitionId, PartitionFaults>>>,
}

/// The failures of one partition, and observations about it.
#[derive(Default)]
pub(crate) struct PartitionFaults {
    /// How reads fail.
    pub(crate) reads: Option<ReadFault>,
    /// Whether no checkpoint can be begun.
    pub(crate) no_begin: bool,
    /// The number of commits that fail.
    pub(crate) failing_commits: u32,
    /// Whether failed commits still count, as recovery then shows.
    pub(crate) failed_counts: bool,
    /// Whether recovery fails.
    pub(crate) no_recovery: bool,
    /// Whether beginning a checkpoint panics, once.
    pub(crate) panics: bool,
    /// Number of attempts to begin a checkpoint.
    pub(crate) begun: u32,
    /// Number of attempted commits.
    pub(crate) commits: u32,
    /// Number of reads that failed.
    pub(crate) failed_reads: u32,
    stopped: bool,
    pending: Option<Box<dyn OpenCheckpoint>>,
}

/// The error of a failing read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadFault {
    Io,
    Damage,
}

fn refused() -> StoreError {
    StoreError::Io { action: "write a batch".into(), source: io::Error::from(io::ErrorKind::StorageFull) }
}

impl FaultyStore {
    pub(crate) fn change<R>(&self, partition: u16, change: impl FnOnce(&mut PartitionFaults) -> R) -> R {
        change(self.partitions.lock().entry(PartitionId(partition)).or_default())
    }

    fn check_read(&self, key: &[u8]) -> Result<(), StoreError> {
        let mut partitions = self.partitions.lock();
        let Some(faults) = PartitionId::of_key(key).and_then(|partition| partitions.get_mut(&partition)) else { return Ok(()) };
        faults.failed_reads += u32::from(faults.reads.is_some());
        match faults.reads {
            None => Ok(()),
            Some(ReadFault::Io) => Err(StoreError::Io { action: "read".into(), source: io::Error::other("planted") }),
            Some(ReadFault::Damage) => Err(StoreError::Damaged { what: "planted".into() }),
        }
    }
}

impl Store for FaultyStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_read(key)?;
        self.inner.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.check_read(prefix)?;
        self.inner.scan(prefix, visit)
    }

    fn begin(&self, partition: PartitionId) -> Result<Box<dyn OpenCheckpoint>, StoreError> {
        let mut partitions = self.partitions.lock();
        let faults = partitions.entry(partition).or_default();
        faults.begun += 1;
        assert!(!std::mem::take(&mut faults.panics), "planted");
        if faults.stopped {
            return Err(StoreError::Stopped { partition });
        }
        if faults.no_begin {
            return Err(refused());
        }
        Ok(Box::new(FaultyCheckpoint { store: self.clone(), partition, inner: self.inner.begin(partition)? }))
    }

    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        let mut partitions = self.partitions.lock();
        let faults = partitions.entry(partition).or_default();
        if faults.no_recovery {
            return Err(refused());
        }
        faults.stopped = false;
        match faults.pending.take() {
            Some(pending) if faults.failed_counts => pending.commit(),
            _ => Ok(()),
        }
    }
}

struct FaultyCheckpoint {
    store: FaultyStore,
    partition: PartitionId,
    inner: Box<dyn OpenCheckpoint>,
}

impl OpenCheckpoint for FaultyCheckpoint {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.inner.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.inner.delete(key)
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { store, partition, inner } = *self;
        let mut partitions = store.partitions.lock();
        let faults = partitions.entry(partition).or_default();
        faults.commits += 1;
        if faults.failing_commits == 0 {
            return inner.commit();
        }
        faults.failing_commits -= 1;
        faults.stopped = true;
        faults.pending = Some(inner);
        Err(refused())
    }
}
