//! The streams of partitions and of the control log.

use std::time::Instant;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::context::CreateStreamErrorKind;
use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use crate::connection::{Connection, FORMING, RETRY, says_too_few};

/// The name of a stream, and the subject of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName {
    /// The name.
    pub stream: String,
    /// The subject.
    pub subject: String,
}

/// The reason why a stream can't be created or deleted.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The stream exists with other settings.
    #[error(
        "the stream {0} exists with other settings: use the same --replicas and --max-bytes as before, or delete it (`nats stream rm {0}`)"
    )]
    Differs(String),
    /// The stream does not fit on the brokers.
    #[error(
        "the stream {stream} does not fit: {error}; brokers reserve --max-bytes for each of 64 streams: choose less, or raise `max_file_store` in their configuration"
    )]
    NoRoom {
        /// The stream.
        stream: String,
        /// The error of the brokers.
        error: String,
    },
    /// Too few brokers are there to keep its copies.
    #[error("the stream {stream} can't be created, since too few brokers are there for its copies: {error}")]
    TooFewBrokers {
        /// The stream.
        stream: String,
        /// The error of the brokers.
        error: String,
    },
    /// The brokers don't answer, or refuse the operation.
    #[error("could not {doing} the stream {stream}: {error}")]
    Unavailable {
        /// The operation.
        doing: &'static str,
        /// The stream.
        stream: String,
        /// The error of the brokers.
        error: String,
    },
}

impl StreamName {
    /// Returns the name of the stream of a partition of the cluster.
    pub fn of_partition(partition: u16) -> Self {
        Self { stream: format!("EV_{partition:03}"), subject: format!("ev.{partition:03}") }
    }

    /// Returns the name of the stream of the control log.
    pub fn control() -> Self {
        Self { stream: "HC_CTL".to_owned(), subject: "hc.ctl".to_owned() }
    }

    /// Returns the name of the stream of shared snapshots of the control data.
    pub fn snapshots() -> Self {
        Self { stream: "HC_CTL_SNAP".to_owned(), subject: "hc.snap".to_owned() }
    }

    /// Creates the stream of a partition's log, as [`Self::create`] does, unless it exists with the
    /// same settings. Returns the sequence of its last message, or 0 if it never had one.
    pub(crate) async fn make(&self, connection: &Connection, replicas: usize, max_bytes: i64) -> Result<u64, StreamError> {
        self.make_as(connection, self.config(replicas, max_bytes)).await
    }

    /// Makes `first` the sequence of the first message of a stream that never had one, as if all
    /// messages before had been removed. Creating the stream with `first_seq` is not an option:
    /// while it has its first message, brokers 2.10.27 lose all messages when they restart. Brokers
    /// 2.15.1 keep them.
    pub(crate) async fn begin_at(&self, connection: &Connection, first: u64) -> Result<(), StreamError> {
        let failed = |error: String| StreamError::Unavailable { doing: "begin", stream: self.stream.clone(), error };
        let stream = connection.context.get_stream_no_info(&self.stream).await.map_err(|error| failed(error.to_string()))?;
        stream.purge().sequence(first).await.map(drop).map_err(|error| failed(error.to_string()))
    }

    /// Creates the stream of shared snapshots, whose messages can be deleted one by one, unless it
    /// exists.
    ///
    /// # Errors
    /// The error of the brokers.
    pub(crate) async fn make_deletable(&self, connection: &Connection, replicas: usize) -> Result<(), String> {
        let config = Config { deny_delete: false, ..self.config(replicas, -1) };
        connection.context.get_or_create_stream(config).await.map(drop).map_err(|error| error.to_string())
    }

    /// Waits until enough brokers are there.
    async fn make_as(&self, connection: &Connection, config: Config) -> Result<u64, StreamError> {
        let began = Instant::now();
        loop {
            match self.try_to_make(connection, config.clone()).await {
                Err(StreamError::TooFewBrokers { .. }) if began.elapsed() < FORMING => tokio::time::sleep(RETRY).await,
                made => return made,
            }
        }
    }

    async fn try_to_make(&self, connection: &Connection, config: Config) -> Result<u64, StreamError> {
        let error = match connection.context.create_stream(config).await {
            Ok(stream) => return Ok(stream.cached_info().state.last_sequence),
            Err(error) => error,
        };
        let (stream, text) = (self.stream.clone(), error.to_string());
        let code = match error.kind() {
            CreateStreamErrorKind::JetStream(error) => error.error_code(),
            _ => return Err(StreamError::Unavailable { doing: "create", stream, error: text }),
        };
        Err(match code {
            ErrorCode::STREAM_NAME_EXIST => StreamError::Differs(stream),
            ErrorCode::CLUSTER_NO_PEERS if says_too_few(&text) => StreamError::TooFewBrokers { stream, error: text },
            ErrorCode::STORAGE_RESOURCES_EXCEEDED | ErrorCode::INSUFFICIENT_RESOURCES | ErrorCode::CLUSTER_NO_PEERS => {
                StreamError::NoRoom { stream, error: text }
            }
            _ => StreamError::Unavailable { doing: "create", stream, error: text },
        })
    }

    /// Creates the stream of a log on `replicas` brokers, with at most `max_bytes`. Messages stay
    /// until they are purged. A full stream refuses further messages.
    ///
    /// # Errors
    /// Returns a [`StreamError`].
    pub async fn create(&self, connection: &Connection, replicas: usize, max_bytes: i64) -> Result<(), StreamError> {
        self.make(connection, replicas, max_bytes).await.map(drop)
    }

    /// Deletes the stream.
    ///
    /// # Errors
    /// Returns [`StreamError::Unavailable`].
    pub async fn delete(&self, connection: &Connection) -> Result<(), StreamError> {
        let deleted = connection.context.delete_stream(&self.stream).await;
        deleted.map(drop).map_err(|error| StreamError::Unavailable {
            doing: "delete",
            stream: self.stream.clone(),
            error: error.to_string(),
        })
    }

    fn config(&self, replicas: usize, max_bytes: i64) -> Config {
        Config {
            name: self.stream.clone(),
            subjects: vec![self.subject.clone()],
            max_bytes,
            max_messages: -1,
            max_messages_per_subject: -1,
            max_consumers: -1,
            discard: DiscardPolicy::New,
            retention: RetentionPolicy::Limits,
            storage: StorageType::File,
            num_replicas: replicas,
            deny_delete: true,
            // Only the leader knows the contents of a stream.
            allow_direct: false,
            ..Config::default()
        }
    }
}
