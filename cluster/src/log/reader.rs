//! Reads the log of a partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};

use headcount_storage::log::Position;
use parking_lot::Mutex;

use super::message::{Claims, MAX_EVENTS, MessageError};
use super::{Link, LogEnd, LogError, position};
use crate::connection::Connection;

/// The number of known ends. Applying and saving are never further behind reading and recording.
const KNOWN_ENDS: usize = 1024;

/// More than the size of an epoch message in a stream.
const SMALL_MESSAGE_BYTES: u64 = 64 << 10;

/// Reads a partition's log. Clones share the known bounds, and the messages that their writer has
/// recorded.
#[derive(Debug, Clone)]
pub struct LogReader {
    pub(super) stream: Stream<()>,
    pub(super) name: String,
    bounds: Arc<Bounds>,
}

/// The sequences of the first and the last message. Both only rise.
#[derive(Debug, Default)]
struct Bounds {
    first: AtomicU64,
    last: AtomicU64,
    /// The number of messages that the writer has recorded, and of their events.
    messages: AtomicU64,
    events: AtomicU64,
    /// The latest ends that were read or recorded.
    ends: Mutex<BTreeMap<u64, LogEnd>>,
}

impl LogReader {
    /// Opens the log in the stream `name`.
    ///
    /// # Errors
    /// Returns [`LogError::Unavailable`].
    pub async fn open(connection: &Connection, name: &str) -> Result<Self, LogError> {
        let stream = connection.context.get_stream_no_info(name).await.map_err(LogError::unavailable)?;
        let reader = Self { stream, name: name.to_owned(), bounds: Arc::default() };
        reader.ask_bounds().await?;
        Ok(reader)
    }

    /// Returns the last message, with the digest of all messages before it from its own header. The
    /// answer may be out of date.
    ///
    /// # Errors
    /// Returns [`LogError::Broken`], [`LogError::Missing`] or [`LogError::Unavailable`].
    pub(crate) async fn last_end(&self) -> Result<LogEnd, LogError> {
        let (first, last) = self.ask_bounds().await?;
        if last < first {
            return Ok(LogEnd { sequence: last, ..LogEnd::default() });
        }
        let Claims { epoch, chain, .. } = self.claims(last).await?;
        Ok(LogEnd { sequence: last, chain, epoch })
    }

    /// Returns the header of the message with this sequence. It is not verified against the
    /// messages before.
    ///
    /// # Errors
    /// Returns [`LogError::Missing`], [`LogError::Broken`] or [`LogError::Unavailable`].
    pub(super) async fn claims(&self, sequence: u64) -> Result<Claims, LogError> {
        match self.get(sequence).await? {
            Some(bytes) => Claims::of(&bytes).map_err(|reason| self.broken(sequence, reason)),
            None => {
                let (first, last) = self.known_bounds();
                match (first..=last).contains(&sequence) {
                    true => Err(LogError::unavailable("an answer is out of date")),
                    false => Err(self.missing(sequence)),
                }
            }
        }
    }

    /// Returns the end of the log at the message with this sequence. It is not verified against the
    /// messages before.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::claims`].
    pub(crate) async fn end_at(&self, sequence: u64) -> Result<LogEnd, LogError> {
        let Claims { epoch, chain, .. } = self.claims(sequence).await?;
        Ok(LogEnd { sequence, chain, epoch })
    }

    /// Checks that the stream has the message of `end`, unless it was purged, and all messages
    /// after it.
    ///
    /// # Errors
    /// Returns [`LogError::Broken`] or [`LogError::Missing`] if the brokers lost messages that were
    /// read or recorded, and [`LogError::Unavailable`].
    pub(crate) async fn confirm(&self, end: LogEnd) -> Result<(), LogError> {
        let (first, _) = self.ask_bounds().await?;
        if first > end.sequence + 1 { Err(self.missing(end.sequence + 1)) } else { self.has_link(first, end.into()).await }
    }

    /// Checks that the stream has a message. Returns `false` if everything up to it was purged.
    ///
    /// # Errors
    /// Returns the same errors as [`LogReader::confirm`].
    pub(crate) async fn confirm_link(&self, link: Link) -> Result<bool, LogError> {
        let (first, _) = self.ask_bounds().await?;
        self.has_link(first, link).await.map(|()| first <= link.sequence)
    }

    async fn has_link(&self, first: u64, Link { sequence, chain }: Link) -> Result<(), LogError> {
        if sequence == 0 || first > sequence {
            return Ok(());
        }
        let claims = self.get(sequence).await?.ok_or_else(|| self.missing(sequence))?;
        let claims = Claims::of(&claims).map_err(|reason| self.broken(sequence, reason))?;
        if claims.chain == chain { Ok(()) } else { Err(self.broken(sequence, MessageError::Unchained)) }
    }

    /// Returns the known sequences of the first and the last message. If the log is empty, `last`
    /// is `first - 1`.
    pub fn known_bounds(&self) -> (u64, u64) {
        (self.bounds.first.load(Ordering::Acquire), self.bounds.last.load(Ordering::Acquire))
    }

