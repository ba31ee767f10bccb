//! What all tests of the log use.

use std::fs::{File, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headcount_storage::log::{AppendEntry, Log, LogError, LogOptions, LogReader, Position, Recovery};

/// Bytes before the first block of a segment.
pub(crate) const HEADER_BYTES: u64 = 4096;

/// A record as the tests keep it: partition, first position, count, payload.
pub(crate) type ReadRecord = (u16, Position, u32, Vec<u8>);

/// A directory for one test: in memory if there is such a place, because none of these tests cuts
/// the power.
pub(crate) fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The smallest segments there are, made when needed.
pub(crate) fn small() -> LogOptions {
    LogOptions { segment_bytes: 0, prepare_ahead: false, repair: false }
}

pub(crate) fn repairing() -> LogOptions {
    LogOptions { repair: true, ..small() }
}

pub(crate) fn open(dir: &Path) -> (Log, Recovery) {
    Log::open(dir, small()).unwrap()
}

/// Everything a reader hands out.
pub(crate) fn read_all(reader: &LogReader) -> Result<Vec<ReadRecord>, LogError> {
    read_after(reader, 0)
}

/// Everything after a position.
pub(crate) fn read_after(reader: &LogReader, after: Position) -> Result<Vec<ReadRecord>, LogError> {
    let mut kept = Vec::new();
    reader.read(
        |_| Some(after),
        |record| {
            kept.push((record.partition, record.first, record.count, record.payload.to_vec()));
            ControlFlow::Continue(())
        },
    )?;
    Ok(kept)
}

/// Appends `blocks` blocks of three entries; the sizes and contents depend on the number of the
/// block.
pub(crate) fn fill(log: &mut Log, blocks: u32) -> Vec<ReadRecord> {
    let mut kept = Vec::new();
    for n in 0..blocks {
        let payloads = [noise(n, 200), vec![7u8; 1500 + n as usize % 13], noise(n + 1000, 333)];
        let counts = [1, n % 5 + 1, 3];
        let entries: Vec<AppendEntry<'_>> = (0..3)
            .map(|i| AppendEntry { partition: (n % 4) as u16 + 10 * i as u16, count: counts[i], payload: &payloads[i] })
            .collect();
        let mut position = log.append(&entries).unwrap();
        for entry in &entries {
            kept.push((entry.partition, position, entry.count, entry.payload.to_vec()));
            position += u64::from(entry.count);
        }
        assert_eq!(log.last_position(), position - 1);
    }
    kept
}

/// Bytes that don't compress.
pub(crate) fn noise(seed: u32, len: usize) -> Vec<u8> {
    let mut state = u64::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
    .take(len)
    .collect()
}

/// First positions of the segments in a directory.
pub(crate) fn segments(dir: &Path) -> Vec<Position> {
    let mut firsts: Vec<Position> = std::fs::read_dir(dir)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str().unwrap().strip_suffix(".seg")?.parse().ok())
        .collect();
    firsts.sort_unstable();
    firsts
}

pub(crate) fn segment(dir: &Path, first: Position) -> PathBuf {
    dir.join(format!("{first:020}.seg"))
}

pub(crate) fn index(dir: &Path, first: Position) -> PathBuf {
    dir.join(format!("{first:020}.idx"))
}

pub(crate) fn writable(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

/// Flips one bit of a file.
pub(crate) fn flip(file: &File, bit: u64) {
    let mut byte = [0u8];
    file.read_exact_at(&mut byte, bit / 8).unwrap();
    byte[0] ^= 1 << (bit % 8);
    file.write_all_at(&byte, bit / 8).unwrap();
}

/// Offset and size of each block in a segment, and the offset behind the last one.
pub(crate) fn blocks(path: &Path) -> (Vec<(u64, u64)>, u64) {
    let bytes = std::fs::read(path).unwrap();
    let (mut found, mut at) = (Vec::new(), HEADER_BYTES as usize);
    while at + 48 <= bytes.len() && bytes[at..at + 8] != [0; 8] {
        let length = u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap()) as usize;
        let size = (48 + length).next_multiple_of(8);
        found.push((at as u64, size as u64));
        at += size;
    }
    (found, at as u64)
}

/// Copies a log, as a crash or a backup would leave it.
pub(crate) fn copy(from: &Path) -> tempfile::TempDir {
    let to = temporary();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

/// Where a damaged log says that it is damaged.
pub(crate) fn place<T>(result: Result<T, LogError>) -> (Position, u64) {
    match result {
        Err(LogError::Damaged { segment, offset, .. }) => (segment, offset),
        Err(other) => panic!("another error: {other}"),
        Ok(_) => panic!("nothing was noticed"),
    }
}
