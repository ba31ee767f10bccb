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
//! Index and filter are in memory: 1.5 bytes a key and some 40 a block. A lookup that passes the filter reads one block.

use std::io;

use super::block::{BlockCursor, Encoding, find};
use super::error::TableError;
use super::filter::Filter;
use super::footer::{FOOTER_BYTES, Footer, MAGIC};
use super::index::BlockIndex;
use super::space::TableSpace;
use crate::files::CachedFile;
use crate::pace::Pace;

/// An open table.
#[derive(Debug)]
pub(crate) struct Table {
    footer: Footer,
    file: CachedFile,
    index: BlockIndex,
    filter: Filter,
    encoding: Encoding,
    key_prefix: Vec<u8>,
}

impl Table {
    /// A table that was just written. Its file is removed with it unless it is [kept](Self::keep).
    pub(super) fn new(space: &TableSpace, footer: Footer, index: BlockIndex, filter: Filter) -> Self {
        let file = space.file(footer.id);
        file.remove_at_end(true);
        Self { footer, file, index, filter, encoding: space.layout.encoding, key_prefix: space.key_prefix.clone() }
    }

    /// Opens a table and checks its footer, index and filter. Blocks are checked when they are read.
    pub(super) fn open(space: &TableSpace, id: u64) -> Result<Self, TableError> {
        let file = space.file(id);
        let damaged = |what: &str| TableError::damaged(format!("{what} of {}", file.name()));
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
        Ok(Self { footer, file, index, filter, encoding: space.layout.encoding, key_prefix: space.key_prefix.clone() })
    }

    /// The number of the table within its set.
    pub(crate) fn id(&self) -> u64 {
        self.footer.id
    }

    /// The number of keys, deleted ones included.
    pub(crate) fn count(&self) -> u64 {
        self.footer.count
    }

    /// The length of the file.
    pub(crate) fn file_len(&self) -> u64 {
        self.footer.file_len().unwrap_or(u64::MAX)
    }

    /// The memory that index and filter take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.filter.memory_bytes() + self.index.memory_bytes()
    }

    /// Leaves the file in place when the table is dropped: a manifest names it, or may name it.
    pub(crate) fn keep(&self) {
        self.file.remove_at_end(false);
    }

    /// Removes the file when the table is dropped by its last reader.
    pub(crate) fn discard(&self) {
        self.file.remove_at_end(true);
    }

    /// Looks a key up: `Some(None)` if it is deleted, `None` if the table does not have it. `hash` is the layout's hash of the key.
    pub(crate) fn get(&self, key: &[u8], hash: u128) -> Result<Option<Option<Vec<u8>>>, TableError> {
        if !self.filter.may_hold(hash) {
            return Ok(None);
        }
        let block = self.read_block(self.index.block_of(key))?;
        Ok(find(self.encoding, &block, key)?.map(|value| value.map(<[u8]>::to_vec)))
    }

    /// Reads the pairs of a block and checks them.
    fn read_block(&self, number: usize) -> Result<Vec<u8>, TableError> {
        let damaged = || TableError::damaged(format!("block {number} of {}", self.file.name()));
        let handle = self.index.handles().get(number).ok_or_else(damaged)?;
        let mut stored = vec![0; handle.stored as usize];
        self.file.read_exact_at(&mut stored, handle.at).map_err(TableError::read("read a table"))?;
        if crc32c::crc32c(&stored) != handle.crc {
            return Err(damaged());
        }
        if handle.stored == handle.raw {
            return Ok(stored);
        }
        let raw = lz4_flex::block::decompress(&stored, handle.raw as usize).map_err(|_| damaged())?;
        if raw.len() == handle.raw as usize { Ok(raw) } else { Err(damaged()) }
    }

    /// Reads and checks everything. Returns `false` if `pace` breaks it off.
    pub(super) fn verify(&self, pace: &mut Pace<'_>) -> Result<bool, TableError> {
        let damaged = |what| TableError::damaged(format!("{what} of {}", self.file.name()));
        let mut head = [0; MAGIC.len()];
        self.file.read_exact_at(&mut head, 0).map_err(TableError::read("read a table"))?;
        if head != MAGIC {
            return Err(damaged("the beginning"));
        }
        // Within a block the cursor checks the order.
        let (mut count, mut last) = (0, Vec::new());
        for (number, handle) in self.index.handles().iter().enumerate() {
            if pace(u64::from(handle.stored)).is_break() {
                return Ok(false);
            }
            let mut cursor = BlockCursor::new(self.encoding, self.read_block(number)?)?;
            let has_first = cursor.advance()?;
            let in_order = count == 0 || last.as_slice() < cursor.key();
            if !has_first || !in_order || !cursor.key().starts_with(&self.key_prefix) {
                return Err(damaged("the order of the blocks"));
            }
            count += 1;
            while cursor.advance()? {
                count += 1;
            }
            last.clear();
            last.extend_from_slice(cursor.key());
        }
        if !last.starts_with(&self.key_prefix) && count > 0 {
            return Err(damaged("the last key"));
        }
        if count == self.footer.count { Ok(true) } else { Err(damaged("the number of keys")) }
    }
}

/// Visits the pairs of a table in order.
#[derive(Debug)]
pub(super) struct TableCursor<'t> {
    table: &'t Table,
    next: usize,
    block: BlockCursor,
}

impl<'t> TableCursor<'t> {
    /// A cursor at the first pair whose key is at least `from`; `None` if there is none.
    pub(super) fn seek(table: &'t Table, from: &[u8]) -> Result<Option<Self>, TableError> {
        let mut cursor = Self { table, next: table.index.block_of(from), block: BlockCursor::empty() };
        while cursor.advance()? {
            if cursor.key() >= from {
                return Ok(Some(cursor));
            }
        }
        Ok(None)
    }

    /// Advances to the next pair; returns `false` at the end.
    pub(super) fn advance(&mut self) -> Result<bool, TableError> {
        while !self.block.advance()? {
            if self.next >= self.table.index.handles().len() {
                return Ok(false);
            }
            self.block = BlockCursor::new(self.table.encoding, self.table.read_block(self.next)?)?;
            self.next += 1;
        }
        Ok(true)
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
