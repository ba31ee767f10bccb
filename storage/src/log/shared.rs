//! The state that the writer of a log shares with its readers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use super::Position;
use super::segment::SegmentHeader;

/// State that the writer of a log shares with its readers.
#[derive(Debug)]
pub(super) struct LogState {
    pub(super) dir: PathBuf,
    /// Position of the last event that is on disk.
    durable: AtomicU64,
    /// Headers of all segments, in order. The last one is appended to.
    segments: Mutex<Vec<SegmentHeader>>,
    /// The positions after which nothing may be removed, each with its number of holds. Changed
    /// under the lock of `segments`.
    holds: Mutex<BTreeMap<Position, usize>>,
}

impl LogState {
    pub(super) fn new(dir: &Path, segments: Vec<SegmentHeader>, durable: Position) -> Self {
        let (durable, segments) = (AtomicU64::new(durable), Mutex::new(segments));
        LogState { dir: dir.to_path_buf(), durable, segments, holds: Mutex::default() }
    }

    pub(super) fn durable(&self) -> Position {
        self.durable.load(Ordering::Acquire)
    }

    pub(super) fn set_durable(&self, position: Position) {
        self.durable.store(position, Ordering::Release);
    }

    pub(super) fn push_segment(&self, header: SegmentHeader) {
        self.lock().push(header);
    }

    /// The durable position and the segments. Every durable event is in one of the segments.
    pub(super) fn durable_segments(&self) -> (Position, Vec<SegmentHeader>) {
        // The order matters.
        let durable = self.durable();
        (durable, self.lock().clone())
    }

    /// Keeps all present segments until the returned position is [released](Self::release).
    pub(super) fn hold(&self) -> Position {
        let segments = self.lock();
        let first = segments.first().map_or(1, |header| header.first);
        *self.holds().entry(first).or_default() += 1;
        first
    }

    /// Keeps the events after a position until the returned position is [released](Self::release).
    pub(super) fn hold_after(&self, position: Position) -> Position {
        let _segments = self.lock();
        *self.holds().entry(position + 1).or_default() += 1;
        position + 1
    }

    /// Ends a [hold](Self::hold).
    pub(super) fn release(&self, first: Position) {
        let mut holds = self.holds();
        match holds.get_mut(&first) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(holds.remove(&first)),
        }
    }

    pub(super) fn holds(&self) -> MutexGuard<'_, BTreeMap<Position, usize>> {
        self.holds.lock()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<SegmentHeader>> {
        self.segments.lock()
    }

    pub(super) fn first_position(&self) -> Position {
        self.lock().first().map_or(1, |header| header.first)
    }
}
