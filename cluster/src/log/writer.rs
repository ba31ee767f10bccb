//! Writes to the log of a partition.

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

/// The size up to which submissions are gathered in a message. A single submission may be larger.
const MAX_GATHERED_BYTES: usize = 1 << 20;

/// The owner of a partition. It writes the partition's log.
#[derive(Debug)]
pub struct LogWriter {
    appender: Appender,
    epoch: u64,
    end: LogEnd,
}

impl LogWriter {
    /// Takes the partition over for `epoch`: reads the messages after `end`, passes each one with
    /// its end to `visit`, and begins the epoch.
    ///
    /// Sends the epoch message until it is recorded or can't be. Drop the future to end that. The
    /// visited messages stay read, but the epoch may have begun, so continue with a later one. The
    /// former owner must have stopped, except for a message in flight: if it keeps writing, it
    /// stays one message ahead, and this never returns.
    ///
    /// # Errors
    /// Returns a [`LogError`]: [`LogError::Fenced`] if another epoch is as late,
    /// [`LogError::Broken`] or [`LogError::Missing`] also if the stream lacks the message of `end`.
    pub async fn take_over(
        connection: &Connection,
        name: &StreamName,
        epoch: u64,
        end: LogEnd,
        visit: &mut impl FnMut(LogEnd, Message),
    ) -> Result<Self, LogError> {
        let appender = Appender::open(connection, name).await?;
        appender.reader.confirm(end).await?;
        let mut writer = Self { appender, epoch, end };
        loop {
            let mut visit_all = |end, message| {
                visit(end, message);
                ControlFlow::Continue(())
            };
            writer.end = writer.appender.reader.read(writer.end, &mut visit_all).await?;
            if writer.end.epoch >= epoch {
                return Err(LogError::Fenced { by: writer.end.epoch });
            }
            #[cfg(feature = "fault-injection")]
            if crate::fault_injection::Mistake::NoEpochRecord.is_made() {
                return Ok(writer);
            }
            match writer.record(Content::Epoch).await {
                // There are more messages than the brokers first reported: read on.
                Err(LogError::Fenced { by }) if by < epoch => {}
                begun => return begun.map(|_| writer),
            }
        }
    }

    /// Records the entries as one message. Returns its sequence once a majority of brokers has it
    /// on disk.
    ///
    /// Sends the message until it is recorded or can't be. If you drop the future, the outcome is
    /// unknown, and you must not use the writer again. Take the partition over with a later epoch
    /// to find out.
    ///
    /// # Errors
    /// Returns a [`LogError`]. After [`LogError::Broken`] or [`LogError::Missing`], the outcome is
    /// unknown. After all other errors, the message was not recorded, and never will be. After
    /// these two and [`LogError::Fenced`], you must not use the writer again.
    pub async fn append(&mut self, entries: Vec<Entry>) -> Result<u64, LogError> {
        let events = entries.iter().map(|entry| u64::from(entry.count)).sum();
        match self.record(Content::Events(entries)).await {
            Ok(sequence) => {
                self.appender.reader.appended(sequence, events);
                Ok(sequence)
            }
            // Only this writer may write in this epoch, and no writer in an earlier one.
            Err(LogError::Fenced { by }) if by <= self.epoch => {
                Err(self.appender.reader.broken(self.end.sequence + 1, MessageError::Unchained))
            }
            recorded => recorded,
        }
    }

    /// Returns a reader that knows the messages of this writer.
    pub fn reader(&self) -> LogReader {
        self.appender.reader.clone()
    }

    /// Checks that the brokers have every message that they confirmed to this writer, and all
    /// before. Returns an error if one is lost. `Ok` also means that the brokers don't answer.
    pub(super) async fn audit(&self, timing: AuditTiming) -> Result<(), LogError> {
        self.appender.reader.audit(self.end, timing).await
    }

    pub(super) fn figures(&self) -> &Arc<AppendFigures> {
        &self.appender.figures
    }

    /// Returns the last position that a recorded event can have.
    pub fn last_position(&self) -> Position {
        position::last_of(self.end.sequence)
    }

    /// Returns the number of bytes of entries to gather in a message.
    pub(super) fn gathered_bytes(&self) -> usize {
        // Incompressible entries, and many small ones, become a little larger.
        MAX_GATHERED_BYTES.min(self.appender.limit() / 10 * 9)
    }

    async fn record(&mut self, content: Content) -> Result<u64, LogError> {
        let (bytes, chain) = Message { epoch: self.epoch, content }.encode(&self.appender.written(), self.end.chain)?;
        // Sends it until its outcome is known, or the future is dropped.
        let sequence = self.appender.append(self.end, bytes, &mut false).await?;
        self.end = LogEnd { sequence, chain, epoch: self.epoch };
        self.appender.reader.note_end(self.end);
        Ok(sequence)
    }
}
