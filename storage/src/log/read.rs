//! Reading recorded events.

use std::fmt::Debug;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::error::LogError;
use super::hold::LogHold;
use super::reader::LogReader;
use super::{Position, Record};

/// Identifies the contents of a log up to a record of a partition. Logs with different events there
/// have different marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    /// The position.
    pub position: Position,
    /// A digest of the records.
    pub digest: u128,
    /// See [`ReadLog::resumed`].
    pub resumed: u64,
}

/// Returns the position after which a partition's events are wanted; `None` for none of them.
pub type WantedAfter<'w> = dyn Fn(u16) -> Option<Position> + 'w;

/// Receives records in order of position. [`ControlFlow::Break`] ends the reading.
pub type RecordVisitor<'v> = dyn FnMut(Record<'_>) -> ControlFlow<()> + 'v;

/// Reads the events that [`Commit`](super::Commit) recorded, from any thread, also during
/// recording. Positions rise within a partition. The log defines whether positions of different
/// partitions are comparable.
pub trait ReadLog: Debug + Send + Sync {
    /// The first position of `partition` that the log may have. All earlier events were removed,
    /// and no later ones.
    fn first_position(&self, partition: u16) -> Position;

    /// Position of the last event of `partition` that may be durable.
    fn last_position(&self, partition: u16) -> Position;

    /// Returns the approximate number of events that a read of `partition` after `position` visits
    /// or skips.
    fn events_after(&self, partition: u16, position: Position) -> u64;

    /// Returns the mark of a position of `partition` that was just read or recorded. `None` if it
    /// can't be known without reading, or if this log never loses a part while its derived data
    /// survives.
    fn mark(&self, _partition: u16, _position: Position) -> Option<LogMark> {
        None
    }

    /// Distinguishes the logs of `partition` before and after operators resumed it without lost
    /// records. A position may then stand for another event. 0 if it was never resumed.
    fn resumed(&self, _partition: u16) -> u64 {
        0
    }

    /// Whether [`ReadLog::read`] visits the records of all partitions in the order of their
    /// positions, which tells a reader when it is done.
    fn is_in_order(&self) -> bool;

    /// Passes each record of the wanted partitions to `visit`, in the order of its partition's
    /// positions, up to the end of the durable events at the call. A record is visited if its
    /// *last* event is after the wanted position, so the first record may begin before it.
    ///
    /// # Errors
    /// [`LogError`]: records before the failure have been visited.
    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), LogError>;

    /// Keeps the events after a position from being removed. Returns `None` if the log has no files
    /// on this machine.
    fn hold_after(&self, _position: Position) -> Option<LogHold> {
        None
    }

    /// Checks every file of the log. Returns `false` if the log has no files on this machine:
    /// reading its events is the only check.
    ///
    /// # Errors
    /// [`LogError`]: a file is damaged, or can't be read.
    fn check_files(&self) -> Result<bool, LogError> {
        Ok(false)
    }
}

/// In a log on this machine's disk, positions count the events of all partitions.
impl ReadLog for LogReader {
    fn first_position(&self, _: u16) -> Position {
        Self::first_position(self)
    }

    fn last_position(&self, _: u16) -> Position {
        Self::last_position(self)
    }

    fn events_after(&self, _: u16, position: Position) -> u64 {
        Self::last_position(self).saturating_sub(position)
    }

    fn is_in_order(&self) -> bool {
        true
    }

    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), LogError> {
        Self::read(self, wanted, visit)
    }

    fn hold_after(&self, position: Position) -> Option<LogHold> {
        Some(Self::hold_after(self, position))
    }

    fn check_files(&self) -> Result<bool, LogError> {
        self.verify_all().map(|_| true)
    }
}
