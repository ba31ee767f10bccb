//! Saves the intact parts of a damaged log.
//!
//! A repair reads every block. It replaces lost blocks by a *gap*: a block without events that
//! takes the lost positions, so later blocks keep theirs. A segment with a damaged header can't be
//! read, since its salt is lost: it is renamed to `*.damaged`, and its positions become a gap at
//! the end of the segment before. Then the chain is rewritten. An interrupted repair can be
//! repeated. A repair overwrites the damaged bytes, so copy the directory first to inspect the
//! damage later.

use std::path::Path;

use super::Position;
use super::block::{BLOCK_HEADER, Encoder, align};
use super::cursor::{Cursor, Step, Tail};
use super::durable::write_zeroes;
use super::error::{Damage, LogError};
use super::floor;
use super::index::{SegmentIndex, index_path};
use super::recovery::{Lost, cut, list_segments};
use super::segment::{Chain, SegmentHeader, segment_path};
use crate::files::{self, File, sync_dir};

/// Repairs the log in `dir`, so that `recover` finds no damage. Returns the lost positions.
pub(super) fn repair(dir: &Path) -> Result<Vec<Lost>, LogError> {
    let mut lost = Vec::new();
    let recorded_floor = match floor::read(dir) {
        Ok(floor) => floor,
        Err(LogError::Damaged { reason: Damage::Floor, .. }) => None,
        Err(error) => return Err(error),
    };
    let names = keep_readable(dir, list_segments(dir, recorded_floor.unwrap_or(0))?, &mut lost)?;
    let Some(&first) = names.first() else {
        return repair_empty(dir, recorded_floor, lost);
    };
    let floor = recorded_floor.unwrap_or(1);
    if first > floor {
        lost.push(Lost { segment: floor, offset: 0, first: floor, last: Some(first - 1) });
    }
    if recorded_floor != Some(first) {
        floor::write(dir, first)?;
    }
    let mut previous: Option<(Position, Chain)> = None;
    for (i, &first) in names.iter().enumerate() {
        if let Some((previous_first, chain)) = previous {
            rewrite_header(dir, first, previous_first, chain)?;
        }
        let chain = repair_segment(dir, first, names.get(i + 1).copied(), &mut lost)?;
        previous = Some((first, chain));
    }
    for range in &lost {
        tracing::warn!(
            segment = range.segment, offset = range.offset, first = range.first, last = ?range.last,
            "log repaired: positions lost"
        );
    }
    Ok(lost)
}

/// No segment is left: the log starts empty.
fn repair_empty(dir: &Path, floor: Option<Position>, mut lost: Vec<Lost>) -> Result<Vec<Lost>, LogError> {
    if let Some(floor) = floor {
        if lost.is_empty() {
            lost.push(Lost { segment: floor, offset: 0, first: floor, last: None });
        }
        remove_if_there(&dir.join("floor"))?;
    }
    Ok(lost)
}

