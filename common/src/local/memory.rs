//! Small values in the memory of this machine.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::documents::DocumentsError;
use crate::values::SharedValues;

/// Values that vanish by themselves, and with the process.
#[derive(Debug)]
pub struct MemoryValues {
    /// How long a value exists.
    kept: Duration,
    values: Mutex<HashMap<String, WrittenValue>>,
}

/// A value with its revision, and the time when it was written.
type WrittenValue = (Vec<u8>, u64, Instant);

impl MemoryValues {
    /// Begins without values. Each vanishes after that time.
    pub fn new(kept: Duration) -> Self {
        Self { kept, values: Mutex::default() }
    }
}

impl SharedValues for MemoryValues {
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
        let values = self.values.lock();
        let known = values.get(key).filter(|(value, ..)| !value.is_empty());
        Ok(known.map(|(value, revision, _)| (value.clone(), *revision)))
    }

    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
        let mut values = self.values.lock();
        values.retain(|_, (.., written)| written.elapsed() < self.kept);
        if values.get(key).map_or(0, |(_, revision, _)| *revision) != revision {
            return Err(DocumentsError::Conflict);
        }
        values.insert(key.to_owned(), (value.to_vec(), revision + 1, Instant::now()));
        Ok(revision + 1)
    }

    fn remove(&self, key: &str) -> Result<(), DocumentsError> {
        self.values.lock().remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, DocumentsError> {
        Ok(self.values.lock().keys().filter_map(|key| key.strip_prefix(prefix)).map(str::to_owned).collect())
    }

    fn max_bytes(&self) -> usize {
        usize::MAX
    }
}
