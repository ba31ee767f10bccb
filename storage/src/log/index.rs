//! The side index of a sealed segment: its partitions, and the range of positions of each.
//!
//! It is optional. If it is missing, damaged or from another segment, the whole segment is read and
//! the index written again.
//!
//! ```text
//! magic [8]  salt u64  first u64  last u64  blocks u64  chain u128  partitions u32  zero u32
//! per partition: partition u16, zero [6], first u64, last u64      crc32c u32
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::Position;
use super::block::Block;
use super::segment::{Chain, SegmentHeader, le_u16, le_u32, le_u64};
use crate::files;

const MAGIC: [u8; 8] = *b"hcntidx\x01";
const HEAD: usize = 64;
const ENTRY: usize = 24;

/// The partitions of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentIndex {
    salt: u64,
    first: Position,
    /// Position of the segment's last event; `first - 1` if it has none.
    pub(super) last: Position,
    /// Number of blocks.
    pub(super) blocks: u64,
    chain: u128,
    /// For each partition, the first position of its first entry and the last position of its last.
    partitions: BTreeMap<u16, (Position, Position)>,
}

impl SegmentIndex {
    /// Creates the index of a segment without blocks.
    pub(super) fn new(header: &SegmentHeader) -> Self {
        SegmentIndex {
            salt: header.salt,
            first: header.first,
            last: header.first.saturating_sub(1),
            blocks: 0,
            chain: Chain::begin(header).0,
            partitions: BTreeMap::new(),
        }
    }

    /// Adds the next block of the segment; `chain` is the chain after it.
    pub(super) fn add(&mut self, block: &Block<'_>, chain: Chain) {
        for entry in block.entries() {
            self.add_entry(entry.partition, entry.first, entry.last());
        }
        self.finish_block(block.last(), chain);
    }

    /// Adds one entry of the next block.
    pub(super) fn add_entry(&mut self, partition: u16, first: Position, last: Position) {
        self.partitions.entry(partition).and_modify(|range| range.1 = last).or_insert((first, last));
    }

    /// Ends a block after its entries were added.
    pub(super) fn finish_block(&mut self, last: Position, chain: Chain) {
        self.last = last;
        self.blocks += 1;
        self.chain = chain.0;
    }

    /// Whether any partition has an event that `wanted` selects.
    pub(super) fn holds_wanted(&self, wanted: impl Fn(u16) -> Option<Position>) -> bool {
        self.partitions.iter().any(|(partition, range)| wanted(*partition).is_some_and(|after| range.1 > after))
    }

    /// Reads the index of the segment with this header, if an intact one exists that ends with
    /// `chain`; with `None`, at any end.
    pub(super) fn load(dir: &Path, header: &SegmentHeader, chain: Option<u128>) -> Option<Self> {
        let bytes = files::read(&index_path(dir, header.first)).ok()?;
        let index = Self::decode(&bytes)?;
        let fits = index.salt == header.salt && index.first == header.first && chain.is_none_or(|chain| chain == index.chain);
        fits.then_some(index)
    }

    /// Writes the index. A failure only costs the next reader some time.
    pub(super) fn save(&self, dir: &Path) {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let path = index_path(dir, self.first);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let tmp = dir.join(format!("{:020}.idx.{serial}.tmp", self.first));
        let written = files::write(&tmp, &self.encode()).and_then(|()| files::rename(&tmp, &path));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), %error, "could not write a segment's index; it will be rebuilt");
            // The file may not exist.
            let _ = files::remove_file(&tmp);
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.partitions.len() * ENTRY + 4);
        out.extend_from_slice(&MAGIC);
        for word in [self.salt, self.first, self.last, self.blocks] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&self.chain.to_le_bytes());
        out.extend_from_slice(&(self.partitions.len() as u64).to_le_bytes());
        for (partition, (first, last)) in &self.partitions {
            out.extend_from_slice(&u64::from(*partition).to_le_bytes());
            out.extend_from_slice(&first.to_le_bytes());
            out.extend_from_slice(&last.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.len().checked_sub(4)?;
        let (body, checksum) = bytes.split_at(end);
        if body.len() < HEAD || body[0..8] != MAGIC || crc32c::crc32c(body) != le_u32(checksum, 0) {
            return None;
        }
        let entries = &body[HEAD..];
        if entries.len() as u64 != le_u64(body, 56).checked_mul(ENTRY as u64)? {
            return None;
        }
        let mut chain = [0u8; 16];
        chain.copy_from_slice(&body[40..56]);
        Some(SegmentIndex {
            salt: le_u64(body, 8),
            first: le_u64(body, 16),
            last: le_u64(body, 24),
            blocks: le_u64(body, 32),
            chain: u128::from_le_bytes(chain),
            partitions: entries
                .chunks_exact(ENTRY)
                .map(|entry| (le_u16(entry, 0), (le_u64(entry, 8), le_u64(entry, 16))))
                .collect(),
        })
    }
}

/// The index file of the segment that begins at `first`.
pub(super) fn index_path(dir: &Path, first: Position) -> PathBuf {
    dir.join(format!("{first:020}.idx"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded_and_any_flipped_bit_is_noticed() {
        let mut index = SegmentIndex::new(&SegmentHeader::new(7, 1, 99));
        index.add_entry(3, 7, 9);
        index.add_entry(60_000, 10, 10);
        index.add_entry(3, 11, 12);
        index.finish_block(12, Chain(5));
        let bytes = index.encode();
        assert_eq!(SegmentIndex::decode(&bytes), Some(index.clone()));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentIndex::decode(&flipped), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(SegmentIndex::decode(&bytes[..length]), None, "length {length}");
        }
        assert!(index.holds_wanted(|partition| (partition == 3).then_some(11)));
        assert!(!index.holds_wanted(|partition| (partition == 3).then_some(12)));
        assert!(!index.holds_wanted(|partition| (partition == 4).then_some(0)));
    }
}
