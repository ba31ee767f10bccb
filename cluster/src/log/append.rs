//! Appends messages to a stream.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::{Error as BrokerError, ErrorCode};
use bytes::Bytes;
use tokio::time::timeout;

use super::message::{Claims, MAX_MESSAGE_BYTES};
use super::reader::LogReader;
use super::waiting::{ALARM_EVERY, AppendFigures, watched};
use super::{LogEnd, LogError, MessageError};
use crate::connection::Connection;
#[cfg(feature = "fault-injection")]
use crate::fault_injection::Mistake;
use crate::levels::Levels;
use crate::stream::StreamName;

/// How long an attempt waits for an answer. A killed broker never answers, and neither does a
/// stream while it has no leader. Each attempt is another chance.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause before a message is sent again. It doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// The number of attempts between two checks that the stream still has the message before.
const ATTEMPTS_A_LOOK: u32 = 20;
/// The most bytes that the header and the protocol add to a message.
const ENVELOPE_BYTES: usize = 1024;
/// The error of a stream that has reached its `max_bytes`. All brokers of a stream reach it at the
/// same message, so none has recorded the message. After other failures of the leader, another
/// broker may have recorded it.
const STREAM_IS_FULL: &str = "maximum bytes exceeded";

/// Appends messages to a stream, each directly after a message that was read.
#[derive(Debug)]
pub(crate) struct Appender {
    pub(crate) connection: Connection,
    pub(crate) reader: LogReader,
    subject: String,
    pub(super) figures: Arc<AppendFigures>,
}

/// The outcome of sending a message once.
enum Sent {
    /// A majority of brokers has the message, with this sequence.
    Recorded(u64),
    /// Another message has, or will have, the sequence that this one expects.
    Passed,
    /// The stream is full: this copy was not recorded.
    Full,
    /// This copy was not recorded, and no other copy will be.
    Rejected(String),
    /// No broker received it.
    Unsent(String),
    /// The outcome is unknown.
    Unanswered(String),
}

impl Appender {
    /// Opens the stream.
    pub(crate) async fn open(connection: &Connection, name: &StreamName) -> Result<Self, LogError> {
        let reader = LogReader::open(connection, &name.stream).await?;
        Ok(Self { connection: connection.clone(), reader, subject: name.subject.clone(), figures: Arc::default() })
    }

    /// Returns the levels at which to encode messages.
    pub(crate) fn written(&self) -> Levels {
        self.connection.written()
    }

    /// Returns the largest size of an encoded message.
    pub(super) fn limit(&self) -> usize {
        self.connection.client.max_payload().min(MAX_MESSAGE_BYTES).saturating_sub(ENVELOPE_BYTES)
    }

    /// Sends a message until it is recorded directly after `end`, or can't be. Every attempt sends
    /// the same bytes with the same expectation, so at most one copy is recorded. Returns its
    /// sequence.
    ///
    /// `is_unknown` says at any time, even after the future was dropped, whether a copy may have
    /// been recorded, or may still be.
    ///
    /// # Errors
    /// Returns a [`LogError`]: [`LogError::Fenced`] if another message follows `end`, so that this
    /// one can never be recorded.
    pub(crate) async fn append(&self, end: LogEnd, bytes: Vec<u8>, is_unknown: &mut bool) -> Result<u64, LogError> {
        let appended = self.append_unwatched(end, bytes, is_unknown);
        let leader = || self.reader.clone().leader();
        let sequence = watched(&self.figures, &self.reader.name, ALARM_EVERY, appended, leader).await?;
        self.figures.confirmed(sequence);
        Ok(sequence)
    }

