//! The recorded events for their readers: decoded, with their positions.
//!
//! All code that reads the past reads it here: replays at a start, rebuilds while serving, and
//! scans.

mod archives;
mod bases;
mod error;
mod first_bases;
mod log;
mod past;
mod sealed;

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_archive::{ArchiveError, BaseReader, GroupReader};
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::{Day, Event, FloorMove, Position, ProjectId, Window};
use headcount_storage::log::LogMark;

pub(crate) use archives::PartitionArchives;
pub(crate) use error::HistoryError;
pub(crate) use log::LoggedEvents;
pub(crate) use past::Past;
pub(crate) use sealed::SealedEvents;

/// Events with their positions, in order.
pub(crate) type Recorded = Vec<(Position, Box<Event>)>;

/// The events that a reader wants: of one partition, or of one project, with positions in a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// The partition.
    pub(crate) partition: u16,
    /// The project; `None` for all projects of the partition.
    pub(crate) project: Option<ProjectId>,
    /// The position after which events are wanted.
    pub(crate) after: Position,
    /// The last wanted position.
    pub(crate) until: Position,
    /// The days that suffice. Files and row groups of the archive without events on these days are
    /// skipped.
    pub(crate) days: Option<Window>,
}

impl Wanted {
    /// Selects all events of a partition after a position.
    pub(crate) fn partition(partition: u16, after: Position) -> Self {
        Self { partition, project: None, after, until: Position::MAX, days: None }
    }

    fn contains(&self, position: Position, project: ProjectId) -> bool {
        position > self.after && position <= self.until && self.project.is_none_or(|wanted| wanted == project)
    }
}

/// Events of one partition that were read together.
pub(crate) struct HistoryPiece {
    /// The partition.
    pub(crate) partition: u16,
    /// The wanted events. There may be none.
    pub(crate) events: Recorded,
    /// A floor that follows the events, with its position.
    pub(crate) floor: Option<(Position, FloorMove)>,
    /// The approximate number of decoded bytes.
    pub(crate) bytes: usize,
    /// The place where they were read.
    pub(crate) origin: PieceOrigin,
}

/// The place where a [`HistoryPiece`] was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceOrigin {
    /// The archive: events of one project, without duplicates. Other projects of the partition may
    /// follow with lower positions.
    Archive,
    /// The end of a partition's sealed events: everything wanted up to this position has been
    /// visited.
    EndOfArchive(Position),
    /// The log, in the order of the partition's positions. Includes dead letters and duplicates.
    Log,
}

/// A part of a project's recorded events.
pub(crate) enum HistoryPart<'p> {
    /// Sealed events, by column: row groups of a file, in order.
    Columns(Vec<SealedColumns<'p>>),
    /// Events of the log, in the form of [`History::read`].
    Events(HistoryPiece),
}

/// A row group of sealed events. Those with positions after `after`, up to `until`, are wanted.
#[derive(Clone, Copy)]
pub(crate) struct SealedColumns<'p> {
    /// The reader of its columns.
    pub(crate) reader: GroupReader<'p>,
    /// The position after which events are wanted.
    pub(crate) after: Position,
    /// The last wanted position.
    pub(crate) until: Position,
}

/// A receiver of the parts of a project's history. An error of reading a column ends it.
pub(crate) type PartVisitor<'v> = dyn FnMut(HistoryPart<'_>) -> Result<ControlFlow<()>, ArchiveError> + 'v;

/// A receiver of the parts of a project's history, with the latest positions first.
pub(crate) trait LatestVisitor {
    /// Whether a file with events from the first to the last of these days may have wanted events.
    fn wants(&self, first: Day, last: Day) -> bool;

    /// Takes a part. An error of reading a column ends the reading.
    fn visit(&mut self, part: HistoryPart<'_>) -> Result<ControlFlow<()>, ArchiveError>;
}

/// The bases of all projects: the saved states from which a replay continues, since earlier events
/// may have been removed. While they are held, no base is replaced, and no event is removed from
/// the archive.
pub(crate) trait Bases {
    /// The projects of a partition whose sealed events a replay after the position `after` reads.
    fn projects(&self, partition: u16, after: Position) -> Vec<ProjectId>;

    /// Opens the base of a project, if it has one.
    ///
    /// # Errors
    /// Returns [`ArchiveError::Damaged`] or [`ArchiveError::Io`].
    fn open(&self, project: ProjectId) -> Result<Option<BaseReader>, ArchiveError>;

    /// The keys erased from a project's history; `None` if there are none.
    fn erased(&self, project: ProjectId) -> Option<Arc<ErasedKeys>>;

    /// Records whether the base `name` could be read, and returns the result.
    ///
    /// # Errors
    /// The error of `read`.
    fn note(&self, project: ProjectId, name: &str, read: Result<(), ArchiveError>) -> Result<(), ArchiveError>;
}

/// The recorded events of all partitions.
pub(crate) trait History: Send + Sync {
    /// Returns the position of the last durable event that `partition` can have.
    fn last_position(&self, partition: u16) -> Position;

    /// Returns the approximate number of events that a replay of `partition` after `position`
    /// passes.
    fn events_after(&self, partition: u16, position: Position) -> u64;

    /// Returns the mark of a position of `partition`, as
    /// [`ReadLog::mark`](headcount_storage::log::ReadLog::mark) does.
    fn mark(&self, _partition: u16, _position: Position) -> Option<LogMark> {
        None
    }

    /// Passes the wanted events to `visit`, up to the last durable one at the call. Each partition
    /// may be wanted at most once.
    ///
    /// The events of one project are visited in order: first the sealed ones, then those of the
    /// log. In a read of a whole partition, sealed events in their project's base are left out.
    /// `visit` ends the reading with [`ControlFlow::Break`].
    ///
    /// # Errors
    /// Returns a [`HistoryError`]: pieces before the failure have been visited.
    fn read(&self, wanted: &[Wanted], visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>) -> Result<(), HistoryError>;

    /// Returns the bases of projects, which don't change while the result exists. A replay needs
    /// them from before its first event to its end.
    fn bases(&self) -> Box<dyn Bases + '_>;

    /// Passes the wanted events of one project to `visit`, with sealed events by column.
    ///
    /// # Errors
    /// Returns the same errors as [`History::read`].
    fn read_columns(&self, project: ProjectId, wanted: &Wanted, visit: &mut PartVisitor<'_>) -> Result<(), HistoryError>;

    /// Passes the wanted events of one project to `visitor`: first the log in order, then the
    /// archive by column, the last file first.
    ///
    /// # Errors
    /// Returns the same errors as [`History::read`].
    fn read_latest(&self, project: ProjectId, wanted: &Wanted, visitor: &mut dyn LatestVisitor) -> Result<(), HistoryError>;
}
