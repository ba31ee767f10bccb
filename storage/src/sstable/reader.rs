//! A table: pairs in key order, in an immutable file.
//!
//! ```text
//! magic    8 bytes
//! blocks   see `block`; each compressed with lz4 if the layout says so and that makes it smaller
//! index    of each block: its lengths, its CRC32C, a separating key
//! filter   of the hashes of all keys
//! footer   identity, lengths and checksums
//! ```
//!
//! Index and filter are in memory: 1.5 bytes a key and some 40 a block. A lookup that passes the
//! filter reads one block.

use std::cell::Cell;
use std::cmp::Ordering;
use std::io;
use std::sync::atomic::{self, AtomicUsize};

use super::block::{BlockCursor, Encoding, find};
use super::error::{Result, TableError};
use super::filter::Filter;
use super::footer::{FOOTER_BYTES, Footer, MAGIC};
use super::index::{BlockHandle, BlockIndex};
use super::key::compare_keys;
use super::space::TableSpace;
use crate::files::CachedFile;
use crate::pace::Pace;

/// The maximum number of bytes of one read of consecutive blocks.
const MAX_READ_AHEAD: u64 = 64 << 10;
/// Larger buffers are not kept for the next lookup.
const MAX_KEPT_BYTES: usize = 64 << 10;
/// The number of tables for which a thread keeps the last used block, since sorted lookups hit few
/// tables.
const KEPT_BLOCKS: usize = 8;

/// The buffers of a lookup: a block as stored, and its decompressed pairs.
#[derive(Debug, Default)]
struct BlockBuffers {
    stored: Vec<u8>,
    raw: Vec<u8>,
    /// The table and the number of the block in them.
    of: Option<(usize, usize)>,
}

impl BlockBuffers {
    const EMPTY: Self = Self { stored: Vec::new(), raw: Vec::new(), of: None };
}

thread_local! {
    /// The buffers of the thread's last lookups. Allocating and clearing buffers takes as long as a
    /// search, and a kept block need not be read again.
    static BUFFERS: [Cell<BlockBuffers>; KEPT_BLOCKS] = const { [const { Cell::new(BlockBuffers::EMPTY) }; KEPT_BLOCKS] };
}

/// Returns a number that identifies a table in the process.
fn next_serial() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, atomic::Ordering::Relaxed)
}

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    /// Unique among all tables of the process.
    serial: usize,
    footer: Footer,
    file: CachedFile,
    index: BlockIndex,
    filter: Filter,
    encoding: Encoding,
    key_prefix: Vec<u8>,
}

impl Table {
    /// Creates a table that was just written. Dropping it removes its file unless it is
    /// [kept](Self::keep).
    pub(super) fn new(space: &TableSpace, footer: Footer, index: BlockIndex, filter: Filter) -> Self {
        let file = space.file(footer.id);
        file.remove_at_end(true);
        let key_prefix = space.key_prefix.clone();
        Self { serial: next_serial(), footer, file, index, filter, encoding: space.layout.encoding, key_prefix }
    }

