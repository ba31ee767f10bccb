//! Reading the log of a partition.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use futures_util::StreamExt as _;

use super::message::Message;
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

/// Reads a partition's log.
#[derive(Debug, Clone)]
pub struct LogReader {
    stream: Stream<()>,
    name: String,
}

impl LogReader {
    /// Opens the log in the stream `name`.
    ///
    /// # Errors
    /// [`LogError::Unavailable`].
    pub async fn open(connection: &Connection, name: &str) -> Result<Self, LogError> {
        let stream = connection.context.get_stream_no_info(name).await.map_err(LogError::unavailable)?;
        Ok(Self { stream, name: name.to_owned() })
    }

    /// Passes each message after `end` to `visit`, with its sequence, up to the one that was the last at the call. Returns the new end; an answer about the
    /// last message may be out of date, so that more may follow.
    ///
    /// # Errors
    /// [`LogError::Broken`], [`LogError::Missing`] and [`LogError::Unavailable`]: messages before the failure have been visited.
    pub async fn read(&self, end: LogEnd, visit: &mut (dyn FnMut(u64, Message) + Send)) -> Result<LogEnd, LogError> {
        let info = self.stream.get_info().await.map_err(LogError::unavailable)?;
        if info.state.first_sequence > end.sequence + 1 {
            return Err(self.missing(end.sequence + 1, info.state.first_sequence));
        }
        let (mut end, mut fruitless) = (end, 0);
        while end.sequence < info.state.last_sequence {
            let before = end.sequence;
            match self.read_some(&mut end, info.state.last_sequence, visit).await {
                Ok(()) => {}
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
    async fn read_some(&self, end: &mut LogEnd, last: u64, visit: &mut (dyn FnMut(u64, Message) + Send)) -> Result<(), LogError> {
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
                self.take(end, sequence, &message.payload, visit)?;
            }
            if end.sequence >= last || end.sequence == before {
                return Ok(());
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

    /// Decodes the message that follows `end`, and passes it on.
    fn take(
        &self,
        end: &mut LogEnd,
        sequence: u64,
        bytes: &[u8],
        visit: &mut (dyn FnMut(u64, Message) + Send),
    ) -> Result<(), LogError> {
        let broken = |reason| LogError::Broken { stream: self.name.clone(), sequence, reason };
        let (message, chain) = Message::decode(bytes, end.chain).map_err(broken)?;
        // Who writes with an epoch that is over has not read its end.
        if message.epoch < end.epoch {
            return Err(broken(super::MessageError::Unchained));
        }
        *end = LogEnd { sequence, chain, epoch: message.epoch };
        visit(sequence, message);
        Ok(())
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
