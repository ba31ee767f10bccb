//! Writing to the log of a partition.

use std::ops::ControlFlow;
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Context, Error as BrokerError, ErrorCode};
use bytes::Bytes;

use super::message::{Content, Entry, Message};
use super::reader::LogReader;
use super::{LogEnd, LogError, MessageError};
use crate::connection::Connection;
use crate::stream::StreamName;

/// The pause before a message is sent once more.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// What a message has beside its bytes: its header, and the lines of the protocol.
const ENVELOPE_BYTES: usize = 1024;

/// The owner of a partition, which writes to its log.
#[derive(Debug)]
pub struct LogWriter {
    connection: Connection,
    reader: LogReader,
    subject: String,
    epoch: u64,
    end: LogEnd,
}

/// What came of sending a message once.
enum Sent {
    /// It is on a majority of brokers, as the message with this sequence.
    Recorded(u64),
    /// Another message is where it was to be, or will be.
    Passed,
    /// The stream is full.
    Full,
    /// Nobody knows.
    Unanswered(String),
}

impl LogWriter {
    /// Takes the partition over for `epoch`: reads what is after `end`, passing it to `visit`, and begins the epoch.
    ///
    /// It sends its message until it is recorded or can't be; to end that, drop the future. A former owner must have stopped, but for the message that it was
    /// sending: one that writes on without a pause is always a message ahead.
    ///
    /// # Errors
    /// [`LogError`]; [`LogError::Fenced`] if the epoch is not later than all others.
    pub async fn take_over(
        connection: &Connection,
        name: &StreamName,
        epoch: u64,
        end: LogEnd,
        visit: &mut impl FnMut(u64, Message),
    ) -> Result<Self, LogError> {
        let reader = LogReader::open(connection, &name.stream).await?;
        let mut writer = Self { connection: connection.clone(), reader, subject: name.subject.clone(), epoch, end };
        loop {
            let mut visit_all = |sequence, message| {
                visit(sequence, message);
                ControlFlow::Continue(())
            };
            writer.end = writer.reader.read(writer.end, &mut visit_all).await?;
            if writer.end.epoch >= epoch {
                return Err(LogError::Fenced { by: writer.end.epoch });
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
    /// take the partition over once more, to find out.
    ///
    /// # Errors
    /// [`LogError`]; it was not recorded, and never will be. After [`LogError::Fenced`] and [`LogError::Broken`], nothing will.
    pub async fn append(&mut self, entries: Vec<Entry>) -> Result<u64, LogError> {
        match self.record(Content::Events(entries)).await {
            // Only this writer may write in this epoch, and nobody in one before.
            Err(LogError::Fenced { by }) if by <= self.epoch => Err(self.broken(self.end.sequence + 1, MessageError::Unchained)),
            recorded => recorded,
        }
    }

    /// Returns a reader that knows what this writer has recorded.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        self.reader.clone()
    }

    async fn record(&mut self, content: Content) -> Result<u64, LogError> {
        let (bytes, chain) = Message { epoch: self.epoch, content }.encode(self.end.chain)?;
        let limit = self.connection.client.max_payload().saturating_sub(ENVELOPE_BYTES);
        if bytes.len() > limit {
            return Err(LogError::TooLarge { bytes: bytes.len(), limit });
        }
        let sequence = self.send(bytes.into()).await?;
        self.end = LogEnd { sequence, chain, epoch: self.epoch };
        self.reader.recorded(sequence);
        Ok(sequence)
    }

    /// Sends a message until it is recorded or can't be: the same bytes with the same expectation, so that at most one copy is recorded.
    async fn send(&self, bytes: Bytes) -> Result<u64, LogError> {
        let (next, mut unanswered) = (self.end.sequence + 1, false);
        loop {
            match send_once(&self.connection.context, &self.subject, bytes.clone(), self.end.sequence).await {
                Sent::Recorded(sequence) if sequence == next => return Ok(sequence),
                Sent::Recorded(sequence) => return Err(self.broken(sequence, MessageError::Unchained)),
                Sent::Passed => {}
                Sent::Full if !unanswered => return Err(LogError::Full(self.reader.name().to_owned())),
                // An earlier copy may still be recorded.
                Sent::Full => {}
                Sent::Unanswered(reason) => {
                    tracing::warn!(stream = self.reader.name(), reason, "sending a message once more");
                    unanswered = true;
                }
            }
            if let Some(found) = self.find(next, &bytes).await? {
                return Ok(found);
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    /// Looks whether the message is recorded. `None`: not yet, or nobody answers.
    async fn find(&self, next: u64, bytes: &[u8]) -> Result<Option<u64>, LogError> {
        match self.reader.get(next).await {
            Ok(Some(found)) if found == bytes => Ok(Some(next)),
            Ok(Some(found)) => match Message::claimed_epoch(&found) {
                Some(by) => Err(LogError::Fenced { by }),
                None => Err(self.broken(next, MessageError::Damaged)),
            },
            Ok(None) | Err(_) => Ok(None),
        }
    }

    fn broken(&self, sequence: u64, reason: MessageError) -> LogError {
        LogError::Broken { stream: self.reader.name().to_owned(), sequence, reason }
    }
}

/// Sends a message once, to be recorded right after the message `last`.
async fn send_once(context: &Context, subject: &str, payload: Bytes, last: u64) -> Sent {
    let message = PublishMessage::build().payload(payload).expected_last_sequence(last);
    let sent = match context.send_publish(subject.to_owned(), message).await {
        Ok(sent) => sent.await,
        Err(error) => Err(error),
    };
    match sent {
        Ok(recorded) => Sent::Recorded(recorded.sequence),
        Err(error) if error.kind() == PublishErrorKind::WrongLastSequence => Sent::Passed,
        Err(error) => match code_of(&error) {
            Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT) => Sent::Passed,
            Some(ErrorCode::STREAM_STORE_FAILED | ErrorCode::STORAGE_RESOURCES_EXCEEDED | ErrorCode::INSUFFICIENT_RESOURCES) => {
                Sent::Full
            }
            _ => Sent::Unanswered(error.to_string()),
        },
    }
}

/// Returns the code that a broker refused a message with.
fn code_of(error: &PublishError) -> Option<ErrorCode> {
    let source = std::error::Error::source(error)?;
    Some(source.downcast_ref::<BrokerError>()?.error_code())
}