/// Sets aside segments with a damaged header. The repair of the segment before reports the
/// positions of all but the last of them.
fn keep_readable(dir: &Path, names: Vec<Position>, lost: &mut Vec<Lost>) -> Result<Vec<Position>, LogError> {
    let mut kept: Vec<Position> = Vec::new();
    let mut lost_at_the_end = None;
    for first in names {
        match Cursor::open(dir, first) {
            Ok(_) => {
                kept.push(first);
                lost_at_the_end = None;
            }
            Err(LogError::Damaged { .. }) => {
                let path = segment_path(dir, first);
                files::rename(&path, &path.with_extension("seg.damaged"))
                    .and_then(|()| sync_dir(dir))
                    .map_err(|error| LogError::io("set aside", &path, error))?;
                remove_if_there(&index_path(dir, first))?;
                lost_at_the_end.get_or_insert(first);
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(first) = lost_at_the_end {
        lost.push(Lost { segment: first, offset: 0, first, last: None });
    }
    Ok(kept)
}

/// Links the segment to the current state of the one before it.
fn rewrite_header(dir: &Path, first: Position, previous_first: Position, chain: Chain) -> Result<(), LogError> {
    let (_, header) = Cursor::open(dir, first)?;
    let wanted = SegmentHeader { previous_first, previous_chain: chain.0, ..header };
    if wanted == header {
        return Ok(());
    }
    let path = segment_path(dir, first);
    open_for_repair(&path)?
        .write_all_at(&wanted.encode(), 0)
        .map_err(|error| LogError::io("rewrite the header of", &path, error))?;
    sync(&path)
}

/// Replaces unreadable parts of one segment by gaps. Returns the chain at its end. `next_segment`
/// is the first position of the next segment.
fn repair_segment(dir: &Path, first: Position, next_segment: Option<Position>, lost: &mut Vec<Lost>) -> Result<Chain, LogError> {
    let (mut cursor, header) = Cursor::open(dir, first)?;
    loop {
        let bad = match cursor.step()? {
            Step::Block(_) => continue,
            Step::End => None,
            Step::Bad(reason) => Some(reason),
        };
        let tail = cursor.inspect_tail()?;
        if next_segment == Some(cursor.next) && tail.later_markers.is_empty() {
            // Complete; the bytes after it are not a block.
            cut(dir, first, cursor.offset, tail.end_of_data)?;
            break;
        }
        let range = match (next_intact(&cursor, &tail)?, next_segment) {
            (Some((offset, position)), _) => Gap { until: Some(offset), next: position },
            (None, Some(next)) => Gap { until: None, next },
            (None, None) => {
                end_of_log(dir, first, &cursor, &tail, bad, lost)?;
                break;
            }
        };
        if range.next > cursor.next {
            lost.push(Lost { segment: first, offset: cursor.offset, first: cursor.next, last: Some(range.next - 1) });
        }
        write_gap(dir, &header, &mut cursor, &range)?;
        if range.until.is_none() {
            break;
        }
    }
    if next_segment.is_some_and(|next| next != cursor.next) {
        return Err(cursor.damaged(Damage::Positions));
    }
    if next_segment.is_none() {
        report_missing_successor(dir, &header, cursor.next, lost);
        remove_if_there(&index_path(dir, first))?;
    }
    Ok(cursor.chain)
}

/// An index is written after the next segment was created. So if the last segment has one, a later
/// segment is missing.
fn report_missing_successor(dir: &Path, header: &SegmentHeader, next: Position, lost: &mut Vec<Lost>) {
    let reported = lost.iter().any(|range| range.last.is_none());
    if !reported && SegmentIndex::load(dir, header, None).is_some() {
        lost.push(Lost { segment: next, offset: 0, first: next, last: None });
    }
}

/// A range to replace: its end in bytes (`None` for the end of the segment), and the position that
/// follows it.
struct Gap {
    until: Option<u64>,
    next: Position,
}

/// The next intact block with a position that is not smaller: its offset and first position.
fn next_intact(cursor: &Cursor, tail: &Tail) -> Result<Option<(u64, Position)>, LogError> {
    for &offset in &tail.later_markers {
        if offset < cursor.offset + BLOCK_HEADER as u64 {
            continue;
        }
        if let Some(position) = cursor.intact_block_at(offset)?
            && position >= cursor.next
        {
            return Ok(Some((offset, position)));
        }
    }
    Ok(None)
}

/// Nothing after the cursor is readable, and no segment follows: the log ends here.
fn end_of_log(
    dir: &Path,
    first: Position,
    cursor: &Cursor,
    tail: &Tail,
    bad: Option<Damage>,
    lost: &mut Vec<Lost>,
) -> Result<(), LogError> {
    let torn = bad.is_none_or(|reason| reason.could_be_torn());
    if tail.later_markers.is_empty() && torn {
        // Recovery cuts it off and reports it.
        return Ok(());
    }
    lost.push(Lost { segment: first, offset: cursor.offset, first: cursor.next, last: None });
    cut(dir, first, cursor.offset, tail.end_of_data)
}

fn write_gap(dir: &Path, header: &SegmentHeader, cursor: &mut Cursor, gap: &Gap) -> Result<(), LogError> {
    let path = segment_path(dir, header.first);
    let failed = |error| LogError::io("write a gap to", &path, error);
    let file = open_for_repair(&path)?;
    let bytes = match gap.until {
        Some(until) => until - cursor.offset,
        None => BLOCK_HEADER as u64,
    };
    let mut encoder = Encoder::default();
    encoder.encode_gap(usize::try_from(bytes).unwrap_or(BLOCK_HEADER), cursor.next, gap.next - cursor.next);
    let (block, checksum) = encoder.place(header.salt, cursor.offset);
    file.write_all_at(block, cursor.offset).map_err(failed)?;
    if gap.until.is_none() {
        write_zeroes(&file, cursor.offset + bytes, align(cursor.file_bytes)).map_err(failed)?;
    }
    cursor.pass(bytes, gap.next, checksum);
    sync(&path)
}

fn open_for_repair(path: &Path) -> Result<File, LogError> {
    File::edit(path).map_err(|error| LogError::io("open", path, error))
}

fn sync(path: &Path) -> Result<(), LogError> {
    open_for_repair(path)?.sync_all().map_err(|error| LogError::io("sync", path, error))
}

fn remove_if_there(path: &Path) -> Result<(), LogError> {
    files::remove_if_there(path).map_err(|error| LogError::io("remove", path, error))
}
