//! A run: pairs in the order of their keys, in a file that never changes.
//!
//! ```text
//! magic    8 bytes
//! blocks   see [`super::block`]; each packed with lz4 if that makes it smaller
//! index    per block: where it lies, its lengths, its CRC32C, its first key
//! filter   of the hashes of all keys
//! footer   what the above amounts to, with a CRC32C
//! ```
//!
//! Index and filter are in memory, 1.5 bytes a key and some 48 a block of 8 KiB. A lookup that passes the filter reads one block.

use std::path::PathBuf;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_128;

use super::block::{BLOCK_BYTES, BlockCursor};
use super::filter::Filter;
use crate::files::{CachedFile, Dir, OpenFiles};
use crate::pace::Pace;
use crate::store::{MAX_KEY_BYTES, MAX_VALUE_BYTES, PartitionId, StoreError};

/// What a file begins with.
pub(crate) const HEAD: [u8; 8] = *b"hcrunrc1";
const FOOTER_BYTES: usize = 62;
/// No block is larger before it is packed: a full one and the largest pair.
const MAX_BLOCK_BYTES: usize = BLOCK_BYTES + MAX_KEY_BYTES + MAX_VALUE_BYTES + 64;

/// What the filter knows of a key.
pub(crate) fn hash_of(key: &[u8]) -> u128 {
    xxh3_128(key)
}

/// Which run of which partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunName {
    pub(crate) partition: PartitionId,
    pub(crate) id: u64,
}

impl RunName {
    /// The name of its file.
    pub(crate) fn file_name(self) -> String {
        format!("{:05}-{:016x}.run", self.partition.number(), self.id)
    }
}

/// Where runs lie, and how many of their files may be open.
#[derive(Debug, Clone)]
pub(crate) struct RunDir {
    pub(crate) dir: Arc<Dir>,
    pub(crate) open_files: Arc<OpenFiles>,
}

impl RunDir {
    /// The path of a run.
    pub(crate) fn path_of(&self, name: RunName) -> PathBuf {
        self.dir.path().join(name.file_name())
    }

    fn file(&self, name: RunName) -> CachedFile {
        CachedFile::new(&self.dir, name.file_name(), &self.open_files)
    }
}

/// What a run says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) name: RunName,
    /// How many keys there are.
    pub(crate) count: u64,
    pub(crate) index_at: u64,
    pub(crate) index_len: u64,
    pub(crate) filter_len: u64,
    pub(crate) index_crc: u32,
    pub(crate) filter_crc: u32,
}

impl Footer {
    /// The footer as it is written.
    pub(crate) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        let mut at = 0;
        let mut put = |field: &[u8]| {
            bytes[at..at + field.len()].copy_from_slice(field);
            at += field.len();
        };
        put(&self.name.partition.prefix());
        for field in [self.name.id, self.count, self.index_at, self.index_len, self.filter_len] {
            put(&field.to_be_bytes());
        }
        for field in [self.index_crc, self.filter_crc] {
            put(&field.to_be_bytes());
        }
        let end = FOOTER_BYTES - 12;
        let crc = crc32c::crc32c(&bytes[..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_be_bytes());
        bytes[end + 4..].copy_from_slice(&HEAD);
        bytes
    }

    fn decode(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        let mut rest = bytes.as_slice();
        let footer = Self {
            name: RunName {
                partition: PartitionId(u16::from_be_bytes(take(&mut rest)?)),
                id: u64::from_be_bytes(take(&mut rest)?),
            },
            count: u64::from_be_bytes(take(&mut rest)?),
            index_at: u64::from_be_bytes(take(&mut rest)?),
            index_len: u64::from_be_bytes(take(&mut rest)?),
            filter_len: u64::from_be_bytes(take(&mut rest)?),
            index_crc: u32::from_be_bytes(take(&mut rest)?),
            filter_crc: u32::from_be_bytes(take(&mut rest)?),
        };
        (bytes == &footer.encode()).then_some(footer)
    }

    /// How long the file is.
    fn file_len(&self) -> Option<u64> {
        let parts = [self.index_at, self.index_len, self.filter_len, FOOTER_BYTES as u64];
        parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part))
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*field)
}

/// Where a block lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    stored: u32,
    raw: u32,
    crc: u32,
}

const PLACE_BYTES: usize = 20;

