//! Reads a log while it is being appended to.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::cursor::{Cursor, Step};
use super::error::{Damage, LogError};
use super::hold::LogHold;
use super::index::SegmentIndex;
use super::recovery::remove_segment;
use super::segment::{SegmentHeader, segment_path};
use super::shared::LogState;
use super::{Position, Record, floor};
use crate::files::sync_dir;

/// A handle that reads a log, from any thread, also while it is appended to. It sees the events
/// that were durable when `read` was called. Cheap to clone; each `read` opens the files itself.
#[derive(Debug, Clone)]
pub struct LogReader {
    shared: Arc<LogState>,
}

/// The result of [`LogReader::verify_all`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Verified {
    /// Number of segments.
    pub segments: u64,
    /// Number of blocks, without gaps.
    pub blocks: u64,
    /// Number of events.
    pub events: u64,
    /// Positions that an earlier repair could not save.
    pub lost_positions: u64,
    /// Bytes of all headers and blocks.
    pub bytes: u64,
}

/// The end of a segment.
#[derive(Debug, Clone, Copy)]
struct Extent {
    /// The last position to read.
    last: Position,
    /// Chain at the segment's end, if it is sealed: the next segment records it.
    chain: Option<u128>,
}

impl LogReader {
    pub(super) fn new(shared: Arc<LogState>) -> Self {
        LogReader { shared }
    }

    /// Position of the oldest event (or of the next one, in an empty log). Earlier events were
    /// removed.
    pub fn first_position(&self) -> Position {
        self.shared.first_position()
    }

    /// Position of the last event on disk; in an empty log, the position before
    /// [`Self::first_position`].
    pub fn last_position(&self) -> Position {
        self.shared.durable()
    }

    /// Keeps the present segments from being removed.
    #[must_use]
    pub fn hold(&self) -> LogHold {
        LogHold::new(&self.shared)
    }

    /// Keeps the events after `position` from being removed.
    #[must_use]
    pub fn hold_after(&self, position: Position) -> LogHold {
        LogHold::after(&self.shared, position)
    }

