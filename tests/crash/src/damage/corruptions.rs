//! What is done to the files, and what has to come of it.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use headcount_histories::Rng;

use super::segments::{HEADER_BYTES, Segment, flip_bit, segments};
use crate::mount::copy_directory;
use crate::trouble::{Result, harness};

/// What has to come of it, always with the same answers, tokens and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// It starts, and says that it rebuilds.
    Rebuilt,
    /// It starts. Where the damage hit something that is in use, it says that it rebuilds.
    Same,
    /// As `Same`, though the first server is killed while it starts.
    SameAfterKill,
    /// It does not start, and names the places: any of these.
    Refused(Vec<String>),
}

/// One kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wound {
    /// A directory or file is gone.
    Gone(&'static str),
    /// A file of a directory ends early.
    Cut(&'static str),
    /// Some bytes of a file of a directory are others.
    Scrambled(&'static str),
    /// The store is gone, and the first server that rebuilds it is killed.
    GoneTwice,
    /// The store is an older one.
    Older,
    /// A bit of a block of the log, but the last, is flipped.
    LogBlock,
    /// A bit of a header of a segment is flipped.
    LogHeader,
    /// Something lies behind the last block, as a crash in the middle of a write leaves it.
    LogTail,
    /// A bit of a block of the log of organizations, projects and tokens, but the last, is flipped.
    ControlBlock,
}

impl Wound {
    /// All of them, those that depend on chance `times` times.
    #[must_use]
    pub fn all(times: usize) -> Vec<Wound> {
        let mut wounds = vec![
            Wound::Gone("store"),
            Wound::Gone("store/tree"),
            Wound::Gone("store/runs"),
            Wound::Gone("store/journal"),
            Wound::Older,
            Wound::Gone("fingerprints"),
            Wound::Gone("keys/hash.key"),
        ];
        for _ in 0..times {
            wounds.extend([
                Wound::GoneTwice,
                Wound::Cut("store"),
                Wound::Scrambled("store"),
                Wound::Cut("store/runs"),
                Wound::Scrambled("store/runs"),
                Wound::Cut("fingerprints"),
                Wound::Scrambled("fingerprints"),
                Wound::LogBlock,
                Wound::LogTail,
            ]);
        }
        wounds.extend([Wound::LogHeader, Wound::ControlBlock]);
        wounds
    }

    /// Does it to the data in `dir`; says what was done, and what has to come of it.
    ///
    /// # Errors
    /// The operating system's.
    pub fn inflict(self, dir: &Path, older_store: &Path, rng: &mut Rng) -> Result<(String, Expected)> {
        Ok(match self {
            Wound::Gone(what) => {
                let path = dir.join(what);
                if path.is_dir() {
                    fs::remove_dir_all(&path)?
                } else {
                    fs::remove_file(&path)?
                }
                // The journal is empty after a clean stop: then nothing is missing.
                let expected = if what == "store/journal" { Expected::Same } else { Expected::Rebuilt };
                (format!("{what} is gone"), expected)
            }
            Wound::GoneTwice => {
                fs::remove_dir_all(dir.join("store"))?;
                ("store is gone, and the rebuilding is killed".to_owned(), Expected::SameAfterKill)
            }
            Wound::Older => {
                copy_directory(older_store, &dir.join("store"))?;
                ("the store is an older one".to_owned(), Expected::Same)
            }
            Wound::Cut(what) => (cut(&dir.join(what), dir, rng)?, Expected::Same),
            Wound::Scrambled(what) => (scramble(&dir.join(what), dir, rng)?, Expected::Same),
            Wound::LogBlock => log_block(dir, rng)?,
            Wound::LogHeader => {
                let segments = segments(&dir.join("log"))?;
                let segment = rng.pick(&segments);
                let at = flip_bit(&segment.path, (0, HEADER_BYTES), rng)?;
                let place = format!("segment {} is damaged at byte 0", segment.name);
                (format!("a bit of the header of log segment {} flipped, at {at}", segment.name), Expected::Refused(vec![place]))
            }
            Wound::LogTail => log_tail(dir, rng)?,
            Wound::ControlBlock => {
                let segments = segments(&dir.join("control/log"))?;
                let (segment, what, place) = flip_block(&segments[segments.len() - 1..], rng)?;
                (format!("a bit of control segment {segment} flipped, {what}"), Expected::Refused(vec![place]))
            }
        })
    }
}

/// A bit of a block. A sealed segment is only read when something is rebuilt: so its damage has to be found then.
fn log_block(dir: &Path, rng: &mut Rng) -> Result<(String, Expected)> {
    let segments = segments(&dir.join("log"))?;
    let hit = rng.below(segments.len());
    let (segment, what, place) = flip_block(&segments[hit..=hit], rng)?;
    let is_sealed = hit + 1 < segments.len();
    if is_sealed {
        fs::remove_dir_all(dir.join("store"))?;
    }
    let also = if is_sealed { " (sealed), and the store gone" } else { "" };
    Ok((format!("a bit of log segment {segment} flipped, {what}{also}"), Expected::Refused(vec![place])))
}

/// Flips a bit of any block but the last. Returns the segment, what was done, and how it must be named.
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

/// Garbage where the next block would begin.
fn log_tail(dir: &Path, rng: &mut Rng) -> Result<(String, Expected)> {
    let segments = segments(&dir.join("log"))?;
    let last = segments.last().ok_or_else(|| harness("a log without segments"))?;
    let file = OpenOptions::new().write(true).open(&last.path)?;
    let room = last.path.metadata()?.len() - last.end();
    let garbage: Vec<u8> = (0..(1 + rng.bits() % 100_000).min(room)).map(|_| rng.bits().to_le_bytes()[0]).collect();
    file.write_all_at(&garbage, last.end())?;
    Ok((format!("{} bytes of garbage behind the last block of the log", garbage.len()), Expected::Same))
}

fn cut(path: &Path, dir: &Path, rng: &mut Rng) -> Result<String> {
    let file = some_file(path, rng)?;
    let size = file.metadata()?.len();
    let left = rng.bits() % size;
    OpenOptions::new().write(true).open(&file)?.set_len(left)?;
    Ok(format!("{} ends after {left} of {size} bytes", shown(&file, dir)))
}

fn scramble(path: &Path, dir: &Path, rng: &mut Rng) -> Result<String> {
    let file = some_file(path, rng)?;
    let size = file.metadata()?.len();
    let flips = 1 + rng.below(8);
    let mut places = Vec::new();
    for _ in 0..flips {
        places.push(flip_bit(&file, (0, size), rng)?);
    }
    Ok(format!("bits of {} flipped, at {places:?} of {size}", shown(&file, dir)))
}

fn shown(file: &Path, dir: &Path) -> String {
    file.strip_prefix(dir).unwrap_or(file).display().to_string()
}

/// A file with something in it, the larger the likelier every other time.
fn some_file(dir: &Path, rng: &mut Rng) -> Result<PathBuf> {
    let mut files = Vec::new();
    list(dir, &mut files)?;
    let total: u64 = files.iter().map(|(_, size)| size).sum();
    if total == 0 {
        return Err(harness(format!("nothing in {}", dir.display())));
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
