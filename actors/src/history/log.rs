//! Reads recorded events from the log.

use std::ops::ControlFlow;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::background;
use headcount_storage::log::{LogReader, Record};

use super::{HistoryError, HistoryPiece, PieceOrigin, Wanted};
use crate::event_codec::{self, LogRecord};

/// The events of the log.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvents {
    reader: LogReader,
}

impl LoggedEvents {
    pub(crate) fn new(reader: LogReader) -> Self {
        Self { reader }
    }

    /// The first position that the log has, or will have next.
    pub(crate) fn first_position(&self) -> Position {
        self.reader.first_position()
    }

    pub(crate) fn last_position(&self) -> Position {
        self.reader.last_position()
    }

    /// Passes the wanted events to `visit`, in order of position.
    pub(crate) fn read(
        &self,
        wanted: &[Wanted],
        visit: &mut dyn FnMut(HistoryPiece) -> ControlFlow<()>,
    ) -> Result<(), HistoryError> {
        let of = |partition: u16| wanted.iter().find(|wanted| wanted.partition == partition);
        let until = wanted.iter().map(|wanted| wanted.until).max().unwrap_or(0);
        let mut result = Ok(());
        let visit = |record: Record<'_>| {
            if record.first > until {
                return ControlFlow::Break(());
            }
            background::give_way();
            let Some(wanted) = of(record.partition) else { return ControlFlow::Continue(()) };
            match piece(&record, wanted) {
                Ok(piece) => visit(piece),
                Err(error) => {
                    result = Err(error);
                    ControlFlow::Break(())
                }
            }
        };
        self.reader.read(|partition| of(partition).map(|wanted| wanted.after), visit)?;
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
