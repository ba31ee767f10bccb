//! The changes of a checkpoint before they become tables.

use std::sync::Arc;

use super::super::error::StoreError;
use super::partition::PartitionTables;
use crate::files::sync_dir;
use crate::sstable::{Proposal, Table, TableWriter};

/// The size of the sort buffer of a checkpoint.
const BUFFER_BYTES: usize = 1 << 20;

/// Collects changes of a partition and writes them as tables. Changes in key order take little
/// memory and become one table. In another order they become several tables, and the last one wins.
/// Dropping it leaves no file.
pub(in crate::store) struct TableChanges {
    partition: Arc<PartitionTables>,
    buffer: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    buffered_bytes: usize,
    /// Whether the keys in the buffer are distinct and in order.
    is_in_order: bool,
    writer: Option<TableWriter>,
    written: Vec<Table>,
}

/// Durable changes, which take effect with their manifest. Dropping it leaves no file.
pub(in crate::store) struct Prepared {
    pub(super) partition: Arc<PartitionTables>,
    pub(super) proposal: Proposal,
    /// The encoded manifest.
    pub(in crate::store) manifest: Vec<u8>,
}

impl Prepared {
    /// Keeps the files, since the manifest may take effect after a crash.
    pub(in crate::store) fn keep(self) {
        self.proposal.keep();
    }
}

impl TableChanges {
    pub(super) fn new(partition: Arc<PartitionTables>) -> Self {
        Self { partition, buffer: Vec::new(), buffered_bytes: 0, is_in_order: true, writer: None, written: Vec::new() }
    }

    /// The number of tables of the changes so far.
    pub(super) fn tables(&self) -> usize {
        self.written.len() + usize::from(self.writer.is_some() || !self.buffer.is_empty())
    }

    /// Sets the value of a key; `None` deletes it.
    pub(in crate::store) fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        self.buffered_bytes += key.len() + value.map_or(0, <[u8]>::len);
        self.is_in_order &= self.buffer.last().is_none_or(|(last, _)| last.as_slice() < key);
        self.buffer.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        if self.buffered_bytes >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<(), StoreError> {
        self.buffered_bytes = 0;
        let mut buffer = std::mem::take(&mut self.buffer);
        if !std::mem::replace(&mut self.is_in_order, true) {
            // The last change of a key counts.
            buffer.reverse();
            buffer.sort_by(|(one, _), (other, _)| one.cmp(other));
            buffer.dedup_by(|(earlier, _), (later, _)| earlier == later);
        }
        let Some((first, _)) = buffer.first() else { return Ok(()) };
        let mut writer = match self.writer.take() {
            Some(writer) if writer.takes(first) => writer,
            before => {
                if let Some(before) = before {
                    self.written.push(before.finish()?);
                }
                self.partition.set.create(None)?
            }
        };
        for (key, value) in &buffer {
            writer.push(key, value.as_deref())?;
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// Makes the changes durable. Returns `None` if the manifest need not change.
    pub(in crate::store) fn prepare(mut self) -> Result<Option<Prepared>, StoreError> {
        self.write()?;
        if let Some(writer) = self.writer.take() {
            self.written.push(writer.finish()?);
        }
        let Self { partition, written, .. } = self;
        if written.is_empty() && !partition.set.has_replaced() {
            return Ok(None);
        }
        sync_dir(&partition.set.space.dir.path).map_err(StoreError::io("sync a directory"))?;
        let proposal = partition.set.propose(written);
        let manifest = proposal.manifest.encode()?;
        Ok(Some(Prepared { partition, proposal, manifest }))
    }
}
