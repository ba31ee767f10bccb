//! Reads the blocks of one segment file in order, with a bounded buffer.

use std::path::PathBuf;

use super::Position;
use super::block::{BLOCK_HEADER, Block, BlockHeader, align, marker};
use super::durable::read_full_at;
use super::error::{Damage, LogError};
use super::segment::{Chain, HEADER_BYTES, SegmentHeader, le_u64, segment_path};
use crate::files::File;

/// Minimum number of bytes to read ahead.
const READ_BYTES: usize = 256 * 1024;

/// The result of reading at the cursor.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// An intact block that continues the positions. The cursor has moved past it.
    Block(Block<'a>),
    /// Zeroes, or the end of the file. The cursor does not move.
    End,
    /// Damage. The cursor does not move.
    Bad(Damage),
}

/// A place between two blocks of a segment file.
#[derive(Debug)]
pub(super) struct Cursor {
    file: File,
    path: PathBuf,
    /// Size of the file in bytes, when it was opened.
    pub(super) file_bytes: u64,
    salt: u64,
    segment: Position,
    /// Offset of the next block.
    pub(super) offset: u64,
    /// The first position of the next block.
    pub(super) next: Position,
    /// Chain over the blocks so far.
    pub(super) chain: Chain,
    /// Zeroed once. Of its bytes, the first `filled` have been read, from `buf_offset` on.
    buf: Vec<u8>,
    filled: usize,
    buf_offset: u64,
}

/// Returns the index of the last byte that is not zero. Most of a segment is zeroes, which are
/// compared many at a time.
fn last_set_byte(bytes: &[u8]) -> Option<usize> {
    const ZEROES: [u8; 4096] = [0; 4096];
    let zeroes: usize = bytes.rchunks(ZEROES.len()).take_while(|chunk| **chunk == ZEROES[..chunk.len()]).map(<[u8]>::len).sum();
    bytes[..bytes.len() - zeroes].iter().rposition(|&byte| byte != 0)
}

