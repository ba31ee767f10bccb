//! Reads recorded events from the log.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_domain::{Position, ProjectId};
use headcount_storage::background;
use headcount_storage::log::{LogError, LogHold, LogMark, ReadLog, Record};

use super::{HistoryError, HistoryPiece, PieceOrigin, Wanted};
use crate::event_codec::{self, LogRecord};

/// The events of the log.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvents {
    log: Arc<dyn ReadLog>,
}

impl LoggedEvents {
    pub(crate) fn new(log: impl ReadLog + 'static) -> Self {
        Self::of(Arc::new(log))
    }

    pub(crate) fn of(log: Arc<dyn ReadLog>) -> Self {
        Self { log }
    }

    /// The first position of a partition in the log, or the next one if the log has none.
    pub(crate) fn first_position(&self, partition: u16) -> Position {
        self.log.first_position(partition)
    }

    /// The last durable position that a partition can have.
    pub(crate) fn last_position(&self, partition: u16) -> Position {
        self.log.last_position(partition)
    }

    /// The approximate number of events that a read of a partition after a position passes.
    pub(crate) fn events_after(&self, partition: u16, position: Position) -> u64 {
        self.log.events_after(partition, position)
    }

    /// See [`ReadLog::mark`].
    pub(crate) fn mark(&self, partition: u16, position: Position) -> Option<LogMark> {
        self.log.mark(partition, position)
    }

    /// See [`ReadLog::resumed`].
    pub(crate) fn resumed(&self, partition: u16) -> u64 {
        self.log.resumed(partition)
    }

    /// See [`ReadLog::is_in_order`].
    pub(crate) fn is_in_order(&self) -> bool {
        self.log.is_in_order()
    }

    /// See [`ReadLog::hold_after`].
    pub(crate) fn hold_after(&self, position: Position) -> Option<LogHold> {
        self.log.hold_after(position)
    }

    /// Whether the log has files on this machine, which lose events as soon as they are sealed.
    pub(crate) fn has_files(&self) -> bool {
        self.hold_after(0).is_some()
    }

    /// See [`ReadLog::check_files`].
    pub(crate) fn check_files(&self) -> Result<bool, LogError> {
        self.log.check_files()
    }

    /// Passes the wanted events to `visit`, in the order of their partition's positions.
    pub(crate) fn read(
        &self,
        wanted: &[Wanted],
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        let of = |partition: u16| wanted.iter().find(|wanted| wanted.partition == partition);
        let is_in_order = self.log.is_in_order();
        let until = wanted.iter().map(|wanted| wanted.until).max().unwrap_or(0);
        let mut unfinished: BTreeSet<u16> = wanted.iter().map(|wanted| wanted.partition).collect();
        let mut result = Ok(());
        let mut visit = |record: Record<'_>| {
            if is_in_order && record.first > until {
                return ControlFlow::Break(());
            }
            background::give_way();
            let Some(wanted) = of(record.partition) else { return ControlFlow::Continue(()) };
            if record.first > wanted.until {
                unfinished.remove(&record.partition);
                return if unfinished.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            match piece(&record, wanted) {
                Ok(piece) => visit(piece),
                Err(error) => {
                    result = Err(error);
                    ControlFlow::Break(())
                }
            }
        };
        self.log.read(&|partition| of(partition).map(|wanted| wanted.after), &mut visit)?;
        result
    }
}

fn piece(record: &Record<'_>, wanted: &Wanted) -> Result<HistoryPiece, HistoryError> {
    let contains = |position: Position, project: ProjectId| wanted.contains(position, project);
    let (mut events, mut floor) = (Vec::new(), None);
    match event_codec::decode(record.payload)? {
        LogRecord::Events(all) => {
            events = (record.first..).zip(all).filter(|(position, event)| contains(*position, event.project)).collect();
        }
        LogRecord::Floor(one) => floor = Some((record.first, one)).filter(|(position, one)| contains(*position, one.project)),
    }
    Ok(HistoryPiece { partition: record.partition, events, floor, bytes: record.payload.len(), origin: PieceOrigin::Log })
}
