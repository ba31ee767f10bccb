//! Writing to the log of a partition.

use std::ops::ControlFlow;
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Error as BrokerError, ErrorCode};
use bytes::Bytes;
use headcount_storage::log::Position;

use super::message::{Claims, Content, Entry, MAX_MESSAGE_BYTES, Message};
use super::reader::LogReader;
use super::{LogEnd, LogError, MessageError, position};
use crate::connection::Connection;
use crate::stream::StreamName;

/// The pause before a message is sent once more; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// After how many attempts a writer looks whether the stream still has what it recorded.
const ATTEMPTS_A_LOOK: u32 = 10;
/// What the header and the protocol add to a message.
const ENVELOPE_BYTES: usize = 1024;
/// How much is gathered in a message; a single submission may be larger.
const MAX_GATHERED_BYTES: usize = 1 << 20;
/// How a broker says that a stream has its `max_bytes`. All brokers of a stream come to the same result, so that none has recorded the message. Other failures of
/// a leader to store a message say nothing of the others.
const STREAM_IS_FULL: &str = "maximum bytes exceeded";

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
    /// Another message has, or will have, the sequence that this one expects.
    Passed,
    /// The stream is full: this copy was not recorded.
    Full,
    /// This copy was not recorded, and no other one will be.
    Rejected(String),
    /// Nobody received it.
    Unsent(String),
    /// Nobody knows.
    Unanswered(String),
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
        let reader = LogReader::open(connection, &name.stream).await?;
        reader.confirm(end).await?;
        let mut writer = Self { connection: connection.clone(), reader, subject: name.subject.clone(), epoch, end };
        loop {
            let mut visit_all = |end, message| {
                visit(end, message);
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
    /// take the partition over with a later epoch, to find out.
    ///
    /// # Errors
    /// [`LogError`]. After [`LogError::Broken`] and [`LogError::Missing`], it may or may not be recorded; after all others, it is not, and never will be. After these two and
    /// [`LogError::Fenced`], the writer must not be used again.
    pub async fn append(&mut self, entries: Vec<Entry>) -> Result<u64, LogError> {
        match self.record(Content::Events(entries)).await {
            // Only this writer may write in this epoch, and nobody in one before.
            Err(LogError::Fenced { by }) if by <= self.epoch => {
                Err(self.reader.broken(self.end.sequence + 1, MessageError::Unchained))
            }
            recorded => recorded,
        }
    }

    /// Returns a reader that knows what this writer has recorded.
    #[must_use]
    pub fn reader(&self) -> LogReader {
        self.reader.clone()
    }

    /// Returns the last position that a recorded event can have.
    #[must_use]
    pub fn last_position(&self) -> Position {
        position::last_of(self.end.sequence)
    }

    /// Returns how many bytes of entries to gather in a message.
    pub(super) fn gathered_bytes(&self) -> usize {
        // Those that don't compress, and many small ones, become a little larger.
        MAX_GATHERED_BYTES.min(self.limit() / 10 * 9)
    }

    /// Returns the largest size of an encoded message.
    fn limit(&self) -> usize {
        self.connection.client.max_payload().min(MAX_MESSAGE_BYTES).saturating_sub(ENVELOPE_BYTES)
    }

    async fn record(&mut self, content: Content) -> Result<u64, LogError> {
        let (bytes, chain) = Message { epoch: self.epoch, content }.encode(self.end.chain)?;
        let limit = self.limit();
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
        let (next, mut is_unknown, mut pause) = (self.end.sequence + 1, false, FIRST_PAUSE);
        for attempt in 1u32.. {
            let reason = match self.send_once(bytes.clone()).await {
                Sent::Recorded(sequence) if sequence == next => return Ok(sequence),
                Sent::Recorded(sequence) => return Err(self.reader.broken(sequence, MessageError::Unchained)),
                // An earlier copy without an answer may still be recorded.
                Sent::Full if !is_unknown => return Err(LogError::Full(self.reader.name().to_owned())),
                Sent::Rejected(reason) if !is_unknown => return Err(LogError::Rejected(reason)),
                Sent::Full => "the stream is full".to_owned(),
                Sent::Passed => "another message is the last one".to_owned(),
                Sent::Rejected(reason) | Sent::Unsent(reason) => reason,
                Sent::Unanswered(reason) => {
                    is_unknown = true;
                    reason
                }
            };
            if let Some(found) = self.find(next, &bytes).await? {
                return Ok(found);
            }
            if attempt.is_multiple_of(ATTEMPTS_A_LOOK) {
                tracing::warn!(stream = self.reader.name(), attempt, reason, "a message is not recorded yet");
                match self.reader.confirm(self.end).await {
                    Ok(()) | Err(LogError::Unavailable(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(LogError::unavailable("too many attempts"))
    }

    /// Looks whether the message is recorded. `None`: not yet, or nobody answers.
    async fn find(&self, next: u64, bytes: &[u8]) -> Result<Option<u64>, LogError> {
        match self.reader.get(next).await {
            Ok(Some(found)) if found == bytes => Ok(Some(next)),
            Ok(Some(found)) => match Claims::of(&found) {
                Ok(claims) => Err(LogError::Fenced { by: claims.epoch }),
                Err(reason) => Err(self.reader.broken(next, reason)),
            },
            Ok(None) | Err(_) => Ok(None),
        }
    }

    /// Sends a message once, to be recorded right after the end.
    async fn send_once(&self, payload: Bytes) -> Sent {
        let message = PublishMessage::build()
            .payload(payload)
            .expected_last_sequence(self.end.sequence)
            .expected_stream(self.reader.name());
        let sent = match self.connection.context.send_publish(self.subject.clone(), message).await {
            Ok(sent) => sent.await,
            Err(error) => Err(error),
        };
        match sent {
            Ok(recorded) => Sent::Recorded(recorded.sequence),
            Err(error) => of_failure(&error),
        }
    }
}

/// Says what came of a message that has no acknowledgment.
fn of_failure(error: &PublishError) -> Sent {
    let refusal = std::error::Error::source(error).and_then(|source| source.downcast_ref::<BrokerError>());
    match (error.kind(), refusal.map(BrokerError::error_code)) {
        (PublishErrorKind::WrongLastSequence, _) | (_, Some(ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT)) => Sent::Passed,
        (PublishErrorKind::StreamNotFound, _) => Sent::Unsent("no broker leads the stream".to_owned()),
        (PublishErrorKind::MaxPayloadExceeded, _) => Sent::Rejected(error.to_string()),
        (_, Some(ErrorCode::STREAM_STORE_FAILED)) if error.to_string().contains(STREAM_IS_FULL) => Sent::Full,
        (_, Some(ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM | ErrorCode::STREAM_NOT_MATCH)) => Sent::Rejected(error.to_string()),
        _ => Sent::Unanswered(error.to_string()),
    }
}
