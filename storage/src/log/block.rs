//! A block: the bytes of one append, as one frame under one checksum.
//!
//! ```text
//!  0  marker       u64   hash of the segment's salt and the block's offset
//!  8  length       u32   bytes of table and payload, as stored
//! 12  checksum     u32   CRC32C of the salt and of every other byte of the block, padding included
//! 16  first        u64   position of the first event
//! 24  count        u64   events, or positions lost, in the block
//! 32  raw length   u32   bytes of the payload before compression
//! 36  entries       u32   entries in the table
//! 40  kind         u8    1 events, 2 gap (left by a repair)
//! 41  codec        u8    0 none, 1 lz4
//! 42  zero         [6]
//! 48  table              per entry: partition u16, zero u16, count u32, length u32
//!     payload            the entries' payloads, one after the other
//!     padding            zeroes up to a multiple of 8 bytes
//! ```
//!
//! One frame, not one per entry: pages of a write reach the disk in any order, so with several
//! frames a crash could leave a valid frame behind an invalid one, which would look like damage.
//! The marker depends on the salt, which clients don't know, and on the offset, so that a block
//! copied elsewhere is not valid.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::error::{Damage, LogError};
use super::segment::{le_u16, le_u32, le_u64};
use super::{AppendEntry, MAX_BLOCK_BYTES, Position};

/// Size of a block before its table in bytes.
pub(super) const BLOCK_HEADER: usize = 48;
/// Alignment of blocks in bytes.
pub(super) const ALIGN: u64 = 8;
const ENTRY: usize = 12;
const KIND_EVENTS: u8 = 1;
const KIND_GAP: u8 = 2;
const CODEC_NONE: u8 = 0;
const CODEC_LZ4: u8 = 1;
/// Payload size in bytes below which compressing costs more than it saves.
const COMPRESS_FROM_BYTES: usize = 1024;

/// The first 8 bytes of a block at `offset` of the segment with this salt. Never 0.
pub(super) fn marker(salt: u64, offset: u64) -> u64 {
    xxh3_64_with_seed(&offset.to_le_bytes(), salt) | 1
}

/// Rounds up to the place where the next block may begin.
pub(super) fn align(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGN)
}

/// Checksum of a whole block, except for the bytes of the checksum itself.
fn checksum(block: &[u8], salt: u64) -> u32 {
    let crc = crc32c::crc32c(&salt.to_le_bytes());
    let crc = crc32c::crc32c_append(crc, &block[..12]);
    crc32c::crc32c_append(crc, &block[16..])
}

/// The first 48 bytes of a block. Fields are untrusted until [`Block::decode`].
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockHeader {
    marker: u64,
    length: u32,
    pub(super) checksum: u32,
    pub(super) first: Position,
    pub(super) count: u64,
    raw_length: u32,
    entries: u32,
    kind: u8,
    codec: u8,
}

impl BlockHeader {
    /// Parses the fields; `bytes` holds at least [`BLOCK_HEADER`] bytes.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        BlockHeader {
            marker: le_u64(bytes, 0),
            length: le_u32(bytes, 8),
            checksum: le_u32(bytes, 12),
            first: le_u64(bytes, 16),
            count: le_u64(bytes, 24),
            raw_length: le_u32(bytes, 32),
            entries: le_u32(bytes, 36),
            kind: bytes[40],
            codec: bytes[41],
        }
    }

    /// Returns the size of the whole block on disk; an error if the marker or the length can't be
    /// those of a block at `offset` with `room_bytes` up to the end of the file.
    pub(super) fn stored_bytes(&self, salt: u64, offset: u64, room_bytes: u64) -> Result<usize, Damage> {
        if self.marker != marker(salt, offset) {
            return Err(Damage::Marker);
        }
        let bytes = align(BLOCK_HEADER as u64 + u64::from(self.length));
        if bytes > room_bytes {
            return Err(Damage::Length);
        }
        usize::try_from(bytes).map_err(|_| Damage::Length)
    }

    fn write(&self, out: &mut [u8]) {
        out[0..8].copy_from_slice(&self.marker.to_le_bytes());
        out[8..12].copy_from_slice(&self.length.to_le_bytes());
        out[12..16].copy_from_slice(&self.checksum.to_le_bytes());
        out[16..24].copy_from_slice(&self.first.to_le_bytes());
        out[24..32].copy_from_slice(&self.count.to_le_bytes());
        out[32..36].copy_from_slice(&self.raw_length.to_le_bytes());
        out[36..40].copy_from_slice(&self.entries.to_le_bytes());
        out[40] = self.kind;
        out[41] = self.codec;
    }
}

