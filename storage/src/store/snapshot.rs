//! A committed state of a partition, readable while later checkpoints are written.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use super::contract::{OpenCheckpoint, Store};
use super::error::StoreError;
use super::tables::open_table_copies;
use crate::codec::{self, CodecError};
use crate::keyspace::PartitionId;
use crate::sstable::{MergeCursor, TableFile, TableList};

/// The version of encoded small pairs.
const SMALL_VERSION: u8 = 1;

/// A key and its value.
pub type StoredPair = (Vec<u8>, Vec<u8>);

/// A committed state of a partition. Later checkpoints don't change it. It keeps a copy of the
/// small pairs in memory, and its table files stay readable.
pub struct PartitionSnapshot {
    partition: PartitionId,
    /// The pairs from sled, in order.
    small: Vec<StoredPair>,
    tables: TableList,
}

impl PartitionSnapshot {
    pub(super) fn new(partition: PartitionId, small: Vec<StoredPair>, tables: TableList) -> Self {
        Self { partition, small, tables }
    }

    /// The files of its tables. A copy must have them in this order.
    pub fn files(&self) -> Vec<TableFile> {
        TableFile::of(&self.tables)
    }

    /// Encodes the pairs outside of tables.
    ///
    /// # Errors
    /// [`CodecError::TooLarge`].
    pub fn encode_small(&self) -> Result<Vec<u8>, CodecError> {
        codec::encode(SMALL_VERSION, &self.small)
    }

    /// Opens a copy: the encoded small pairs, and copies of the files in `dir`, with the names of
    /// [`TableFile::copy_name`], by their numbers in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] and [`StoreError::Io`].
    pub fn open_copy(partition: PartitionId, small: &[u8], dir: &Path, ids: &[u64]) -> Result<Self, StoreError> {
        let small = codec::decode(SMALL_VERSION, small);
        let small = small.map_err(|error| StoreError::damaged(format!("the small pairs of a copy: {error}")))?;
        Ok(Self::new(partition, small, open_table_copies(partition, dir, ids)?))
    }

    /// Replaces the state of the partition in a store by this one, in one checkpoint. All old data
    /// of the partition is deleted. The partition must not be in use.
    ///
    /// # Errors
    /// The errors of a checkpoint ([`Store::begin`], [`OpenCheckpoint::commit`]), and of reading
    /// either state. The store then has the old state or this one.
    pub fn replace_in(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut replacing = Replacing { checkpoint: store.begin(self.partition)?, next: None, rest: self.pairs(&[])? };
        replacing.next = replacing.rest.next()?;
        let mut outcome = Ok(());
        store.scan(&self.partition.prefix(), &mut |former, _| {
            outcome = replacing.pass(Some(former));
            if outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        outcome?;
        replacing.pass(None)?;
        replacing.checkpoint.commit()
    }

    /// Whether nothing was ever committed.
    pub fn is_empty(&self) -> bool {
        self.small.is_empty() && self.tables.is_empty()
    }

    /// The number of bytes of the pairs in memory.
    pub fn memory_bytes(&self) -> usize {
        self.small.iter().map(|(key, value)| key.len() + value.len() + size_of::<StoredPair>()).sum()
    }

    /// The bytes of the files.
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

    /// Like [`PartitionSnapshot::pairs`], from the first key that is at least the two bytes of the
    /// partition and `from`.
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

/// A checkpoint that replaces one state by another.
struct Replacing<'s> {
    checkpoint: Box<dyn OpenCheckpoint>,
    /// The next pair of the new state.
    next: Option<StoredPair>,
    rest: SnapshotPairs<'s>,
}

impl Replacing<'_> {
    /// Writes the new pairs up to a key of the old state, and deletes that key if the new state
    /// lacks it. `None`: the old state has no more keys.
    fn pass(&mut self, former: Option<&[u8]>) -> Result<(), StoreError> {
        let mut is_kept = false;
        while let Some((key, value)) = self.next.take_if(|(key, _)| former.is_none_or(|former| key.as_slice() <= former)) {
            is_kept |= former == Some(key.as_slice());
            self.checkpoint.put(&key, &value)?;
            self.next = self.rest.next()?;
        }
        match former {
            Some(former) if !is_kept => self.checkpoint.delete(former),
            _ => Ok(()),
        }
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
