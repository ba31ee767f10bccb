//! Reads recorded events from the log.

use std::ops::ControlFlow;

use headcount_domain::intake::event::Position;
use headcount_storage::log::{LogReader, Record};

use super::{History, HistoryError, Piece, Wanted};
use crate::event_codec;

/// The events of the log.
pub(crate) struct LogHistory {
    reader: LogReader,
}

impl LogHistory {
    pub(crate) fn new(reader: LogReader) -> Self {
        Self { reader }
    }
}

impl History for LogHistory {
    fn last_position(&self, _: u16) -> Position {
        self.reader.last_position()
    }

    fn read(&self, wanted: &[Wanted], visit: &mut dyn FnMut(Piece) -> ControlFlow<()>) -> Result<(), HistoryError> {
        let of = |partition: u16| wanted.iter().find(|wanted| wanted.partition == partition);
        let until = wanted.iter().map(|wanted| wanted.until).max().unwrap_or(0);
        let mut result = Ok(());
        let visit = |record: Record<'_>| {
            if record.first > until {
                return ControlFlow::Break(());
            }
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

fn piece(record: &Record<'_>, wanted: &Wanted) -> Result<Piece, HistoryError> {
    let events = event_codec::decode(record.payload)?;
    let events = (record.first..).zip(events).filter(|(position, event)| wanted.contains(*position, event)).collect();
    Ok(Piece { partition: record.partition, events, bytes: record.payload.len() })
}
