//! Corruptions of files, and the expected behavior of the server.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headcount_histories::Rng;

use super::segments::{HEADER_BYTES, Segment, flip_bit, segments};
use crate::error::{Result, harness};
use crate::mount::copy_directory;

/// Expected behavior of the next start. Answers, tokens and keys must always be the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// The server starts, and logs a rebuild.
    Rebuilt,
    /// The server starts. It logs a rebuild if the corruption affects data in use.
    Same,
    /// As `Same`, after a first server is killed during its start.
    SameAfterKill,
    /// The server refuses to start, and its message names one of these places.
    Refused(Vec<String>),
}

/// A kind of corruption.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corruption {
    /// A directory or file is deleted.
    Deleted(&'static str),
    /// A file of a directory is truncated.
    Truncated(&'static str),
    /// Bits of a file of a directory are flipped.
    BitsFlipped(&'static str),
    /// The store is deleted, and the first server that rebuilds it is killed.
    DeletedTwice,
    /// The store is replaced by an older copy.
    Outdated,
    /// A bit in a block of the log, except the last, is flipped.
    LogBlock,
    /// A bit in the header of a log segment is flipped.
    LogHeader,
    /// Garbage follows the last block, as after a torn write.
    LogTail,
    /// A bit in a block of the control log, except the last, is flipped.
    ControlBlock,
}

impl Corruption {
    /// Returns all corruptions, the random ones `times` times.
    #[must_use]
    pub fn all(times: usize) -> Vec<Corruption> {
        let mut corruptions = vec![
            Corruption::Deleted("store"),
            Corruption::Deleted("store/tree"),
            Corruption::Deleted("store/tables"),
            Corruption::Outdated,
            Corruption::Deleted("fingerprints"),
            Corruption::Deleted("keys/hash.key"),
        ];
        for _ in 0..times {
            corruptions.extend([
                Corruption::DeletedTwice,
                Corruption::Truncated("store"),
                Corruption::BitsFlipped("store"),
                Corruption::Truncated("store/tables"),
                Corruption::BitsFlipped("store/tables"),
                Corruption::Truncated("fingerprints"),
                Corruption::BitsFlipped("fingerprints"),
                Corruption::LogBlock,
                Corruption::LogTail,
            ]);
        }
        corruptions.extend([Corruption::LogHeader, Corruption::ControlBlock]);
        corruptions
    }

    /// Corrupts the data in `dir`; returns a description and the expected behavior.
    ///
    /// # Errors
    /// A file operation fails.
    pub fn apply(self, dir: &Path, older_store: &Path, rng: &mut Rng) -> Result<(String, Expected)> {
        Ok(match self {
            Corruption::Deleted(what) => {
                let path = dir.join(what);
                if path.is_dir() {
                    fs::remove_dir_all(&path)?
                } else {
                    fs::remove_file(&path)?
                }
                (format!("{what} deleted"), Expected::Rebuilt)
            }
            Corruption::DeletedTwice => {
                fs::remove_dir_all(dir.join("store"))?;
                ("store deleted, and the rebuild killed".to_owned(), Expected::SameAfterKill)
            }
            Corruption::Outdated => {
                copy_directory(older_store, &dir.join("store"))?;
                ("store replaced by an older copy".to_owned(), Expected::Same)
            }
            Corruption::Truncated(what) => (truncate(&dir.join(what), dir, rng)?, Expected::Same),
            Corruption::BitsFlipped(what) => (flip_bits(&dir.join(what), dir, rng)?, Expected::Same),
            Corruption::LogBlock => log_block(dir, rng)?,
            Corruption::LogHeader => {
                let segments = segments(&dir.join("log"))?;
                let segment = rng.pick(&segments);
                let at = flip_bit(&segment.path, (0, HEADER_BYTES), rng)?;
                let place = format!("segment {} is damaged at byte 0", segment.name);
                (format!("a bit of the header of log segment {} flipped, at {at}", segment.name), Expected::Refused(vec![place]))
            }
            Corruption::LogTail => log_tail(dir, rng)?,
            Corruption::ControlBlock => {
                let segments = segments(&dir.join("control/log"))?;
                let (segment, what, place) = flip_block(&segments[segments.len() - 1..], rng)?;
                (format!("a bit of control segment {segment} flipped, {what}"), Expected::Refused(vec![place]))
            }
        })
    }
}

/// Flips a bit in a block of the log. Deletes the store if the segment is sealed, since only a
/// rebuild reads sealed segments.
fn log_block(dir: &Path, rng: &mut Rng) -> Result<(String, Expected)> {
    let segments = segments(&dir.join("log"))?;
    let hit = rng.below(segments.len());
    let (segment, what, place) = flip_block(&segments[hit..=hit], rng)?;
    let is_sealed = hit + 1 < segments.len();
    if is_sealed {
        fs::remove_dir_all(dir.join("store"))?;
    }
    let also = if is_sealed { " (sealed), and the store deleted" } else { "" };
    Ok((format!("a bit of log segment {segment} flipped, {what}{also}"), Expected::Refused(vec![place])))
}

/// Flips a bit in any block except the last. Returns the segment, a description, and the place that
/// the server must name.
fn flip_block(segments: &[Segment], rng: &mut Rng) -> Result<(String, String, String)> {
    let segment = rng.pick(segments);
    if segment.blocks() < 2 {
        return Err(harness(format!("{} has {} blocks", segment.path.display(), segment.blocks())));
    }
    let block = rng.below(segment.blocks() - 1);
    let (from, to) = (segment.offsets[block], segment.offsets[block + 1]);
    let at = flip_bit(&segment.path, (from, to), rng)?;
    let what = format!("block {} of {}, byte {} of {}", block + 1, segment.blocks(), at - from, to - from);
    let place = format!("segment {} is damaged at byte {from}", segment.name);
    Ok((segment.name.clone(), what, place))
}

/// Writes garbage after the last block.
fn log_tail(dir: &Path, rng: &mut Rng) -> Result<(String, Expected)> {
    let segments = segments(&dir.join("log"))?;
    let last = segments.last().ok_or_else(|| harness("the log has no segments"))?;
    let file = OpenOptions::new().write(true).open(&last.path)?;
    let room = last.path.metadata()?.len() - last.end();
    let garbage: Vec<u8> = (0..(1 + rng.bits() % 100_000).min(room)).map(|_| rng.bits().to_le_bytes()[0]).collect();
    file.write_all_at(&garbage, last.end())?;
    Ok((format!("{} bytes of garbage after the last block of the log", garbage.len()), Expected::Same))
}

fn truncate(path: &Path, dir: &Path, rng: &mut Rng) -> Result<String> {
    let file = some_file(path, rng)?;
    let size = file.metadata()?.len();
    let left = rng.bits() % size;
    OpenOptions::new().write(true).open(&file)?.set_len(left)?;
    Ok(format!("{} ends after {left} of {size} bytes", relative(&file, dir)))
}

fn flip_bits(path: &Path, dir: &Path, rng: &mut Rng) -> Result<String> {
    let file = some_file(path, rng)?;
    let size = file.metadata()?.len();
    let flips = 1 + rng.below(8);
    let mut places = Vec::new();
    for _ in 0..flips {
        places.push(flip_bit(&file, (0, size), rng)?);
    }
    Ok(format!("bits of {} flipped, at {places:?} of {size}", relative(&file, dir)))
}

fn relative(file: &Path, dir: &Path) -> String {
    file.strip_prefix(dir).unwrap_or(file).display().to_string()
}

/// Returns a random non-empty file; in half of the cases, the probability is proportional to its
/// size.
fn some_file(dir: &Path, rng: &mut Rng) -> Result<PathBuf> {
    let mut files = Vec::new();
    list(dir, &mut files)?;
    let total: u64 = files.iter().map(|(_, size)| size).sum();
    if total == 0 {
        return Err(harness(format!("{} has no files with content", dir.display())));
    }
    if rng.chance(50) {
        return Ok(rng.pick(&files).0.clone());
    }
    let mut at = rng.bits() % total;
    let found = files.iter().find(|(_, size)| {
        let is_it = at < *size;
        at = at.saturating_sub(*size);
        is_it
    });
    Ok(found.unwrap_or(&files[0]).0.clone())
}

fn list(dir: &Path, files: &mut Vec<(PathBuf, u64)>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let (path, about) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
        if about.is_dir() {
            list(&path, files)?;
        } else if about.len() > 0 {
            files.push((path, about.len()));
        }
    }
    files.sort();
    Ok(())
}
