//! Reading the log of a partition.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt as _;

use super::message::{Chain, Message};
use super::{LogEnd, LogError};
use crate::connection::Connection;

/// How much is asked for at once: one message has at most as much.
const FETCHED_BYTES: usize = (8 << 20) + (64 << 10);
const FETCHED_MESSAGES: usize = 512;
/// How long the next message of a request may take.
const NEXT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long brokers keep a consumer that nobody asks.
const CONSUMER_TIMEOUT: Duration = Duration::from_secs(30);
/// How often in a row a consumer may deliver nothing where there is something, until that is an error.
const MAX_FRUITLESS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Reads a partition's log. Clones know what any of them learned of its bounds, and what the writer has recorded that one of them is of.
#[derive(Debug, Clone)]
pub struct LogReader {
    stream: Stream<()>,
    name: String,
    bounds: Arc<Bounds>,
}

/// The sequences of the first and the last message, which only rise.
#[derive(Debug, Default)]
struct Bounds {
    first: AtomicU64,
    last: AtomicU64,
}

impl LogReader {
    /// Opens the log in the stream `name`.
    ///
    /// # Errors
    /// [`LogError::Unavailable`].
    pub async fn open(connection: &Connection, name: &str) -> Result<Self, LogError> {
        let stream = connection.context.get_stream_no_info(name).await.map_err(LogError::unavailable)?;
        let reader = Self { stream, name: name.to_owned(), bounds: Arc::default() };
        reader.ask_bounds().await?;
        Ok(reader)
    }

    /// Passes each message after `end` to `visit`, with its sequence, up to the one that was the last at the call, or until `visit` breaks. Returns the new end; an
    /// answer about the last message may be out of date, so that more may follow.
    ///
    /// # Errors
    /// [`LogError::Broken`], [`LogError::Missing`] and [`LogError::Unavailable`]: messages before the failure have been visited.
    pub async fn read(&self, end: LogEnd, visit: &mut impl FnMut(u64, Message) -> ControlFlow<()>) -> Result<LogEnd, LogError> {
        let (first, last) = self.ask_bounds().await?;
        if first > end.sequence + 1 {
            return Err(self.missing(end.sequence + 1, first));
        }
        let (mut end, mut fruitless) = (end, 0);
        while end.sequence < last {
            let before = end.sequence;
            match self.read_some(&mut end, last, visit).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(end),
                // A broker went away, or a consumer passed over messages: another one is asked, from here on.
                Err(LogError::Unavailable(reason)) if fruitless < MAX_FRUITLESS => {
                    tracing::info!(stream = self.name, reason, "reading on")
                }
                Err(error) => return Err(error),
            }
            fruitless = if end.sequence > before { 0 } else { fruitless + 1 };
            if fruitless > MAX_FRUITLESS {
                return Err(LogError::Unavailable(format!("message {} of {} is not delivered", end.sequence + 1, self.name)));
            }
            if fruitless > 0 {
                tokio::time::sleep(PAUSE * fruitless).await;
            }
        }
        Ok(end)
    }

    /// Reads on with a consumer of its own, until that delivers nothing more.
    async fn read_some(
        &self,
        end: &mut LogEnd,
        last: u64,
        visit: &mut impl FnMut(u64, Message) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, LogError> {
        let consumer = self.consumer(end.sequence + 1).await?;
        loop {
            let fetch = consumer.fetch().max_messages(FETCHED_MESSAGES).max_bytes(FETCHED_BYTES).expires(NEXT_TIMEOUT);
            let mut batch = fetch.messages().await.map_err(LogError::unavailable)?;
            let before = end.sequence;
            while end.sequence < last {
                let next = tokio::time::timeout(NEXT_TIMEOUT, batch.next()).await.map_err(LogError::unavailable)?;
                let Some(message) = next else { break };
                let message = message.map_err(LogError::unavailable)?;
                let sequence = message.info().map_err(LogError::unavailable)?.stream_sequence;
                if sequence != end.sequence + 1 {
                    return Err(LogError::Unavailable(format!("message {sequence} came instead of {}", end.sequence + 1)));
                }
                let message = self.take(end, sequence, &message.payload)?;
                if visit(sequence, message).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if end.sequence >= last || end.sequence == before {
                return Ok(ControlFlow::Continue(()));
            }
        }
    }

    async fn consumer(&self, first: u64) -> Result<Consumer<pull::Config>, LogError> {
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: first },
            ack_policy: AckPolicy::None,
            inactive_threshold: CONSUMER_TIMEOUT,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        self.stream.create_consumer(config).await.map_err(LogError::unavailable)
    }

    /// Decodes the message that follows `end`, which it is then.
    fn take(&self, end: &mut LogEnd, sequence: u64, bytes: &[u8]) -> Result<Message, LogError> {
        let broken = |reason| LogError::Broken { stream: self.name.clone(), sequence, reason };
        let (message, chain) = Message::decode(bytes, end.chain).map_err(broken)?;
        // Who writes with an epoch that is over has not read its end.
        if message.epoch < end.epoch {
            return Err(broken(super::MessageError::Unchained));
        }
        *end = LogEnd { sequence, chain, epoch: message.epoch };
        Ok(message)
    }

    /// Returns the end up to the message with this sequence, as that message says. It is not compared with the messages before.
    ///
    /// # Errors
    /// [`LogError::Missing`], [`LogError::Broken`] and [`LogError::Unavailable`].
    pub async fn end_at(&self, sequence: u64) -> Result<LogEnd, LogError> {
        if sequence == 0 {
            return Ok(LogEnd::default());
        }
        let Some(bytes) = self.get(sequence).await? else { return Err(self.missing(sequence, sequence + 1)) };
        match (Message::claimed_epoch(&bytes), Chain::claimed(&bytes)) {
            (Some(epoch), Some(chain)) => Ok(LogEnd { sequence, chain, epoch }),
            _ => Err(LogError::Broken { stream: self.name.clone(), sequence, reason: super::MessageError::Damaged }),
        }
    }

    /// Returns the sequences of the first and the last message, as far as they are known. Without any, the last one is one less.
    pub(super) fn bounds(&self) -> (u64, u64) {
        (self.bounds.first.load(Ordering::Acquire), self.bounds.last.load(Ordering::Acquire))
    }

    /// Asks for the bounds. The answer may be out of date.
    async fn ask_bounds(&self) -> Result<(u64, u64), LogError> {
        let state = self.stream.get_info().await.map_err(LogError::unavailable)?.state;
        self.bounds.first.fetch_max(state.first_sequence.max(1), Ordering::AcqRel);
        self.recorded(state.last_sequence);
        Ok(self.bounds())
    }

    /// Notes that there is a message with this sequence.
    pub(super) fn recorded(&self, sequence: u64) {
        self.bounds.last.fetch_max(sequence, Ordering::AcqRel);
    }

    /// Returns the bytes of one message; `None` if the leader has none with this sequence.
    pub(super) async fn get(&self, sequence: u64) -> Result<Option<Vec<u8>>, LogError> {
        use async_nats::jetstream::stream::LastRawMessageErrorKind::NoMessageFound;
        match self.stream.get_raw_message(sequence).await {
            Ok(message) => Ok(Some(message.payload.to_vec())),
            Err(error) if error.kind() == NoMessageFound => Ok(None),
            Err(error) => Err(LogError::unavailable(error)),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn missing(&self, wanted: u64, found: u64) -> LogError {
        LogError::Missing { stream: self.name.clone(), wanted, found }
    }
}
