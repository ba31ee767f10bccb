//! Fetches messages from a place in the log of a partition.

use std::ops::ControlFlow;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, Consumer, DeliverPolicy, pull};
use futures_util::StreamExt as _;

use super::message::{Content, MAX_MESSAGE_BYTES, Message, MessageError};
use super::reader::LogReader;
use super::{LogEnd, LogError};

/// The number of bytes of one request: at least one message of the largest size.
const FETCHED_BYTES: usize = MAX_MESSAGE_BYTES + (64 << 10);
const FETCHED_MESSAGES: usize = 512;
/// How long to wait for the next message of a request.
const NEXT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long brokers keep an idle consumer.
const CONSUMER_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of requests in a row that may deliver nothing, although there are messages, before
/// that is an error.
const MAX_FRUITLESS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Fetches the messages after an end in order, up to a last message.
pub(crate) struct LogCursor {
    reader: LogReader,
    end: LogEnd,
    last: u64,
    /// The consumer that delivers the next message; `None` before the first request, and after a
    /// failed request.
    consumer: Option<Consumer<pull::Config>>,
}

impl LogReader {
    /// Passes each message after `end` to `visit`, with the new end, up to the message that was the
    /// last one at the call, or until `visit` breaks. Returns the new end. The answer about the
    /// last message may be out of date, so more messages may follow.
    ///
    /// # Errors
    /// Returns [`LogError::Broken`], [`LogError::Missing`] or [`LogError::Unavailable`]. Messages
    /// before the failure have been visited.
    pub async fn read(
        &self,
        end: LogEnd,
        visit: &mut impl FnMut(LogEnd, Message) -> ControlFlow<()>,
    ) -> Result<LogEnd, LogError> {
        let (mut end, mut cursor) = (end, self.cursor(end).await?);
        loop {
            let messages = cursor.next().await?;
            if messages.is_empty() {
                return Ok(end);
            }
            for (at, message) in messages {
                end = at;
                if visit(at, message).is_break() {
                    return Ok(end);
                }
            }
        }
    }

    /// Returns a cursor that reads the messages after `end`, up to the current last message.
    ///
    /// # Errors
    /// Returns [`LogError::Missing`] or [`LogError::Unavailable`].
    pub(crate) async fn cursor(&self, end: LogEnd) -> Result<LogCursor, LogError> {
        let (first, last) = self.ask_bounds().await?;
        if first > end.sequence + 1 {
            return Err(self.missing(end.sequence + 1));
        }
        Ok(LogCursor { reader: self.clone(), end, last, consumer: None })
    }
}

impl LogCursor {
    /// Returns some of the next messages, each with the end of the log at it. Returns none after
    /// the last message.
    ///
    /// # Errors
    /// Returns [`LogError::Broken`], [`LogError::Missing`] or [`LogError::Unavailable`].
    pub(crate) async fn next(&mut self) -> Result<Vec<(LogEnd, Message)>, LogError> {
        for fruitless in 0..=MAX_FRUITLESS {
            if self.end.sequence >= self.last {
                self.forget_consumer().await;
                return Ok(Vec::new());
            }
            tokio::time::sleep(PAUSE * fruitless).await;
            let mut found = Vec::new();
            match self.fetch(&mut found).await {
                // The messages before the failure are valid.
                Ok(()) | Err(LogError::Unavailable(_)) if !found.is_empty() => return Ok(found),
                Ok(()) => self.consumer = None,
                Err(LogError::Unavailable(reason)) => {
                    tracing::info!(stream = &self.reader.name, reason, "asking for messages once more");
                    self.consumer = None;
                }
                Err(error) => return Err(error),
            }
        }
        let next = self.end.sequence + 1;
        let (first, _) = self.reader.ask_bounds().await?;
        match self.reader.get(next).await? {
            Some(_) if first <= next => {
                Err(LogError::Unavailable(format!("message {next} of {} is not delivered", &self.reader.name)))
            }
            _ => Err(self.reader.missing(next)),
        }
    }

    /// Adds the messages of one request.
    async fn fetch(&mut self, found: &mut Vec<(LogEnd, Message)>) -> Result<(), LogError> {
        let consumer = match self.consumer.take() {
            Some(consumer) => consumer,
            None => self.create_consumer().await?,
        };
        let fetch = consumer.fetch().max_messages(FETCHED_MESSAGES).max_bytes(FETCHED_BYTES).expires(NEXT_TIMEOUT);
        let mut batch = fetch.messages().await.map_err(LogError::unavailable)?;
        while self.end.sequence < self.last {
            let next = tokio::time::timeout(NEXT_TIMEOUT, batch.next()).await.map_err(LogError::unavailable)?;
            let Some(message) = next else { break };
            let message = match message {
                Ok(message) => message,
                // The request ends when it has delivered the requested bytes. If this is another
                // failure, the next request shows it.
                Err(_) if !found.is_empty() => break,
                Err(error) => return Err(LogError::unavailable(error)),
            };
            let sequence = message.info().map_err(LogError::unavailable)?.stream_sequence;
            if sequence != self.end.sequence + 1 {
                return Err(LogError::Unavailable(format!("message {sequence} came instead of {}", self.end.sequence + 1)));
            }
            found.push(self.take(sequence, &message.payload)?);
        }
        self.consumer = Some(consumer);
        Ok(())
    }

    /// Decodes the message that follows the end, and advances the end.
    fn take(&mut self, sequence: u64, bytes: &[u8]) -> Result<(LogEnd, Message), LogError> {
        let (message, chain) = Message::decode(bytes, self.end.chain).map_err(|reason| self.reader.broken(sequence, reason))?;
        // An epoch begins with its own message, and ends with the message of a later epoch.
        let follows = match message.content {
            Content::Epoch => message.epoch > self.end.epoch,
            Content::Events(_) => message.epoch == self.end.epoch,
        };
        if !follows {
            return Err(self.reader.broken(sequence, MessageError::Unchained));
        }
        self.end = LogEnd { sequence, chain, epoch: message.epoch };
        Ok((self.end, message))
    }

    async fn create_consumer(&self) -> Result<Consumer<pull::Config>, LogError> {
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.end.sequence + 1 },
            ack_policy: AckPolicy::None,
            inactive_threshold: CONSUMER_TIMEOUT,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        };
        self.reader.stream.create_consumer(config).await.map_err(LogError::unavailable)
    }

    /// Deletes the consumer. If that fails, the brokers delete it after a while.
    async fn forget_consumer(&mut self) {
        if let Some(consumer) = self.consumer.take()
            && let Err(error) = self.reader.stream.delete_consumer(&consumer.cached_info().name).await
        {
            tracing::debug!(stream = &self.reader.name, %error, "a consumer is left to its time limit");
        }
    }
}
