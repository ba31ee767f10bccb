use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::contract::{OpenCheckpoint, Store, Visit, check_key, check_value, partition_of};
use super::error::StoreError;
use crate::keyspace::PartitionId;
use parking_lot::Mutex;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// An in-memory version of [`DiskStore`](super::DiskStore) with the same semantics. Its contents
/// end with the last clone.
///
/// Clones share their contents, so a test can "reopen" it.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    partitions: HashMap<PartitionId, Arc<Pairs>>,
    open: HashSet<PartitionId>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn pairs(&self, partition: PartitionId) -> Arc<Pairs> {
        self.shared.lock().partitions.get(&partition).cloned().unwrap_or_default()
    }
}

impl Store for MemoryStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.pairs(partition_of(key)?).get(key).cloned())
    }

    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let pairs = self.pairs(partition_of(prefix)?);
        for (key, value) in pairs.range(prefix.to_vec()..) {
            if !key.starts_with(prefix) || visit(key, value) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn begin(&self, partition: PartitionId) -> Result<Box<dyn OpenCheckpoint>, StoreError> {
        if !self.shared.lock().open.insert(partition) {
            return Err(StoreError::Busy { partition });
        }
        Ok(Box::new(MemoryCheckpoint { store: self.clone(), partition, changes: BTreeMap::new() }))
    }

    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        // Commits don't fail here.
        if self.shared.lock().open.contains(&partition) { Err(StoreError::Busy { partition }) } else { Ok(()) }
    }
}

struct MemoryCheckpoint {
    store: MemoryStore,
    partition: PartitionId,
    changes: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl OpenCheckpoint for MemoryCheckpoint {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        check_key(self.partition, key)?;
        check_value(key, value)?;
        self.changes.insert(key.to_vec(), Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        check_key(self.partition, key)?;
        self.changes.insert(key.to_vec(), None);
        Ok(())
    }

    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        let changes = std::mem::take(&mut self.changes);
        let mut shared = self.store.shared.lock();
        // A running scan keeps its map; the change then goes to a copy.
        let pairs = Arc::make_mut(shared.partitions.entry(self.partition).or_default());
        for (key, value) in changes {
            match value {
                Some(value) => pairs.insert(key, value),
                None => pairs.remove(&key),
            };
        }
        Ok(())
    }
}

impl Drop for MemoryCheckpoint {
    fn drop(&mut self) {
        self.store.shared.lock().open.remove(&self.partition);
    }
}
