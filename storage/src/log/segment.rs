//! Segment files: their names, their header, and the chain of checksums that links them.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use super::Position;
use super::durable::read_full_at;
use super::error::{Damage, LogError};
use crate::files::File;

/// The header has its own page, so that no write of a block touches its sectors.
pub(super) const HEADER_BYTES: u64 = 4096;
const HEADER_LEN: usize = 4096;
const MAGIC: [u8; 8] = *b"hcnt.seg";
/// The format version that this program writes, and the only one it reads.
pub(super) const VERSION: u32 = 1;
/// Magic, version and checksum keep their places in every future version, so that an unknown
/// version can be distinguished from damage.
const CHECKSUM_AT: usize = HEADER_LEN - 4;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Position of the segment's first event; also the name of its file.
    pub(super) first: Position,
    /// Random, and part of each block's checksum, so that bytes from a client can't pass for a
    /// block.
    pub(super) salt: u64,
    /// First position of the segment before; 0 in the first segment of a log.
    pub(super) previous_first: Position,
    /// The [`Chain`] at the end of the segment before; 0 in the first segment of a log.
    pub(super) previous_chain: u128,
}

impl SegmentHeader {
    /// Creates a header with a new salt.
    pub(super) fn new(first: Position, previous_first: Position, previous_chain: u128) -> Self {
        // SipHash under keys that the standard library takes from the operating system.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(first);
        hasher.write_u32(std::process::id());
        SegmentHeader { first, salt: hasher.finish(), previous_first, previous_chain }
    }

    /// Encodes the page of the header, for byte 0 of the file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut page = vec![0u8; HEADER_LEN];
        page[0..8].copy_from_slice(&MAGIC);
        page[8..12].copy_from_slice(&VERSION.to_le_bytes());
        page[16..24].copy_from_slice(&self.first.to_le_bytes());
        page[24..32].copy_from_slice(&self.salt.to_le_bytes());
        page[32..40].copy_from_slice(&self.previous_first.to_le_bytes());
        page[48..64].copy_from_slice(&self.previous_chain.to_le_bytes());
        let checksum = crc32c::crc32c(&page[..CHECKSUM_AT]);
        page[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        page
    }

    /// Parses and checks the header of the segment named `first`.
    pub(super) fn read(file: &File, path: &Path, first: Position) -> Result<Self, LogError> {
        let damaged = |reason| Err(LogError::Damaged { segment: first, offset: 0, reason });
        let mut page = vec![0u8; HEADER_LEN];
        let n = read_full_at(file, &mut page, 0).map_err(|error| LogError::io("read", path, error))?;
        if n < HEADER_LEN {
            return damaged(Damage::ShortHeader);
        }
        if page[0..8] != MAGIC || crc32c::crc32c(&page[..CHECKSUM_AT]) != le_u32(&page, CHECKSUM_AT) {
            return damaged(Damage::Header);
        }
        let found = le_u32(&page, 8);
        if found != VERSION {
            return Err(LogError::UnsupportedVersion { segment: first, found, supported: VERSION });
        }
        let mut previous_chain = [0u8; 16];
        previous_chain.copy_from_slice(&page[48..64]);
        let header = SegmentHeader {
            first: le_u64(&page, 16),
            salt: le_u64(&page, 24),
            previous_first: le_u64(&page, 32),
            previous_chain: u128::from_le_bytes(previous_chain),
        };
        if header.first == first { Ok(header) } else { damaged(Damage::WrongHeader) }
    }
}

/// A running hash over a segment's header and the checksums of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain(pub(super) u128);

impl Chain {
    /// The chain of a segment without blocks.
    pub(super) fn begin(header: &SegmentHeader) -> Self {
        Chain(xxh3_128(&header.encode()))
    }

    /// The chain after one more block, given that block's checksum and last position.
    pub(super) fn extend(self, checksum: u32, last: Position) -> Self {
        let mut bytes = [0u8; 28];
        bytes[0..16].copy_from_slice(&self.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&last.to_le_bytes());
        bytes[24..28].copy_from_slice(&checksum.to_le_bytes());
        Chain(xxh3_128(&bytes))
    }
}

/// The file of the segment that begins at `first`.
pub(super) fn segment_path(dir: &Path, first: Position) -> PathBuf {
    dir.join(format!("{first:020}.seg"))
}

/// The first position in a segment's file name, if it is one.
pub(super) fn parse_segment_name(name: &str) -> Option<Position> {
    let digits = name.strip_suffix(".seg")?;
    if digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// A little-endian `u32` at `at`; the caller has checked that it is there.
pub(super) fn le_u32(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0u8; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

/// A little-endian `u64` at `at`; the caller has checked that it is there.
pub(super) fn le_u64(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0u8; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// A little-endian `u16` at `at`; the caller has checked that it is there.
pub(super) fn le_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}
