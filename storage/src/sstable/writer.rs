//! Writes a table in one pass, in key order, with one sync at the end.

use std::io::{BufWriter, Write};
use std::sync::Arc;

use super::block::BlockBuilder;
use super::error::{Result, TableError};
use super::filter::Filter;
use super::footer::{Footer, MAGIC};
use super::index::BlockIndex;
use super::reader::Table;
use super::space::TableSpace;
use crate::background;
use crate::files::{File, remove_file};

const BUFFER_BYTES: usize = 256 << 10;
/// The number of pairs between two calls of [`background::give_way`].
const PAIRS_PER_TURN: u64 = 64;
/// The number of bytes between two syncs of background work.
const SYNCED_TOGETHER: u64 = 1 << 20;

/// The filter, or the hashes for it while the number of keys is unknown.
enum Keys {
    Hashes(Vec<u128>),
    Filter(Filter),
}

/// Writes one table. If it is dropped unfinished, it removes the file.
pub(crate) struct TableWriter {
    space: Arc<TableSpace>,
    id: u64,
    /// `None` once the table is finished.
    out: Option<BufWriter<File>>,
    block: BlockBuilder,
    index: BlockIndex,
    keys: Keys,
    count: u64,
    /// The end of the blocks at the last sync.
    synced: u64,
}

impl TableWriter {
    /// Creates the file of table `id`. `expected` is the maximum number of keys, if known.
    pub(super) fn create(space: &Arc<TableSpace>, id: u64, expected: Option<u64>) -> Result<Self> {
        let file = File::create(&space.path_of(id)).map_err(TableError::io("create a table"))?;
        let keys = expected.map_or_else(|| Keys::Hashes(Vec::new()), |expected| Keys::Filter(Filter::for_keys(expected)));
        let (block, index) = (BlockBuilder::new(space.layout.encoding), BlockIndex::default());
        let out = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        let mut writer = Self { space: Arc::clone(space), id, out, block, index, keys, count: 0, synced: 0 };
        writer.write(&MAGIC)?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.as_mut().map_or(Ok(()), |out| out.write_all(bytes)).map_err(TableError::io("write a table"))
    }

    /// Whether `key` is greater than all keys so far.
    pub(crate) fn takes(&self, key: &[u8]) -> bool {
        self.count == 0 || self.block.last_key() < key
    }

    /// Appends a pair. Its key must be greater than the one before. `None` marks the key as
    /// deleted.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        debug_assert!(self.takes(key), "tables are written in key order");
        if self.count.is_multiple_of(PAIRS_PER_TURN) {
            background::give_way();
        }
        if self.block.len() == 0 {
            self.index.begin(self.block.last_key(), key);
        }
        self.block.push(key, value)?;
        let hash = (self.space.layout.hash)(key);
        match &mut self.keys {
            Keys::Hashes(hashes) => hashes.push(hash),
            Keys::Filter(filter) => filter.insert(hash),
        }
        self.count += 1;
        if self.block.len() >= self.space.layout.block_bytes { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<()> {
        if self.block.len() == 0 {
            return Ok(());
        }
        let bytes = self.block.encode()?;
        let too_large = |_| TableError::Io { action: "write a table", source: std::io::ErrorKind::InvalidInput.into() };
        let raw = u32::try_from(bytes.len()).map_err(too_large)?;
        let packed = self.space.layout.compressed.then(|| lz4_flex::block::compress(&bytes));
        // Equal lengths mean that the block is not compressed.
        let stored = packed.as_deref().filter(|packed| packed.len() < bytes.len()).unwrap_or(&bytes);
        self.index.end(raw, stored);
        self.out.as_mut().map_or(Ok(()), |out| out.write_all(stored)).map_err(TableError::io("write a table"))?;
        drop(bytes);
        self.block.clear();
        self.sync_some()
    }

    /// Syncs the written bytes if they are many, and the work gives way to others.
    fn sync_some(&mut self) -> Result<()> {
        let end = self.index.data_end();
        if end - self.synced >= SYNCED_TOGETHER && background::gives_way() {
            self.synced = end;
            self.out.as_ref().map_or(Ok(()), |out| out.get_ref().sync_data()).map_err(TableError::io("write a table"))?;
        }
        Ok(())
    }

    /// Completes the file and syncs its contents. Its name becomes durable when the directory is
    /// synced.
    pub(crate) fn finish(mut self) -> Result<Table> {
        self.end_block()?;
        let filter = match std::mem::replace(&mut self.keys, Keys::Hashes(Vec::new())) {
            Keys::Filter(filter) => filter,
            Keys::Hashes(hashes) => {
                let mut filter = Filter::for_keys(hashes.len() as u64);
                hashes.into_iter().for_each(|hash| filter.insert(hash));
                filter
            }
        };
        let mut index = std::mem::take(&mut self.index);
        index.shrink();
        let (index_bytes, filter_bytes) = (index.encode(), filter.encode());
        let footer = Footer {
            owner: self.space.owner,
            id: self.id,
            count: self.count,
            index_at: index.data_end(),
            index_len: index_bytes.len() as u64,
            filter_len: filter_bytes.len() as u64,
            index_crc: crc32c::crc32c(&index_bytes),
            filter_crc: crc32c::crc32c(&filter_bytes),
        };
        for part in [&index_bytes, &filter_bytes, footer.encode().as_slice()] {
            self.write(part)?;
        }
        if let Some(out) = &mut self.out {
            out.flush().and_then(|()| out.get_ref().sync_all()).map_err(TableError::io("write a table"))?;
        }
        self.out = None;
        Ok(Table::new(&self.space, footer, index, filter))
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // The buffer is not written, since the disk may be full.
            drop(out.into_parts());
            let _ = remove_file(&self.space.path_of(self.id));
        }
    }
}
