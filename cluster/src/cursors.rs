//! How far the webhooks of a cluster have come: a bucket with a key for each, which only the owner of the project changes, by compare-and-set.

use std::time::Duration;

use async_nats::jetstream::kv::{Config, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, StorageType};
use headcount_common::{DocumentsError, SharedValues};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::connection::Connection;

const BUCKET: &str = "hc_hooks";
/// The most bytes of a value, which travels with each step.
const MAX_BYTES: usize = 200 << 10;
/// How long brokers may take to answer. A change without an answer may have been made.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Debug)]
pub(crate) struct Cursors {
    runtime: Handle,
    connection: Connection,
    replicas: usize,
    bucket: OnceCell<Store>,
}

fn unavailable(error: impl std::fmt::Display) -> DocumentsError {
    DocumentsError::Unavailable(error.to_string())
}

impl Cursors {
    /// Uses the bucket of a cluster, which is created on `replicas` brokers when it is first asked.
    pub(crate) fn new(runtime: &Handle, connection: &Connection, replicas: usize) -> Self {
        Self { runtime: runtime.clone(), connection: connection.clone(), replicas, bucket: OnceCell::new() }
    }

    async fn bucket(&self) -> Result<&Store, DocumentsError> {
        let open = async || {
            let config = Config {
                bucket: BUCKET.to_owned(),
                history: 1,
                storage: StorageType::File,
                num_replicas: self.replicas,
                ..Config::default()
            };
            self.connection.bucket(config).await.map_err(unavailable)
        };
        self.bucket.get_or_try_init(open).await
    }

    async fn get(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
        let bucket = self.bucket().await?;
        // From the leader. An outdated answer makes the next change fail.
        match bucket.stream.get_last_raw_message_by_subject(&format!("{}{key}", bucket.prefix)).await {
            // One that was removed is an empty message.
            Ok(message) if message.payload.is_empty() => Ok(None),
            Ok(message) => Ok(Some((message.payload.to_vec(), message.sequence))),
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => Ok(None),
            Err(error) => Err(unavailable(error)),
        }
    }

    fn answer<T>(&self, asked: impl Future<Output = Result<T, DocumentsError>>) -> Result<T, DocumentsError> {
        self.runtime.block_on(async { timeout(ANSWER_TIMEOUT, asked).await }).map_err(unavailable)?
    }
}

async fn update(bucket: &Store, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
    match bucket.update(key, value.to_vec().into(), revision).await {
        Ok(revision) => Ok(revision),
        Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Err(DocumentsError::Conflict),
        Err(error) => Err(DocumentsError::Undecided(error.to_string())),
    }
}

impl SharedValues for Cursors {
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
        self.answer(self.get(key))
    }

    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
        self.runtime.block_on(async {
            let bucket = timeout(ANSWER_TIMEOUT, self.bucket()).await.map_err(unavailable)??;
            // What is not answered may have been written.
            let written = timeout(ANSWER_TIMEOUT, update(bucket, key, value, revision)).await;
            written.map_err(|elapsed| DocumentsError::Undecided(elapsed.to_string()))?
        })
    }

    fn remove(&self, key: &str) -> Result<(), DocumentsError> {
        self.answer(async { self.bucket().await?.purge(key).await.map_err(unavailable) })
    }

    fn max_bytes(&self) -> usize {
        MAX_BYTES
    }
}