    /// Asks for the number of messages in the stream, and their bytes. The answer may be out of
    /// date.
    pub(crate) async fn usage(&self) -> Result<(u64, u64), LogError> {
        let state = self.stream.get_info().await.map_err(LogError::unavailable)?.state;
        Ok((state.messages, state.bytes))
    }

    /// Removes messages whose events are all before the position `until`. The last of them stays:
    /// its chain is needed to verify the next message.
    ///
    /// # Errors
    /// Returns [`LogError::Unavailable`].
    pub(crate) async fn remove_before(&self, until: Position) -> Result<(), LogError> {
        self.keep_from(position::sequence_of(until).saturating_sub(1)).await
    }

    /// Removes the messages before the one with the sequence `kept`.
    ///
    /// # Errors
    /// Returns [`LogError::Unavailable`].
    pub(crate) async fn keep_from(&self, kept: u64) -> Result<(), LogError> {
        if kept > self.known_bounds().0 {
            self.stream.purge().sequence(kept).await.map_err(LogError::unavailable)?;
            self.bounds.first.fetch_max(kept, Ordering::AcqRel);
        }
        Ok(())
    }

    /// Removes a message that no reader needs, unless it is gone.
    pub(crate) async fn remove(&self, sequence: u64) {
        if let Err(error) = self.stream.delete_message(sequence).await {
            tracing::debug!(stream = &self.name, sequence, %error, "a message could not be removed");
        }
    }

    /// Returns the name of the broker that leads the stream, if known.
    pub(super) async fn leader(self) -> String {
        match self.stream.get_info().await {
            Ok(info) => info.cluster.and_then(|cluster| cluster.leader).unwrap_or_else(|| "none".to_owned()),
            Err(error) => format!("unknown: {error}"),
        }
    }

    /// Asks whether the stream is more than half full.
    ///
    /// # Errors
    /// Returns [`LogError::Unavailable`].
    pub(crate) async fn is_half_full(&self) -> Result<bool, LogError> {
        let (bytes, most) = self.size().await?;
        Ok(most.is_some_and(|most| bytes > most / 2))
    }

    /// Asks whether the stream has room for a small message.
    ///
    /// # Errors
    /// Returns [`LogError::Unavailable`].
    pub(crate) async fn has_room(&self) -> Result<bool, LogError> {
        let (bytes, most) = self.size().await?;
        Ok(most.is_none_or(|most| bytes.saturating_add(SMALL_MESSAGE_BYTES) <= most))
    }

    /// Asks for the size of the stream and its limit, in bytes; `None` without a limit.
    async fn size(&self) -> Result<(u64, Option<u64>), LogError> {
        let info = self.stream.get_info().await.map_err(LogError::unavailable)?;
        let most = u64::try_from(info.config.max_bytes).ok().filter(|most| *most > 0);
        Ok((info.state.bytes, most))
    }

    /// Asks for the bounds. The answer may be out of date.
    pub(crate) async fn ask_bounds(&self) -> Result<(u64, u64), LogError> {
        let state = self.stream.get_info().await.map_err(LogError::unavailable)?.state;
        self.bounds.first.fetch_max(state.first_sequence.max(1), Ordering::AcqRel);
        self.recorded(state.last_sequence);
        Ok(self.known_bounds())
    }

    /// Records the end of the log at a message that was read or recorded.
    pub(super) fn note_end(&self, end: LogEnd) {
        let mut ends = self.bounds.ends.lock();
        ends.insert(end.sequence, end);
        if ends.len() > KNOWN_ENDS {
            ends.pop_first();
        }
    }

    /// Returns the end of the log at a message that was recently read or recorded.
    pub(super) fn known_end(&self, sequence: u64) -> Option<LogEnd> {
        self.bounds.ends.lock().get(&sequence).copied()
    }

    /// Records that the writer has recorded a message with this sequence and number of events.
    pub(super) fn appended(&self, sequence: u64, events: u64) {
        self.bounds.messages.fetch_add(1, Ordering::Relaxed);
        self.bounds.events.fetch_add(events, Ordering::Relaxed);
        self.recorded(sequence);
    }

    /// Returns an estimate of the number of events after the message `sequence`: the average of the
    /// writer's messages for each one, or the maximum if the writer has recorded none.
    pub(super) fn events_after(&self, sequence: u64) -> u64 {
        let messages = self.bounds.messages.load(Ordering::Relaxed);
        let average = self.bounds.events.load(Ordering::Relaxed).checked_div(messages).unwrap_or(u64::from(MAX_EVENTS));
        let (_, last) = self.known_bounds();
        last.saturating_sub(sequence) * average.max(1)
    }

    /// Records that the message with this sequence exists.
    pub(super) fn recorded(&self, sequence: u64) {
        self.bounds.last.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Returns the bytes of one message; `None` if the answering broker lacks it.
    pub(super) async fn get(&self, sequence: u64) -> Result<Option<Vec<u8>>, LogError> {
        match self.stream.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(message.payload.to_vec())),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(LogError::unavailable(error)),
        }
    }

    pub(super) fn missing(&self, wanted: u64) -> LogError {
        LogError::Missing { stream: self.name.clone(), wanted }
    }

    pub(crate) fn broken(&self, sequence: u64, reason: MessageError) -> LogError {
        LogError::Broken { stream: self.name.clone(), sequence, reason }
    }
}
