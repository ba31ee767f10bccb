//! Writing a run: in one pass, in the order of the keys. The file has its name from the start; it counts when a
//! manifest names it, and what no manifest names is removed when the store is opened.

use std::io::{BufWriter, Write};

use super::block::{BLOCK_BYTES, BlockBuilder};
use super::filter::Filter;
use super::reader::{Footer, HEAD, Index, Run, RunDir, RunName, hash_of};
use crate::files::File;
use crate::store::StoreError;

const BUFFER_BYTES: usize = 256 << 10;

/// The filter, while it is not known how many keys there will be, or when it is known.
enum Keys {
    Hashes(Vec<u128>),
    Filter(Filter),
}

/// A run being written.
pub(crate) struct RunWriter {
    dir: RunDir,
    name: RunName,
    out: BufWriter<File>,
    at: u64,
    block: BlockBuilder,
    index: Index,
    keys: Keys,
    count: u64,
}

impl RunWriter {
    /// Begins the file of a run. `expected`: how many keys there will be at most, if that is known.
    pub(crate) fn create(dir: &RunDir, name: RunName, expected: Option<u64>) -> Result<Self, StoreError> {
        let file = File::create(&dir.path_of(name)).map_err(StoreError::io("create a run"))?;
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
        out.write_all(&HEAD).map_err(StoreError::io("write a run"))?;
        let keys = expected.map_or_else(|| Keys::Hashes(Vec::new()), |expected| Keys::Filter(Filter::for_entries(expected)));
        let (block, index) = (BlockBuilder::default(), Index::default());
        Ok(Self { dir: dir.clone(), name, out, at: HEAD.len() as u64, block, index, keys, count: 0 })
    }

    /// Whether `key` may come next.
    pub(crate) fn takes(&self, key: &[u8]) -> bool {
        self.count == 0 || self.block.last_key() < key
    }

    /// Appends a pair, whose key is greater than the one before. `None`: the key holds nothing any more.
    pub(crate) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        debug_assert!(self.takes(key), "a run is written in order");
        if self.block.bytes.is_empty() {
            self.index.begin(key);
        }
        self.block.push(key, value);
        match &mut self.keys {
            Keys::Hashes(hashes) => hashes.push(hash_of(key)),
            Keys::Filter(filter) => filter.insert(hash_of(key)),
        }
        self.count += 1;
        if self.block.bytes.len() >= BLOCK_BYTES { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> Result<(), StoreError> {
        if self.block.bytes.is_empty() {
            return Ok(());
        }
        let raw = u32::try_from(self.block.bytes.len()).map_err(|_| StoreError::TooLarge { len: self.block.bytes.len() })?;
        let packed = lz4_flex::block::compress(&self.block.bytes);
        // Equal lengths say that a block is as it was.
        let stored = if packed.len() < self.block.bytes.len() { &packed } else { &self.block.bytes };
        self.index.end(self.at, raw, stored);
        self.out.write_all(stored).map_err(StoreError::io("write a run"))?;
        self.at += stored.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Completes the file and makes its contents durable; its name is, when the directory is synced.
    pub(crate) fn finish(mut self) -> Result<Run, StoreError> {
        self.end_block()?;
        let filter = match self.keys {
            Keys::Filter(filter) => filter,
            Keys::Hashes(hashes) => {
                let mut filter = Filter::for_entries(hashes.len() as u64);
                hashes.into_iter().for_each(|hash| filter.insert(hash));
                filter
            }
        };
        self.index.shrink();
        let (index, bits) = (self.index.encode(), filter.encode());
        let footer = Footer {
            name: self.name,
            count: self.count,
            index_at: self.at,
            index_len: index.len() as u64,
            filter_len: bits.len() as u64,
            index_crc: crc32c::crc32c(&index),
            filter_crc: crc32c::crc32c(&bits),
        };
        let complete = || -> std::io::Result<()> {
            for part in [&index, &bits, footer.encode().as_slice()] {
                self.out.write_all(part)?;
            }
            let file = self.out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.sync_all()
        };
        complete().map_err(StoreError::io("write a run"))?;
        Ok(Run::new(&self.dir, footer, self.index, filter))
    }
}
