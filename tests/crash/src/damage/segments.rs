//! Locates the blocks of the log, by a minimal parser of its format.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headcount_histories::Rng;

/// Size of a segment header.
pub const HEADER_BYTES: u64 = 4096;
/// Size of a block header.
const BLOCK_HEADER: u64 = 48;

/// A segment file.
#[derive(Debug, Clone)]
pub struct Segment {
    /// Path of the file.
    pub path: PathBuf,
    /// File name without the extension: the position of its first event.
    pub name: String,
    /// Offsets of its blocks, followed by the end of the last one.
    pub offsets: Vec<u64>,
}

impl Segment {
    /// Returns the number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the offset at which its blocks end.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offsets[self.blocks()]
    }
}

/// Returns the segments of a log in order.
///
/// # Errors
/// A segment can't be read.
pub fn segments(log: &Path) -> io::Result<Vec<Segment>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(log)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "seg"));
    paths.sort();
    paths.into_iter().map(parse).collect()
}

fn parse(path: PathBuf) -> io::Result<Segment> {
    let (file, size) = (File::open(&path)?, path.metadata()?.len());
    let (mut offsets, mut at, mut header) = (vec![HEADER_BYTES], HEADER_BYTES, [0; 12]);
    while at + BLOCK_HEADER <= size {
        file.read_exact_at(&mut header, at)?;
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]);
        if header[..8] == [0; 8] {
            break;
        }
        at += (BLOCK_HEADER + u64::from(length)).next_multiple_of(8);
        offsets.push(at);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Segment { path, name, offsets })
}

/// Flips a random bit of a file within a range, and returns its offset.
///
/// # Errors
/// A file operation fails.
pub fn flip_bit(path: &Path, (from, to): (u64, u64), rng: &mut Rng) -> io::Result<u64> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let at = from + rng.bits() % (to - from);
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    byte[0] ^= 1 << rng.below(8);
    file.write_all_at(&byte, at)?;
    Ok(at)
}