impl Cursor {
    /// Opens the segment that begins at `first` and reads its header.
    pub(super) fn open(dir: &std::path::Path, first: Position) -> Result<(Self, SegmentHeader), LogError> {
        let path = segment_path(dir, first);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(LogError::Damaged { segment: first, offset: 0, reason: Damage::Missing });
            }
            Err(error) => return Err(LogError::io("open", &path, error)),
        };
        let file_bytes = file.len().map_err(|error| LogError::io("inspect", &path, error))?;
        let header = SegmentHeader::read(&file, &path, first)?;
        let cursor = Cursor {
            file,
            path,
            file_bytes,
            salt: header.salt,
            segment: first,
            offset: HEADER_BYTES,
            next: first,
            chain: Chain::begin(&header),
            buf: Vec::new(),
            filled: 0,
            buf_offset: HEADER_BYTES,
        };
        Ok((cursor, header))
    }

    /// Reads at the cursor, and moves past a block.
    pub(super) fn step(&mut self) -> Result<Step<'_>, LogError> {
        let room = self.file_bytes.saturating_sub(self.offset);
        if room < BLOCK_HEADER as u64 {
            return Ok(Step::End);
        }
        let start = self.fill(BLOCK_HEADER)?;
        let head = &self.buf[start..start + BLOCK_HEADER];
        if head.iter().all(|&byte| byte == 0) {
            return Ok(Step::End);
        }
        let header = BlockHeader::parse(head);
        let bytes = match header.stored_bytes(self.salt, self.offset, room) {
            Ok(bytes) => bytes,
            Err(damage) => return Ok(Step::Bad(damage)),
        };
        let start = self.fill(bytes)?;
        let block = match Block::decode(&self.buf[start..start + bytes], self.salt) {
            Ok(block) => block,
            Err(damage) => return Ok(Step::Bad(damage)),
        };
        if block.header.first != self.next {
            return Ok(Step::Bad(Damage::Positions));
        }
        self.offset += bytes as u64;
        self.next += block.header.count;
        self.chain = self.chain.extend(block.header.checksum, block.last());
        Ok(Step::Block(block))
    }

    /// Makes sure that `need` bytes from the cursor on are in the buffer. Returns their offset in
    /// it.
    fn fill(&mut self, need: usize) -> Result<usize, LogError> {
        let start = usize::try_from(self.offset - self.buf_offset).unwrap_or(usize::MAX).min(self.filled);
        let have = self.filled - start;
        if have >= need {
            return Ok(start);
        }
        let bytes = need.max(READ_BYTES);
        if self.buf.len() < bytes {
            let mut larger = vec![0u8; bytes];
            larger[..have].copy_from_slice(&self.buf[start..self.filled]);
            self.buf = larger;
        } else {
            self.buf.copy_within(start..self.filled, 0);
        }
        (self.filled, self.buf_offset) = (have, self.offset);
        self.filled += read_full_at(&self.file, &mut self.buf[have..bytes], self.offset + have as u64)
            .map_err(|error| LogError::io("read", &self.path, error))?;
        // The file was truncated while it was read, which the program itself never does.
        if self.filled < need { Err(self.damaged(Damage::EndsEarly)) } else { Ok(0) }
    }

    /// Returns an error that names the cursor's place.
    pub(super) fn damaged(&self, reason: Damage) -> LogError {
        LogError::Damaged { segment: self.segment, offset: self.offset, reason }
    }

    /// Inspects the rest of the file from the cursor.
    pub(super) fn inspect_tail(&self) -> Result<Tail, LogError> {
        const CHUNK: usize = 1024 * 1024;
        let mut tail = Tail { end_of_data: self.offset, later_markers: Vec::new() };
        let (mut at, mut buf) = (self.offset, vec![0u8; CHUNK]);
        while at < self.file_bytes {
            let n = read_full_at(&self.file, &mut buf, at).map_err(|error| LogError::io("read", &self.path, error))?;
            if n == 0 {
                break;
            }
            if let Some(last) = last_set_byte(&buf[..n]) {
                tail.end_of_data = at + last as u64 + 1;
                let markers = buf[..n].chunks_exact(8).zip((at..).step_by(8));
                tail.later_markers.extend(
                    markers
                        .filter(|(word, offset)| *offset > self.offset && le_u64(word, 0) == marker(self.salt, *offset))
                        .map(|(_, offset)| offset),
                );
            }
            at += n as u64;
        }
        Ok(tail)
    }

    /// Returns the first position of the intact block at `offset`, if there is one.
    pub(super) fn intact_block_at(&self, offset: u64) -> Result<Option<Position>, LogError> {
        let failed = |error| LogError::io("read", &self.path, error);
        let mut bytes = vec![0u8; BLOCK_HEADER];
        if read_full_at(&self.file, &mut bytes, offset).map_err(failed)? < BLOCK_HEADER {
            return Ok(None);
        }
        let room = self.file_bytes.saturating_sub(offset);
        let Ok(whole) = BlockHeader::parse(&bytes).stored_bytes(self.salt, offset, room) else { return Ok(None) };
        bytes.resize(whole, 0);
        if read_full_at(&self.file, &mut bytes, offset).map_err(failed)? < whole {
            return Ok(None);
        }
        Ok(Block::decode(&bytes, self.salt).ok().map(|block| block.header.first))
    }

    /// Moves the cursor past a gap that a repair has just written.
    pub(super) fn pass(&mut self, bytes: u64, next: Position, checksum: u32) {
        self.offset += align(bytes);
        self.next = next;
        self.chain = self.chain.extend(checksum, next.saturating_sub(1));
        self.filled = 0;
        self.buf_offset = self.offset;
        self.file_bytes = self.file_bytes.max(self.offset);
    }
}

/// The bytes after the last good block of a segment.
#[derive(Debug)]
pub(super) struct Tail {
    /// Offset of the zeroes at the end of the file.
    pub(super) end_of_data: u64,
    /// Offsets after the cursor at which the log once began a block. Such a marker can't be forged:
    /// it is a hash of the segment's secret salt and the offset.
    pub(super) later_markers: Vec<u64>,
}

#[cfg(test)]
mod tests {
    use super::last_set_byte;

    #[test]
    fn the_last_set_byte_is_found_in_any_page() {
        for len in [0, 1, 4095, 4096, 4097, 10_000] {
            assert_eq!(last_set_byte(&vec![0; len]), None, "{len}");
            for set in [0, 1, 1_807, 1_808, 4094, 4095, 4096, 5_903, 5_904, 9_999] {
                let mut bytes = vec![0; len];
                if let Some(byte) = bytes.get_mut(set) {
                    *byte = 1;
                    bytes[0] = 1;
                    assert_eq!(last_set_byte(&bytes), Some(set), "{len}");
                }
            }
        }
    }
}
