//! Opens a log: checks the chain of segments, and cuts off an incomplete last block.
//!
//! One writer appends to a log, and waits for each block to be on disk before the next. So a crash
//! can leave exactly one incomplete block, after all others, in the last segment. Only such a block
//! is cut off; it was never acknowledged. It can't be distinguished from a last block that was
//! acknowledged and damaged afterwards. Such a block is cut off too, and `Recovery::cut_bytes` is
//! the only trace of it.
//!
//! Everything else is damage: an error that names the place. The blocks of sealed segments are not
//! read here, so the time of a start does not depend on the amount of data; readers check them.

use std::path::Path;

use super::Position;
use super::cursor::{Cursor, Step};
use super::durable::write_zeroes;
use super::error::{Damage, LogError};
use super::floor;
use super::index::{SegmentIndex, index_path};
use super::segment::{Chain, SegmentHeader, parse_segment_name, segment_path};
use crate::files::{self, File, make_private};

/// The result of opening a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Recovery {
    /// Bytes of an incomplete last block that were cut off; 0 after a clean stop.
    pub cut_bytes: u64,
    /// Position of the oldest event.
    pub first_position: Position,
    /// Position of the last event; `first_position - 1` in an empty log.
    pub last_position: Position,
    /// Number of segments.
    pub segments: usize,
    /// The positions that a repair could not save. Always empty without `LogOptions::repair`.
    pub lost: Vec<Lost>,
}

/// A range of positions that a repair could not save. They are never read, and never assigned
/// again, except in a range with an unknown end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// First position of the segment, which is also its file name.
    pub segment: Position,
    /// Byte in the segment's file where the damage begins.
    pub offset: u64,
    /// First lost position.
    pub first: Position,
    /// Last lost position; `None` at the end of the log, where the number is unknown. New events
    /// take these positions again, so everything derived from the log beyond `first` must be
    /// rebuilt.
    pub last: Option<Position>,
}

/// The segment that is appended to.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) header: SegmentHeader,
    /// Offset of the next block.
    pub(super) offset: u64,
    /// Size of the file.
    pub(super) file_bytes: u64,
    pub(super) chain: Chain,
    pub(super) index: SegmentIndex,
}

/// A recovered log.
#[derive(Debug)]
pub(super) struct Recovered {
    /// Headers of all segments, in order; the last belongs to `active`.
    pub(super) headers: Vec<SegmentHeader>,
    pub(super) active: Active,
    pub(super) cut_bytes: u64,
}

/// Checks the log in `dir`; `None` if none exists.
pub(super) fn recover(dir: &Path) -> Result<Option<Recovered>, LogError> {
    let floor = floor::read(dir)?;
    let names = list_segments(dir, floor.unwrap_or(0))?;
    let Some(&last) = names.last() else {
        return match floor {
            Some(floor) => Err(LogError::Damaged { segment: floor, offset: 0, reason: Damage::Missing }),
            None => Ok(None),
        };
    };
    let headers = names.iter().map(|&first| Ok(Cursor::open(dir, first)?.1)).collect::<Result<Vec<_>, LogError>>()?;
    check_order(&headers, floor.unwrap_or(1))?;
    let (active, cut_bytes) = recover_last(dir, last)?;
    if SegmentIndex::load(dir, &active.header, None).is_some() {
        // An index is written after the next segment was created, so another segment existed.
        return Err(LogError::Damaged { segment: active.index.last + 1, offset: 0, reason: Damage::Missing });
    }
    Ok(Some(Recovered { headers, active, cut_bytes }))
}

/// Names of the segments, in order. Removes incomplete files after a crash, and segments below the
/// floor whose removal was interrupted.
pub(super) fn list_segments(dir: &Path, floor: Position) -> Result<Vec<Position>, LogError> {
    let failed = |error| LogError::io("list", dir, error);
    let mut names = Vec::new();
    for path in files::list(dir).map_err(failed)? {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        match parse_segment_name(name) {
            Some(first) if first >= floor => {
                make_private(&path);
                names.push(first);
            }
            Some(first) => {
                remove_segment(dir, first)?;
            }
            None if name.ends_with(".tmp") => {
                files::remove_file(&path).map_err(|error| LogError::io("remove", &path, error))?;
            }
            None => {}
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Removes a segment and its index.
pub(super) fn remove_segment(dir: &Path, first: Position) -> Result<(), LogError> {
    for path in [index_path(dir, first), segment_path(dir, first)] {
        files::remove_if_there(&path).map_err(|error| LogError::io("remove", &path, error))?;
    }
    Ok(())
}

fn check_order(headers: &[SegmentHeader], floor: Position) -> Result<(), LogError> {
    let damaged = |segment, reason| Err(LogError::Damaged { segment, offset: 0, reason });
    if let Some(first) = headers.first()
        && first.first != floor
    {
        return damaged(floor, Damage::Missing);
    }
    for pair in headers.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        if after.previous_first > before.first {
            return damaged(after.previous_first, Damage::Missing);
        }
        if after.previous_first != before.first {
            return damaged(after.first, Damage::Order);
        }
    }
    Ok(())
}

/// Reads the whole last segment, and cuts off the block that was being written when the process
/// ended.
fn recover_last(dir: &Path, first: Position) -> Result<(Active, u64), LogError> {
    let (mut cursor, header) = Cursor::open(dir, first)?;
    let mut index = SegmentIndex::new(&header);
    let reason = loop {
        let chain_before = cursor.chain;
        match cursor.step()? {
            Step::Block(block) => index.add(&block, chain_before.extend(block.header.checksum, block.last())),
            Step::End => break Damage::Marker,
            Step::Bad(reason) => break reason,
        }
    };
    if !reason.could_be_torn() {
        return Err(cursor.damaged(reason));
    }
    let tail = cursor.inspect_tail()?;
    if !tail.later_markers.is_empty() {
        // The log began another block after this one, so this one was safely on disk.
        return Err(cursor.damaged(reason));
    }
    cut(dir, first, cursor.offset, tail.end_of_data)?;
    let active = Active { header, offset: cursor.offset, file_bytes: cursor.file_bytes, chain: cursor.chain, index };
    Ok((active, tail.end_of_data - cursor.offset))
}

/// Overwrites the rest of an incomplete block with zeroes, so that it can never be read again.
pub(super) fn cut(dir: &Path, first: Position, from: u64, to: u64) -> Result<(), LogError> {
    if to <= from {
        return Ok(());
    }
    let path = segment_path(dir, first);
    File::edit(&path)
        .and_then(|file| write_zeroes(&file, from, to).and_then(|()| file.sync_data()))
        .map_err(|error| LogError::io("cut the tail of", &path, error))
}
