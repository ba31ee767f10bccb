//! The block index of a table: where each block lies, and a key that separates it from the block
//! before.

use super::footer::{MAGIC, take};
use super::key::head_of;

/// The maximum size of an uncompressed block: it ends soon after the layout's block size, or has
/// one value of up to 64 MiB.
pub(super) const MAX_BLOCK_BYTES: u32 = 80 << 20;
/// Fields of fixed size of an entry on disk.
const ENTRY_BYTES: usize = 14;

/// The place, the lengths and the checksum of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockHandle {
    pub(super) at: u64,
    /// The length in the file.
    pub(super) stored: u32,
    /// The length of the pairs; larger than `stored` if the block is compressed.
    pub(super) raw: u32,
    /// The checksum of the stored bytes.
    pub(super) crc: u32,
}

impl BlockHandle {
    /// The end of the block in the file.
    pub(super) fn end(&self) -> u64 {
        self.at + u64::from(self.stored)
    }
}

/// Finds the block that may hold a key.
#[derive(Debug, Default)]
pub(super) struct BlockIndex {
    /// The blocks, in order.
    pub(super) handles: Vec<BlockHandle>,
    /// The first bytes of the separators, so that most comparisons compare numbers.
    heads: Vec<u64>,
    /// For each block a key that is greater than all keys of the block before and not greater than
    /// its first key, concatenated.
    separators: Vec<u8>,
    /// The end of each separator.
    ends: Vec<u32>,
}

impl BlockIndex {
    /// Begins a block whose first key is `first`; `last` is the greatest key so far.
    pub(super) fn begin(&mut self, last: &[u8], first: &[u8]) {
        let common = last.iter().zip(first).take_while(|(one, other)| one == other).count();
        self.push_separator(first.get(..=common).unwrap_or(first));
    }

    /// Ends the block, which was written as `stored`.
    pub(super) fn end(&mut self, raw: u32, stored: &[u8]) {
        let crc = crc32c::crc32c(stored);
        self.push_handle(u32::try_from(stored.len()).unwrap_or(u32::MAX), raw, crc);
    }

    fn push_separator(&mut self, separator: &[u8]) {
        self.heads.push(head_of(separator));
        self.separators.extend_from_slice(separator);
        self.ends.push(u32::try_from(self.separators.len()).unwrap_or(u32::MAX));
    }

    fn push_handle(&mut self, stored: u32, raw: u32, crc: u32) {
        self.handles.push(BlockHandle { at: self.data_end(), stored, raw, crc });
    }

    /// The end of the last block.
    pub(super) fn data_end(&self) -> u64 {
        self.handles.last().map_or(MAGIC.len() as u64, BlockHandle::end)
    }

    /// Frees spare capacity.
    pub(super) fn shrink(&mut self) {
        self.handles.shrink_to_fit();
        self.heads.shrink_to_fit();
        self.separators.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    fn separator(&self, block: usize) -> &[u8] {
        let from = block.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| *end as usize);
        let to = self.ends.get(block).map_or(from, |end| *end as usize);
        self.separators.get(from..to).unwrap_or_default()
    }

    /// The only block that can hold `key`.
    pub(super) fn block_of(&self, key: &[u8]) -> usize {
        let head = head_of(key);
        let mut high = self.heads.partition_point(|other| *other <= head);
        let mut low = high;
        if high.checked_sub(1).and_then(|last| self.heads.get(last)) == Some(&head) {
            low = self.heads.partition_point(|other| *other < head);
        }
        while low < high {
            let middle = low.midpoint(high);
            if self.separator(middle) <= key { low = middle + 1 } else { high = middle }
        }
        low.saturating_sub(1)
    }

    /// Encodes the index. Offsets follow from the lengths.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.handles.len() * ENTRY_BYTES + self.separators.len());
        for (block, handle) in self.handles.iter().enumerate() {
            let separator = self.separator(block);
            for field in [handle.stored, handle.raw, handle.crc] {
                bytes.extend_from_slice(&field.to_be_bytes());
            }
            bytes.extend_from_slice(&(separator.len() as u16).to_be_bytes());
            bytes.extend_from_slice(separator);
        }
        bytes
    }

    /// Decodes an index; `None` if the bytes are not one.
    pub(super) fn decode(mut rest: &[u8]) -> Option<Self> {
        let mut index = Self::default();
        while !rest.is_empty() {
            let [stored, raw, crc] = [take(&mut rest)?, take(&mut rest)?, take(&mut rest)?].map(u32::from_be_bytes);
            let separator_len = u16::from_be_bytes(take(&mut rest)?);
            let (separator, after) = rest.split_at_checked(usize::from(separator_len))?;
            rest = after;
            if raw > MAX_BLOCK_BYTES || stored > raw {
                return None;
            }
            index.push_separator(separator);
            index.push_handle(stored, raw, crc);
        }
        index.shrink();
        Some(index)
    }

    /// The memory that the index takes.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.handles.len() * (size_of::<BlockHandle>() + 8) + self.separators.len() + self.ends.len() * 4) as u64
    }
}