    /// Opens a table and checks its footer, index and filter. Blocks are checked when they are
    /// read.
    pub(super) fn open(space: &TableSpace, id: u64) -> Result<Self> {
        let file = space.file(id);
        let damaged = |what: &str| TableError::damaged(format!("{what} of {}", &file.name));
        let len = match file.len() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged("the file")),
            len => len.map_err(TableError::io("open a table"))?,
        };
        let footer_at = len.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| damaged("the length"))?;
        let mut bytes = [0; FOOTER_BYTES];
        file.read_exact_at(&mut bytes, footer_at).map_err(TableError::read("read a table"))?;
        let is_expected = |footer: &Footer| footer.owner == space.owner && footer.id == id && footer.file_len() == Some(len);
        let footer = Footer::decode(&bytes).filter(is_expected).ok_or_else(|| damaged("the footer"))?;
        let part = |at, len: u64, crc, what| {
            let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, at).map_err(TableError::read("read a table"))?;
            if crc32c::crc32c(&bytes) == crc { Ok(bytes) } else { Err(damaged(what)) }
        };
        let index = part(footer.index_at, footer.index_len, footer.index_crc, "the index")?;
        let index = BlockIndex::decode(&index).filter(|index| index.data_end() == footer.index_at);
        let index = index.ok_or_else(|| damaged("the index"))?;
        let filter = part(footer.index_at + footer.index_len, footer.filter_len, footer.filter_crc, "the filter")?;
        let filter = Filter::decode(&filter).ok_or_else(|| damaged("the filter"))?;
        let key_prefix = space.key_prefix.clone();
        Ok(Self { serial: next_serial(), footer, file, index, filter, encoding: space.layout.encoding, key_prefix })
    }

    /// The number of the table within its set.
    pub(crate) fn id(&self) -> u64 {
        self.footer.id
    }

    /// The name of its file.
    pub(super) fn name(&self) -> &str {
        &self.file.name
    }

    /// The number of keys, including deleted ones.
    pub(crate) fn count(&self) -> u64 {
        self.footer.count
    }

    /// The length of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.footer.file_len().unwrap_or(u64::MAX)
    }

    /// Fills `bytes` from the file at `at`.
    pub(super) fn read_bytes(&self, bytes: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, at)
    }

    /// The memory that index and filter take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes() + self.index.memory_bytes()
    }

    /// Keeps the file when the table is dropped, since a manifest names it or may name it.
    pub(crate) fn keep(&self) {
        self.file.remove_at_end(false);
    }

    /// Removes the file when its last reader drops the table.
    pub(crate) fn discard(&self) {
        self.file.remove_at_end(true);
    }

    /// Looks up a key, and returns the result of `read` for its value, which is `None` if the key
    /// is deleted. Returns `None` if the table does not have the key. `hash` is the layout's hash
    /// of the key.
    pub(crate) fn get<T>(&self, key: &[u8], hash: u128, read: impl Fn(Option<&[u8]>) -> T) -> Result<Option<T>> {
        if !self.filter.may_hold(hash) {
            return Ok(None);
        }
        let kept = self.serial % KEPT_BLOCKS;
        let mut buffers = BUFFERS.with(|buffers| buffers[kept].take());
        let block = self.read_block(self.index.block_of(key), &mut buffers)?;
        let found = find(self.encoding, block, key)?.map(read);
        if buffers.stored.capacity().max(buffers.raw.capacity()) <= MAX_KEPT_BYTES {
            BUFFERS.with(|kept_buffers| kept_buffers[kept].set(buffers));
        }
        Ok(found)
    }

    /// Reads the pairs of a block and checks them.
    fn read_block<'b>(&self, number: usize, buffers: &'b mut BlockBuffers) -> Result<&'b [u8]> {
        let handle = self.index.handles.get(number).ok_or_else(|| self.damaged_block(number))?;
        let BlockBuffers { stored, raw, of } = buffers;
        let this = Some((self.serial, number));
        let is_there = std::mem::replace(of, this) == this;
        let stored = sized(stored, handle.stored);
        if is_there {
            return Ok(if handle.stored == handle.raw { stored } else { sized(raw, handle.raw) });
        }
        self.file.read_exact_at(stored, handle.at).map_err(TableError::read("read a table"))?;
        self.unpack(number, handle, stored, raw)
    }

    /// Checks a block, and returns its pairs. They are in `raw` if the block is compressed.
    fn unpack<'b>(&self, number: usize, handle: &BlockHandle, stored: &'b [u8], raw: &'b mut Vec<u8>) -> Result<&'b [u8]> {
        if crc32c::crc32c(stored) != handle.crc {
            return Err(self.damaged_block(number));
        }
        if handle.stored == handle.raw {
            return Ok(stored);
        }
        let raw = sized(raw, handle.raw);
        match lz4_flex::block::decompress_into(stored, raw) {
            Ok(len) if len == raw.len() => Ok(raw),
            _ => Err(self.damaged_block(number)),
        }
    }

    fn damaged_block(&self, number: usize) -> TableError {
        TableError::damaged(format!("block {number} of {}", &self.file.name))
    }

    /// Reads and checks everything. Returns `false` if `pace` stops it.
    pub(super) fn verify(&self, pace: &mut Pace<'_>) -> Result<bool> {
        let damaged = |what| TableError::damaged(format!("{what} of {}", &self.file.name));
        let mut head = [0; MAGIC.len()];
        self.file.read_exact_at(&mut head, 0).map_err(TableError::read("read a table"))?;
        if head != MAGIC {
            return Err(damaged("the beginning"));
        }
        // Within a block the cursor checks the order.
        let (mut count, mut last) = (0, Vec::new());
        let (mut blocks, mut cursor) = (BlockStream::new(self, 0), BlockCursor::new(self.encoding));
        for handle in &self.index.handles {
            if pace(u64::from(handle.stored)).is_break() {
                return Ok(false);
            }
            blocks.next(&mut cursor)?;
            let has_first = cursor.advance()?;
            let in_order = count == 0 || last.as_slice() < cursor.key();
            if !has_first || !in_order || !cursor.key().starts_with(&self.key_prefix) {
                return Err(damaged("the order of the blocks"));
            }
            count += 1 + cursor.skip_to_last()?;
            last.clear();
            last.extend_from_slice(cursor.key());
        }
        if !last.starts_with(&self.key_prefix) && count > 0 {
            return Err(damaged("the last key"));
        }
        if count == self.footer.count { Ok(true) } else { Err(damaged("the number of keys")) }
    }
}