    async fn append_unwatched(&self, end: LogEnd, bytes: Vec<u8>, is_unknown: &mut bool) -> Result<u64, LogError> {
        let (limit, bytes) = (self.limit(), Bytes::from(bytes));
        if bytes.len() > limit {
            return Err(LogError::TooLarge { bytes: bytes.len(), limit });
        }
        let (next, mut pause) = (end.sequence + 1, FIRST_PAUSE);
        for attempt in 1u32.. {
            let was_unknown = std::mem::replace(is_unknown, true);
            let sent = self.send(end, bytes.clone()).await;
            #[cfg(feature = "fault-injection")]
            if matches!(sent, Sent::Unanswered(_)) && Mistake::ResendAfterUnknown.is_made() {
                return self.append_anywhere(bytes).await;
            }
            // An earlier copy without an answer may still be recorded.
            *is_unknown = was_unknown || matches!(sent, Sent::Recorded(_) | Sent::Unanswered(_));
            let is_unsent = matches!(sent, Sent::Unsent(_));
            let reason = match sent {
                Sent::Recorded(sequence) if sequence == next => {
                    self.reader.recorded(sequence);
                    return Ok(sequence);
                }
                Sent::Recorded(sequence) => return Err(self.reader.broken(sequence, MessageError::Unchained)),
                Sent::Full if !*is_unknown => return Err(LogError::Full(self.reader.name.to_owned())),
                Sent::Rejected(reason) if !*is_unknown => return Err(LogError::Rejected(reason)),
                Sent::Full => "the stream is full".to_owned(),
                Sent::Passed => "another message is the last one".to_owned(),
                Sent::Rejected(reason) | Sent::Unsent(reason) | Sent::Unanswered(reason) => reason,
            };
            let is_look = attempt.is_multiple_of(ATTEMPTS_A_LOOK);
            // Without a leader, a question would only wait. The next copy finds out what became of
            // the earlier ones.
            if (!is_unsent || is_look)
                && let Some(found) = self.find(next, &bytes, is_unknown).await?
            {
                return Ok(found);
            }
            if is_look {
                tracing::warn!(stream = &self.reader.name, attempt, reason, "a message is not recorded yet");
                match self.reader.confirm(end).await {
                    Ok(()) | Err(LogError::Unavailable(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            tokio::time::sleep(pause).await;
            self.figures.retried();
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Err(LogError::unavailable("too many attempts"))
    }

    /// Checks whether the message is recorded. Returns `None` if it is not yet, or no broker
    /// answers.
    async fn find(&self, next: u64, bytes: &[u8], is_unknown: &mut bool) -> Result<Option<u64>, LogError> {
        let Ok(Ok(Some(found))) = timeout(ANSWER_TIMEOUT, self.reader.get(next)).await else { return Ok(None) };
        self.reader.recorded(next);
        if found == bytes {
            return Ok(Some(next));
        }
        // Brokers accept no copy in the place of another message.
        *is_unknown = false;
        match Claims::of(&found) {
            Ok(claims) => Err(LogError::Fenced { by: claims.epoch }),
            Err(reason) => Err(self.reader.broken(next, reason)),
        }
    }

    /// Sends a message once, to be recorded directly after the end.
    async fn send(&self, end: LogEnd, payload: Bytes) -> Sent {
        let message =
            PublishMessage::build().payload(payload).expected_last_sequence(end.sequence).expected_stream(&self.reader.name);
        #[cfg(feature = "fault-injection")]
        if Mistake::AckBeforeQuorum.is_made() {
            let _unanswered = self.connection.context.send_publish(self.subject.clone(), message).await;
            return Sent::Recorded(end.sequence + 1);
        }
        let answer = async {
            match self.connection.context.send_publish(self.subject.clone(), message).await {
                Ok(sent) => sent.await,
                Err(error) => Err(error),
            }
        };
        match timeout(ANSWER_TIMEOUT, answer).await {
            Ok(Ok(recorded)) => Sent::Recorded(recorded.sequence),
            Ok(Err(error)) => of_failure(&error),
            Err(_) => Sent::Unanswered("no answer".to_owned()),
        }
    }
}

#[cfg(feature = "fault-injection")]
impl Appender {
    /// Sends a message until it is recorded, at any place.
    async fn append_anywhere(&self, bytes: Bytes) -> Result<u64, LogError> {
        loop {
            let message = PublishMessage::build().payload(bytes.clone());
            if let Ok(sent) = self.connection.context.send_publish(self.subject.clone(), message).await
                && let Ok(Ok(recorded)) = timeout(ANSWER_TIMEOUT, sent.into_future()).await
            {
                return Ok(recorded.sequence);
            }
            tokio::time::sleep(FIRST_PAUSE).await;
        }
    }
}

/// Returns the outcome of a message without an acknowledgment.
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
