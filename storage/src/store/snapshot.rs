//! One committed state of a partition, to be read while later checkpoints are written.

use std::fmt;

use super::error::StoreError;
use crate::keyspace::PartitionId;
use crate::sstable::{MergeCursor, TableList};

/// A key and its value.
pub type StoredPair = (Vec<u8>, Vec<u8>);

/// One committed state of a partition. Later checkpoints don't change it. It keeps a copy of the small pairs in memory, and the
/// files of its tables readable.
pub struct PartitionSnapshot {
    partition: PartitionId,
    /// The pairs that lie in sled, in order.
    small: Vec<StoredPair>,
    tables: TableList,
}

impl PartitionSnapshot {
    pub(super) fn new(partition: PartitionId, small: Vec<StoredPair>, tables: TableList) -> Self {
        Self { partition, small, tables }
    }

    /// Whether nothing was ever committed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.small.is_empty() && self.tables.is_empty()
    }

    /// The bytes of the pairs that are in memory.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.small.iter().map(|(key, value)| key.len() + value.len() + size_of::<StoredPair>()).sum()
    }

    /// The bytes of the files.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.file_len()).sum()
    }

    /// Reads the pairs whose keys begin with the two bytes of the partition and `rest`, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn pairs(&self, rest: &[u8]) -> Result<SnapshotPairs<'_>, StoreError> {
        self.pairs_from(rest, rest)
    }

    /// As [`PartitionSnapshot::pairs`], from the first key that is at least the two bytes of the partition and `from`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn pairs_from(&self, rest: &[u8], from: &[u8]) -> Result<SnapshotPairs<'_>, StoreError> {
        let [prefix, from] = [rest, from].map(|rest| [&self.partition.prefix()[..], rest].concat());
        let begin = self.small.partition_point(|(key, _)| key.as_slice() < from.as_slice());
        let small = self.small.get(begin..).unwrap_or_default();
        let tables = MergeCursor::seek(&self.tables, &from)?;
        let mut pairs = SnapshotPairs { prefix, small, tables, in_table: false };
        pairs.advance_table()?;
        Ok(pairs)
    }
}

/// The pairs under a prefix, in the order of their keys.
pub struct SnapshotPairs<'s> {
    prefix: Vec<u8>,
    /// The rest of the pairs in memory.
    small: &'s [StoredPair],
    tables: MergeCursor<'s>,
    /// Whether the cursor is at a pair that has not been returned.
    in_table: bool,
}

impl SnapshotPairs<'_> {
    fn advance_table(&mut self) -> Result<(), StoreError> {
        self.in_table = false;
        while self.tables.advance()? && self.tables.key().starts_with(&self.prefix) {
            if self.tables.value().is_some() {
                self.in_table = true;
                break;
            }
        }
        Ok(())
    }

    /// Returns the next pair.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    #[expect(clippy::should_implement_trait, reason = "a pair can fail to be read, which ends the reading")]
    pub fn next(&mut self) -> Result<Option<StoredPair>, StoreError> {
        let small = self.small.first().filter(|(key, _)| key.starts_with(&self.prefix));
        let is_small_next = match small {
            None => false,
            Some((key, _)) => !self.in_table || key.as_slice() < self.tables.key(),
        };
        if is_small_next {
            let next = small.cloned();
            self.small = self.small.get(1..).unwrap_or_default();
            return Ok(next);
        }
        if !self.in_table {
            return Ok(None);
        }
        let pair = (self.tables.key().to_vec(), self.tables.value().unwrap_or_default().to_vec());
        self.advance_table()?;
        Ok(Some(pair))
    }
}

impl fmt::Debug for PartitionSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionSnapshot")
            .field("partition", &self.partition)
            .field("pairs", &self.small.len())
            .field("tables", &self.tables.len())
            .finish_non_exhaustive()
    }
}