/// Which block may hold a key.
#[derive(Debug, Default)]
pub(crate) struct Index {
    places: Vec<Place>,
    /// The first key of each block, one behind the other.
    keys: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<u32>,
}

impl Index {
    /// A block begins with `key`.
    pub(crate) fn begin(&mut self, key: &[u8]) {
        self.keys.extend_from_slice(key);
        self.ends.push(u32::try_from(self.keys.len()).unwrap_or(u32::MAX));
    }

    /// And lies here.
    pub(crate) fn end(&mut self, at: u64, raw: u32, stored: &[u8]) {
        let crc = crc32c::crc32c(stored);
        self.places.push(Place { at, stored: u32::try_from(stored.len()).unwrap_or(u32::MAX), raw, crc });
    }

    /// Nothing more will come.
    pub(crate) fn shrink(&mut self) {
        self.places.shrink_to_fit();
        self.keys.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn key(&self, block: usize) -> &[u8] {
        let from = block.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        let to = self.ends.get(block).map_or(from, |end| *end as usize);
        self.keys.get(from..to).unwrap_or_default()
    }

    /// The last block that begins at or before `key`; the first one, if none does.
    fn block_of(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.places.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.key(middle) <= key { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// The index as it is written.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.places.len() * (PLACE_BYTES + 2) + self.keys.len());
        for (block, place) in self.places.iter().enumerate() {
            let key = self.key(block);
            bytes.extend_from_slice(&place.at.to_be_bytes());
            for field in [place.stored, place.raw, place.crc] {
                bytes.extend_from_slice(&field.to_be_bytes());
            }
            bytes.extend_from_slice(&(key.len() as u16).to_be_bytes());
            bytes.extend_from_slice(key);
        }
        bytes
    }

    fn decode(mut rest: &[u8]) -> Option<Self> {
        let mut index = Self::default();
        while !rest.is_empty() {
            let at = u64::from_be_bytes(take(&mut rest)?);
            let [stored, raw, crc] = [take(&mut rest)?, take(&mut rest)?, take(&mut rest)?].map(u32::from_be_bytes);
            let key_len = u16::from_be_bytes(take(&mut rest)?);
            let (key, after) = rest.split_at_checked(usize::from(key_len))?;
            rest = after;
            if raw as usize > MAX_BLOCK_BYTES || stored > raw {
                return None;
            }
            index.begin(key);
            index.places.push(Place { at, stored, raw, crc });
        }
        index.shrink();
        Some(index)
    }
}

/// An open run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) footer: Footer,
    file: CachedFile,
    index: Index,
    filter: Filter,
}

impl Run {
    /// A run that was just written.
    pub(crate) fn new(dir: &RunDir, footer: Footer, index: Index, filter: Filter) -> Self {
        Self { footer, file: dir.file(footer.name), index, filter }
    }

