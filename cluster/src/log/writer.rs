//! Writing to the log of a partition.

use std::ops::ControlFlow;
use std::sync::Arc;

use headcount_storage::log::Position;

use super::append::Appender;
use super::audit::AuditTiming;
use super::message::{Content, Entry, Message};
use super::reader::LogReader;
use super::waiting::AppendFigures;
use super::{LogEnd, LogError, MessageError, position};
use crate::connection::Connection;
use crate::stream::StreamName;

/// How much is gathered in a message; a single submission may be larger.
const MAX_GATHERED_BYTES: usize = 1 << 20;

/// The owner of a partition, which writes to its log.
#[derive(Debug)]
pub struct LogWriter {
    appender: Appender,
    epoch: u64,
    end: LogEnd,
}

impl LogWriter {
    /// Takes the partition over for `epoch`: reads what is after `end`, passing each message with the end that it is to `visit`, and begins the epoch.
    ///
    /// It sends its message until it is recorded or can't be; to end that, drop the future. What was visited stays read, but the epoch may have begun: go on with a later
    /// one. The former owner must have stopped, except for a message under way: one that keeps writing stays one message ahead, and this never returns.
    ///
    /// # Errors
    /// [`LogError`]: [`LogError::Fenced`] if the epoch is not later than all others, [`LogError::Broken`] and [`LogError::Missing`] also if the stream does not
    /// have the message that `end` is.
    pub async fn take_over(
        connection: &Connection,
        name: &StreamName,
        epoch: u64,
        end: LogEnd,
        visit: &mut impl FnMut(LogEnd, Message),
    ) -> Result<Self, LogError> {
        let appender = Appender::open(connection, name).await?;
        appender.reader().confirm(end).await?;
        let mut writer = Self { appender, epoch, end };
        loop {
            let mut visit_all = |end, message| {
                visit(end, message);
                ControlFlow::Continue(())
            };
            writer.end = writer.appender.reader().read(writer.end, &mut visit_all).await?;
            if writer.end.epoch >= epoch {
                return Err(LogError::Fenced { by: writer.end.epoch });
            }
            #[cfg(feature = "fault-injection")]
            if crate::fault_injection::Mistake::NoEpochRecord.is_made() {
                return Ok(writer);
            }
            match writer.record(Content::Epoch).await {
                // More was written than the brokers said at first: read on.
                Err(LogError::Fenced { by }) if by < epoch => {}
                begun => return begun.map(|_| writer),
            }
        }
    }

    /// Records the entries as one message. Returns its sequence, once a majority of brokers has it on disk.
    ///
    /// It sends the message until it is recorded or can't be. If the future is dropped, it may or may not be recorded, and the writer must not be used again:
    /// take the partition over with a later epoch, to find out.
    ///
    /// # Errors
    /// [`LogError`]. After [`LogError::Broken`] and [`LogError::Missing`], it may or may not be recorded; after all others, it is not, and never will be. After these two and
    /// [`LogError::Fenced`], the writer must not be used again.
    pub async fn append(&mut self, entries: Vec<Entry>) -> Result<u64, LogError> {
        let events = entries.iter().map(|entry| u64::from(entry.count)).sum();
        match self.record(Content::Events(entries)).await {
            Ok(sequence) => {
                self.appender.reader().appended(sequence, events);
                Ok(sequence)
            }
            // Only this writer may write in this epoch, and nobody in one before.
            Err(LogError::Fenced { by }) if by <= self.epoch => {
                Err(self.appender.reader().broken(self.end.sequence + 1, MessageError::Unchained))
            }
            recorded => recorded,
        }
    }

    /// Returns a reader that knows what this writer has recorded.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        self.appender.reader().clone()
    }

    /// Returns what the brokers no longer have of what they confirmed to this writer, or had before. `Ok`: nothing, or nobody knows.
    pub(super) async fn audit(&self, timing: AuditTiming) -> Result<(), LogError> {
        self.appender.reader().audit(self.end, timing).await
    }

    pub(super) fn figures(&self) -> &Arc<AppendFigures> {
        self.appender.figures()
    }

    /// Returns the last position that a recorded event can have.
    #[must_use]
    pub fn last_position(&self) -> Position {
        position::last_of(self.end.sequence)
    }

    /// Returns how many bytes of entries to gather in a message.
    pub(super) fn gathered_bytes(&self) -> usize {
        // Those that don't compress, and many small ones, become a little larger.
        MAX_GATHERED_BYTES.min(self.appender.limit() / 10 * 9)
    }

    async fn record(&mut self, content: Content) -> Result<u64, LogError> {
        let (bytes, chain) = Message { epoch: self.epoch, content }.encode(&self.appender.written(), self.end.chain)?;
        // It is sent until its outcome is known, or the future is dropped.
        let sequence = self.appender.append(self.end, bytes, &mut false).await?;
        self.end = LogEnd { sequence, chain, epoch: self.epoch };
        self.appender.reader().note_end(self.end);
        Ok(sequence)
    }
}
