//! Reading recorded events.

use std::fmt::Debug;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::error::LogError;
use super::reader::LogReader;
use super::{Position, Record};

/// Identifies all that a log has of a partition up to a record: two logs that have other events there have other marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    /// The position.
    pub position: Position,
    /// A digest of the records.
    pub digest: u128,
    /// See [`ReadLog::resumed`].
    pub resumed: u64,
}

/// Returns the position after which events of a partition are wanted; `None`: none of it.
pub type WantedAfter<'w> = dyn Fn(u16) -> Option<Position> + 'w;

/// Receives records in order of position. It ends the reading with [`ControlFlow::Break`].
pub type RecordVisitor<'v> = dyn FnMut(Record<'_>) -> ControlFlow<()> + 'v;

/// Reads what [`Commit`](super::Commit) recorded, from any thread, also while more is recorded. Positions rise within a partition; what those of two
/// partitions say of each other is up to the log.
pub trait ReadLog: Debug + Send + Sync {
    /// The first position of `partition` that the log may have: all events before it, and none behind it, were removed.
    fn first_position(&self, partition: u16) -> Position;

    /// Position of the last event of `partition` that may be durable.
    fn last_position(&self, partition: u16) -> Position;

    /// Returns about how many events a read of `partition` after `position` passes over.
    fn events_after(&self, partition: u16, position: Position) -> u64;

    /// Returns the mark of a position of `partition` that was read or recorded a moment ago. `None`: it is not known without reading, or no part of this log can be lost
    /// while what was made of it is kept.
    fn mark(&self, _partition: u16, _position: Position) -> Option<LogMark> {
        None
    }

    /// Tells logs of `partition` apart that people had go on after records were lost: positions of one may stand for other events in the next one. 0 if they never had.
    fn resumed(&self, _partition: u16) -> u64 {
        0
    }

    /// Whether [`ReadLog::read`] visits the records of all partitions in the order of their positions, so that a reader knows when it is done.
    fn is_in_order(&self) -> bool;

    /// Passes each record of the wanted partitions to `visit`, in the order of its partition's positions, up to what was durable at the call. A record is
    /// visited if its *last* event lies after the wanted position, so the first record may begin before it.
    ///
    /// # Errors
    /// [`LogError`]: records before the failure have been visited.
    fn read(&self, wanted: &WantedAfter<'_>, visit: &mut RecordVisitor<'_>) -> Result<(), LogError>;
}

/// The positions of a log on this machine's disk count the events of all partitions.
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
}