/// A block whose checksum and table have been checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    pub(super) header: BlockHeader,
    table: &'a [u8],
    stored: &'a [u8],
}

/// One entry of a block's table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) partition: u16,
    pub(super) first: Position,
    pub(super) count: u32,
    /// Offset of the entry's payload in the block's uncompressed payload.
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Entry {
    /// Position of the entry's last event.
    pub(super) fn last(&self) -> Position {
        self.first + u64::from(self.count) - 1
    }
}

impl<'a> Block<'a> {
    /// Checks and parses `bytes`, which are the whole block.
    pub(super) fn decode(bytes: &'a [u8], salt: u64) -> Result<Self, Damage> {
        let header = BlockHeader::parse(bytes);
        if checksum(bytes, salt) != header.checksum {
            return Err(Damage::Checksum);
        }
        let body = &bytes[BLOCK_HEADER..BLOCK_HEADER + header.length as usize];
        if header.first.checked_add(header.count).is_none() {
            return Err(Damage::Table);
        }
        if header.kind == KIND_GAP {
            return Ok(Block { header, table: &[], stored: body });
        }
        let table_bytes = (header.entries as usize).checked_mul(ENTRY).ok_or(Damage::Table)?;
        if header.kind != KIND_EVENTS || header.entries == 0 || table_bytes > body.len() {
            return Err(Damage::Table);
        }
        let (table, stored) = body.split_at(table_bytes);
        let block = Block { header, table, stored };
        block.check_table()?;
        Ok(block)
    }

    fn check_table(&self) -> Result<(), Damage> {
        let (mut count, mut length) = (0u64, 0u64);
        for entry in self.entries() {
            if entry.count == 0 {
                return Err(Damage::Table);
            }
            count += u64::from(entry.count);
            length += entry.length as u64;
        }
        let raw = u64::from(self.header.raw_length);
        let stored_fits = match self.header.codec {
            CODEC_NONE => self.stored.len() as u64 == raw,
            CODEC_LZ4 => raw <= MAX_BLOCK_BYTES,
            _ => false,
        };
        if count == self.header.count && length == raw && stored_fits { Ok(()) } else { Err(Damage::Table) }
    }

    /// Whether the block replaces events that a repair could not save.
    pub(super) fn is_gap(&self) -> bool {
        self.header.kind == KIND_GAP
    }

    /// Position of the block's last event; for an empty gap, the position before it.
    pub(super) fn last(&self) -> Position {
        (self.header.first + self.header.count).saturating_sub(1)
    }

    /// The entries, in order. A gap has none.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry> + use<'a> {
        let (mut first, mut start) = (self.header.first, 0usize);
        self.table.chunks_exact(ENTRY).map(move |bytes| {
            let (count, length) = (le_u32(bytes, 4), le_u32(bytes, 8) as usize);
            let entry = Entry { partition: le_u16(bytes, 0), first, count, start, length };
            first = first.saturating_add(u64::from(count));
            start = start.saturating_add(length);
            entry
        })
    }

    /// The entries' payloads, one after the other; `scratch` holds them if they are decompressed.
    pub(super) fn payload<'b>(&self, scratch: &'b mut Vec<u8>) -> Result<&'b [u8], Damage>
    where
        'a: 'b,
    {
        if self.header.codec == CODEC_NONE {
            return Ok(self.stored);
        }
        let raw_length = self.header.raw_length as usize;
        scratch.clear();
        scratch.resize(raw_length, 0);
        match lz4_flex::block::decompress_into(self.stored, scratch) {
            Ok(n) if n == raw_length => Ok(scratch),
            _ => Err(Damage::Payload),
        }
    }
}

/// Builds blocks in reused buffers.
#[derive(Debug, Default)]
pub(super) struct Encoder {
    raw: Vec<u8>,
    out: Vec<u8>,
    header: Option<BlockHeader>,
}