/// Returns the first `len` bytes of a buffer, which grows if necessary. Their contents are
/// arbitrary.
fn sized(buffer: &mut Vec<u8>, len: u32) -> &mut [u8] {
    let len = len as usize;
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// Reads the blocks of a table in order, several at once.
#[derive(Debug)]
struct BlockStream<'t> {
    table: &'t Table,
    next: usize,
    /// The size of a read. It doubles with each read, since most ranges need few blocks.
    read_ahead: u64,
    /// The part of the file that was read, from `from` on.
    ahead: Vec<u8>,
    from: u64,
    raw: Vec<u8>,
}

impl<'t> BlockStream<'t> {
    /// A stream that begins with block `next`.
    fn new(table: &'t Table, next: usize) -> Self {
        Self { table, next, read_ahead: 1, ahead: Vec::new(), from: 0, raw: Vec::new() }
    }

    /// Loads the next block; returns `false` at the end.
    fn next(&mut self, block: &mut BlockCursor) -> Result<bool> {
        let Some(handle) = self.table.index.handles.get(self.next) else { return Ok(false) };
        if handle.end() > self.from + self.ahead.len() as u64 {
            self.fetch(handle)?;
        }
        let stored = &self.ahead[(handle.at - self.from) as usize..][..handle.stored as usize];
        block.load(self.table.unpack(self.next, handle, stored, &mut self.raw)?)?;
        self.next += 1;
        Ok(true)
    }

    /// Reads the block of `handle`, which is the next one, and whole blocks after it.
    fn fetch(&mut self, handle: &BlockHandle) -> Result<()> {
        let ends = self.table.index.handles.iter().skip(self.next + 1).map(BlockHandle::end);
        let end = ends.take_while(|end| *end <= handle.at + self.read_ahead).last().unwrap_or(handle.end());
        self.from = handle.at;
        self.ahead.resize((end - handle.at) as usize, 0);
        self.read_ahead = (2 * (end - handle.at)).min(MAX_READ_AHEAD);
        self.table.file.read_exact_at(&mut self.ahead, handle.at).map_err(TableError::read("read a table"))
    }
}

/// Visits the pairs of a table in order.
#[derive(Debug)]
pub(super) struct TableCursor<'t> {
    blocks: BlockStream<'t>,
    block: BlockCursor,
}

impl<'t> TableCursor<'t> {
    /// A cursor at the first pair whose key is at least `from`; `None` if there is none.
    pub(super) fn seek(table: &'t Table, from: &[u8]) -> Result<Option<Self>> {
        let blocks = BlockStream::new(table, table.index.block_of(from));
        let mut cursor = Self { blocks, block: BlockCursor::new(table.encoding) };
        while cursor.advance()? {
            if cursor.key() >= from {
                return Ok(Some(cursor));
            }
        }
        Ok(None)
    }

    /// Advances to the next pair; returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool> {
        while !self.block.advance()? {
            if !self.blocks.next(&mut self.block)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares the current keys of two cursors.
    pub(super) fn compare(&self, other: &Self) -> Ordering {
        compare_keys(self.key(), other.key())
    }

    /// The key of the current pair.
    pub(super) fn key(&self) -> &[u8] {
        self.block.key()
    }

    /// The value of the current pair; `None` if the key is deleted.
    pub(super) fn value(&self) -> Option<&[u8]> {
        self.block.value()
    }
}
