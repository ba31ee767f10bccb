//! The streams of partitions.

use async_nats::jetstream::stream::{Config, DiscardPolicy, RetentionPolicy, StorageType};

use crate::connection::Connection;
use crate::log::LogError;

/// The name of a stream, and the subject of its messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamName {
    /// The name.
    pub stream: String,
    /// The subject.
    pub subject: String,
}

impl StreamName {
    /// Creates the stream of a log: on `replicas` brokers, and of `max_bytes` at most. What is in it stays there until it is purged; when it is full, it
    /// refuses more.
    ///
    /// # Errors
    /// [`LogError::Unavailable`].
    pub async fn create(&self, connection: &Connection, replicas: usize, max_bytes: i64) -> Result<(), LogError> {
        let created = connection.context.create_stream(self.config(replicas, max_bytes)).await;
        created.map(drop).map_err(LogError::unavailable)
    }

    /// Deletes the stream.
    ///
    /// # Errors
    /// [`LogError::Unavailable`].
    pub async fn delete(&self, connection: &Connection) -> Result<(), LogError> {
        connection.context.delete_stream(&self.stream).await.map(drop).map_err(LogError::unavailable)
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
            // Only the leader may say what a stream holds.
            allow_direct: false,
            ..Config::default()
        }
    }
}