impl Encoder {
    /// Builds a block of these entries, except for the parts that depend on its place. Returns its
    /// size on disk in bytes.
    pub(super) fn encode(&mut self, entries: &[AppendEntry<'_>], first: Position) -> Result<u64, LogError> {
        let count = check_entries(entries)?;
        self.out.clear();
        self.out.resize(BLOCK_HEADER, 0);
        for entry in entries {
            self.out.extend_from_slice(&entry.partition.to_le_bytes());
            self.out.extend_from_slice(&[0, 0]);
            self.out.extend_from_slice(&entry.count.to_le_bytes());
            self.out.extend_from_slice(&to_u32(entry.payload.len()).to_le_bytes());
        }
        let raw_length: usize = entries.iter().map(|entry| entry.payload.len()).sum();
        let codec = if self.compress(entries, raw_length) {
            CODEC_LZ4
        } else {
            entries.iter().for_each(|entry| self.out.extend_from_slice(entry.payload));
            CODEC_NONE
        };
        let length = to_u32(self.out.len() - BLOCK_HEADER);
        self.out.resize(self.out.len().next_multiple_of(8), 0);
        self.header = Some(BlockHeader {
            marker: 0,
            length,
            checksum: 0,
            first,
            count,
            raw_length: to_u32(raw_length),
            entries: to_u32(entries.len()),
            kind: KIND_EVENTS,
            codec,
        });
        Ok(self.out.len() as u64)
    }

    /// Appends the compressed payload to `out` if that saves at least an eighth.
    fn compress(&mut self, entries: &[AppendEntry<'_>], raw_length: usize) -> bool {
        if raw_length < COMPRESS_FROM_BYTES {
            return false;
        }
        self.raw.clear();
        entries.iter().for_each(|entry| self.raw.extend_from_slice(entry.payload));
        let start = self.out.len();
        self.out.resize(start + lz4_flex::block::get_maximum_output_size(raw_length), 0);
        let packed = lz4_flex::block::compress_into(&self.raw, &mut self.out[start..]);
        match packed {
            Ok(n) if n <= raw_length - raw_length / 8 => {
                self.out.truncate(start + n);
                true
            }
            _ => {
                self.out.truncate(start);
                false
            }
        }
    }

    /// Builds a gap: a block without events that replaces `total_bytes` lost bytes and `count`
    /// positions.
    pub(super) fn encode_gap(&mut self, total_bytes: usize, first: Position, count: u64) {
        self.out.clear();
        self.out.resize(total_bytes.max(BLOCK_HEADER), 0);
        self.header = Some(BlockHeader {
            marker: 0,
            length: to_u32(self.out.len() - BLOCK_HEADER),
            checksum: 0,
            first,
            count,
            raw_length: 0,
            entries: 0,
            kind: KIND_GAP,
            codec: CODEC_NONE,
        });
    }

    /// Completes the block for its place. Returns its bytes and its checksum.
    pub(super) fn place(&mut self, salt: u64, offset: u64) -> (&[u8], u32) {
        let mut sum = 0;
        if let Some(mut header) = self.header.take() {
            header.marker = marker(salt, offset);
            header.write(&mut self.out);
            sum = checksum(&self.out, salt);
            self.out[12..16].copy_from_slice(&sum.to_le_bytes());
        }
        (&self.out, sum)
    }
}

/// Checks the limits of one append. Returns its number of events.
fn check_entries(entries: &[AppendEntry<'_>]) -> Result<u64, LogError> {
    if entries.is_empty() || entries.iter().any(|entry| entry.count == 0) {
        return Err(LogError::Empty);
    }
    let size_bytes: u64 = entries.iter().map(|entry| (entry.payload.len() + ENTRY) as u64).sum();
    if size_bytes > MAX_BLOCK_BYTES {
        return Err(LogError::TooLarge { size_bytes, limit_bytes: MAX_BLOCK_BYTES });
    }
    Ok(entries.iter().map(|entry| u64::from(entry.count)).sum())
}

#[expect(clippy::expect_used, reason = "a block is at most MAX_BLOCK_BYTES, which check_entries has made sure of")]
fn to_u32(n: usize) -> u32 {
    u32::try_from(n).expect("a block's sizes fit 32 bits")
}