    /// Passes each record of the wanted partitions to `visit`, in order of position, up to the end
    /// of the durable events at the call.
    ///
    /// `wanted` returns the position after which a partition is wanted, or `None`. A record is
    /// visited if its *last* event is after that position, so the first record may begin before it.
    /// `visit` ends the reading with [`ControlFlow::Break`]. Segments without wanted records are
    /// skipped without being read.
    ///
    /// # Errors
    /// [`LogError::Damaged`] names the first damaged place; records before it have been visited.
    /// [`LogError::Removed`] if segments were removed in the meantime, so that the rest would not
    /// follow the visited records. Segments removed before the first visit are skipped, as if
    /// `read` had been called later. [`LogError::Io`] if a file can't be read.
    pub fn read(
        &self,
        wanted: impl Fn(u16) -> Option<Position>,
        mut visit: impl FnMut(Record<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let mut scratch = Vec::new();
        let visited = Cell::new(false);
        let mut visit = |record: Record<'_>| {
            visited.set(true);
            visit(record)
        };
        for (header, extent) in self.extents() {
            if self.known_to_be_unwanted(&header, extent, &wanted) {
                continue;
            }
            match self.read_segment(&header, extent, &wanted, &mut visit, &mut scratch) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                // It was removed on purpose after the list was made.
                Err(LogError::Damaged { reason: Damage::Missing, .. }) if self.removed(&header) => {
                    if visited.get() {
                        return Err(LogError::Removed { segment: header.first });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads every durable block of every segment, and checks checksums, positions, the chain and
    /// the unused ends of sealed segments.
    ///
    /// # Errors
    /// Same as [`Self::read`].
    pub fn verify_all(&self) -> Result<Verified, LogError> {
        let mut verified = Verified::default();
        for (header, extent) in self.extents() {
            match self.verify_segment(&header, extent, &mut verified) {
                Err(LogError::Damaged { reason: Damage::Missing, .. }) if self.removed(&header) => {}
                result => result?,
            }
        }
        Ok(verified)
    }

    /// The segments with durable events.
    fn extents(&self) -> Vec<(SegmentHeader, Extent)> {
        let (durable, segments) = self.shared.durable_segments();
        let mut extents = Vec::with_capacity(segments.len());
        for (i, header) in segments.iter().enumerate().take_while(|(_, header)| header.first <= durable) {
            let extent = match segments.get(i + 1) {
                Some(next) => Extent { last: next.first - 1, chain: Some(next.previous_chain) },
                None => Extent { last: durable, chain: None },
            };
            extents.push((*header, extent));
        }
        extents
    }

    fn removed(&self, header: &SegmentHeader) -> bool {
        header.first < self.shared.first_position()
    }

    fn known_to_be_unwanted(&self, header: &SegmentHeader, extent: Extent, wanted: impl Fn(u16) -> Option<Position>) -> bool {
        extent.chain.is_some()
            && SegmentIndex::load(&self.shared.dir, header, extent.chain).is_some_and(|index| !index.holds_wanted(wanted))
    }

    fn open(&self, header: &SegmentHeader) -> Result<Cursor, LogError> {
        let (cursor, found) = Cursor::open(&self.shared.dir, header.first)?;
        if found == *header {
            Ok(cursor)
        } else {
            Err(LogError::Damaged { segment: header.first, offset: 0, reason: Damage::WrongHeader })
        }
    }

    fn read_segment(
        &self,
        header: &SegmentHeader,
        extent: Extent,
        wanted: impl Fn(u16) -> Option<Position>,
        visit: &mut impl FnMut(Record<'_>) -> ControlFlow<()>,
        scratch: &mut Vec<u8>,
    ) -> Result<ControlFlow<()>, LogError> {
        let mut cursor = self.open(header)?;
        let mut index = SegmentIndex::new(header);
        while cursor.next <= extent.last {
            let (segment, offset, chain) = (header.first, cursor.offset, cursor.chain);
            let damaged = |reason| LogError::Damaged { segment, offset, reason };
            let block = match cursor.step()? {
                Step::Block(block) => block,
                Step::End => return Err(damaged(Damage::EndsEarly)),
                Step::Bad(reason) => return Err(damaged(reason)),
            };
            index.add(&block, chain.extend(block.header.checksum, block.last()));
            let is_wanted = |partition, last| wanted(partition).is_some_and(|after| last > after);
            if !block.entries().any(|entry| is_wanted(entry.partition, entry.last())) {
                continue;
            }
            let payload = block.payload(scratch).map_err(damaged)?;
            for entry in block.entries().filter(|entry| is_wanted(entry.partition, entry.last())) {
                let record = Record {
                    partition: entry.partition,
                    first: entry.first,
                    count: entry.count,
                    payload: &payload[entry.start..entry.start + entry.length],
                };
                if visit(record).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        self.check_end(&cursor, extent)?;
        if extent.chain.is_some() && SegmentIndex::load(&self.shared.dir, header, extent.chain).is_none() {
            index.save(&self.shared.dir);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn verify_segment(&self, header: &SegmentHeader, extent: Extent, verified: &mut Verified) -> Result<(), LogError> {
        let mut cursor = self.open(header)?;
        let mut scratch = Vec::new();
        while cursor.next <= extent.last {
            let (segment, offset) = (header.first, cursor.offset);
            let damaged = |reason| LogError::Damaged { segment, offset, reason };
            match cursor.step()? {
                Step::Block(block) if block.is_gap() => verified.lost_positions += block.header.count,
                Step::Block(block) => {
                    block.payload(&mut scratch).map_err(damaged)?;
                    verified.blocks += 1;
                    verified.events += block.header.count;
                }
                Step::End => return Err(damaged(Damage::EndsEarly)),
                Step::Bad(reason) => return Err(damaged(reason)),
            }
        }
        self.check_end(&cursor, extent)?;
        if extent.chain.is_some() && cursor.inspect_tail()?.end_of_data > cursor.offset {
            return Err(cursor.damaged(Damage::Tail));
        }
        verified.segments += 1;
        verified.bytes += cursor.offset;
        Ok(())
    }

    /// Checks a segment that was read to its last position.
    fn check_end(&self, cursor: &Cursor, extent: Extent) -> Result<(), LogError> {
        if cursor.next != extent.last + 1 {
            return Err(cursor.damaged(Damage::Positions));
        }
        match extent.chain {
            Some(chain) if chain != cursor.chain.0 => Err(cursor.damaged(Damage::Chain)),
            _ => Ok(()),
        }
    }
}

/// A handle that removes old segments, from any thread, also while the log is appended to. Cheap to
/// clone.
#[derive(Debug, Clone)]
pub struct LogTrimmer {
    shared: Arc<LogState>,
}

/// The result of [`LogTrimmer::remove_before`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Removed {
    /// Number of segments that were removed.
    pub segments: usize,
    /// Disk space of their files, in bytes.
    pub bytes: u64,
    /// The new first position of the log.
    pub first_position: Position,
}

impl LogTrimmer {
    pub(super) fn new(shared: Arc<LogState>) -> Self {
        LogTrimmer { shared }
    }

    /// Removes the sealed segments that end before `position`. Keeps the segments of `position`, of
    /// the next append and of a [`LogHold`].
    ///
    /// # Errors
    /// [`LogError::Full`] or [`LogError::Io`] if the new beginning can't be recorded: then nothing
    /// is removed. If a file can't be removed afterwards, the next start removes it.
    pub fn remove_before(&self, position: Position) -> Result<Removed, LogError> {
        let dir = &self.shared.dir;
        // Locked throughout, so that two trimmers don't record their floors in the wrong order.
        let mut segments = self.shared.lock();
        let position = self.shared.holds().keys().next().map_or(position, |held| position.min(*held));
        let keep_from = segments.windows(2).take_while(|pair| pair[1].first <= position).count();
        let first_position = segments.get(keep_from).map_or(1, |header| header.first);
        if keep_from == 0 {
            return Ok(Removed { first_position, ..Removed::default() });
        }
        floor::write(dir, first_position)?;
        let gone: Vec<SegmentHeader> = segments.drain(..keep_from).collect();
        drop(segments);
        let mut bytes = 0;
        for header in &gone {
            bytes += std::fs::metadata(segment_path(dir, header.first)).map_or(0, |metadata| metadata.len());
            remove_segment(dir, header.first)?;
        }
        sync_dir(dir).map_err(|error| LogError::io("sync", dir, error))?;
        Ok(Removed { segments: gone.len(), bytes, first_position })
    }
}