    /// Opens a run. Its footer, index and filter are checked, its blocks when they are read.
    pub(crate) fn open(dir: &RunDir, name: RunName) -> Result<Self, StoreError> {
        let damaged = |what: &str| StoreError::damaged(format!("{what} of run {} of partition {}", name.id, name.partition));
        let file = dir.file(name);
        let len = match file.len() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(damaged("the file")),
            len => len.map_err(StoreError::io("open a run"))?,
        };
        let footer_at = len.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| damaged("the length"))?;
        let mut bytes = [0; FOOTER_BYTES];
        file.read_exact_at(&mut bytes, footer_at).map_err(StoreError::io("read a run"))?;
        let footer = Footer::decode(&bytes).filter(|footer| footer.name == name && footer.file_len() == Some(len));
        let footer = footer.ok_or_else(|| damaged("the footer"))?;
        let part = |at, len: u64, crc, what| {
            let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
            file.read_exact_at(&mut bytes, at).map_err(StoreError::io("read a run"))?;
            if crc32c::crc32c(&bytes) == crc { Ok(bytes) } else { Err(damaged(what)) }
        };
        let index = part(footer.index_at, footer.index_len, footer.index_crc, "the index")?;
        let index = Index::decode(&index).ok_or_else(|| damaged("the index"))?;
        let bits = part(footer.index_at + footer.index_len, footer.filter_len, footer.filter_crc, "the filter")?;
        let filter = Filter::decode(&bits).ok_or_else(|| damaged("the filter"))?;
        Ok(Self { footer, file, index, filter })
    }

    /// Has the file removed when nobody reads it any more.
    pub(crate) fn remove_at_end(&self) {
        self.file.remove_at_end();
    }

    /// How long the file is.
    pub(crate) fn file_len(&self) -> u64 {
        self.footer.file_len().unwrap_or(u64::MAX)
    }

    /// What the run holds of a key, if anything: `Some(None)` says that the key holds nothing any more.
    pub(crate) fn get(&self, key: &[u8], hash: u128) -> Result<Option<Option<Vec<u8>>>, StoreError> {
        if self.index.places.is_empty() || !self.filter.may_hold(hash) {
            return Ok(None);
        }
        let mut cursor = self.block(self.index.block_of(key))?;
        while cursor.advance()? {
            match cursor.key().cmp(key) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Ok(Some(cursor.value().map(<[u8]>::to_vec))),
                std::cmp::Ordering::Greater => break,
            }
        }
        Ok(None)
    }

    fn block(&self, number: usize) -> Result<BlockCursor, StoreError> {
        let damaged = || {
            let RunName { partition, id } = self.footer.name;
            StoreError::damaged(format!("block {number} of run {id} of partition {partition}"))
        };
        let place = self.index.places.get(number).ok_or_else(damaged)?;
        let mut stored = vec![0; place.stored as usize];
        self.file.read_exact_at(&mut stored, place.at).map_err(StoreError::io("read a run"))?;
        if crc32c::crc32c(&stored) != place.crc {
            return Err(damaged());
        }
        if place.stored == place.raw {
            return Ok(BlockCursor::new(stored));
        }
        let raw = lz4_flex::block::decompress(&stored, place.raw as usize).map_err(|_| damaged())?;
        if raw.len() == place.raw as usize { Ok(BlockCursor::new(raw)) } else { Err(damaged()) }
    }

    /// The memory that the run takes.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> u64 {
        let index = self.index.places.len() * size_of::<Place>() + self.index.keys.len() + self.index.ends.len() * 4;
        self.filter.memory_bytes() + index as u64
    }

    /// Reads everything and checks it. `false`: `pace` broke it off.
    pub(crate) fn verify(&self, pace: &mut Pace<'_>) -> Result<bool, StoreError> {
        let RunName { partition, id } = self.footer.name;
        let damaged = |what| StoreError::damaged(format!("{what} run {id} of partition {partition}"));
        let mut head = [0; HEAD.len()];
        self.file.read_exact_at(&mut head, 0).map_err(StoreError::io("read a run"))?;
        if head != HEAD {
            return Err(damaged("the beginning of"));
        }
        let (mut count, mut last) = (0, Vec::new());
        for (number, place) in self.index.places.iter().enumerate() {
            if pace(u64::from(place.stored)).is_break() {
                return Ok(false);
            }
            let mut cursor = self.block(number)?;
            while cursor.advance()? {
                let key = cursor.key();
                if (count > 0 && last.as_slice() >= key) || PartitionId::of_key(key) != Some(partition) {
                    return Err(damaged("the order of keys in"));
                }
                last.clear();
                last.extend_from_slice(key);
                count += 1;
            }
        }
        if count == self.footer.count { Ok(true) } else { Err(damaged("the number of keys in")) }
    }
}

/// Goes through the pairs of a run.
#[derive(Debug)]
pub(crate) struct RunCursor<'r> {
    run: &'r Run,
    next: usize,
    block: BlockCursor,
}

impl<'r> RunCursor<'r> {
    /// Stands at the first pair whose key is `from` or greater; `None` if there is none.
    pub(crate) fn seek(run: &'r Run, from: &[u8]) -> Result<Option<Self>, StoreError> {
        let mut cursor = Self { run, next: run.index.block_of(from), block: BlockCursor::default() };
        while cursor.advance()? {
            if cursor.key() >= from {
                return Ok(Some(cursor));
            }
        }
        Ok(None)
    }

    /// Goes to the next pair; false if there is none.
    pub(crate) fn advance(&mut self) -> Result<bool, StoreError> {
        while !self.block.advance()? {
            if self.next >= self.run.index.places.len() {
                return Ok(false);
            }
            self.block = self.run.block(self.next)?;
            self.next += 1;
        }
        Ok(true)
    }

    /// The key of the present pair.
    pub(crate) fn key(&self) -> &[u8] {
        self.block.key()
    }

    /// Its value; `None`: the key holds nothing any more.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.block.value()
    }
}
