//! The sign-in codes of a cluster. Any node accepts a code that another node has made.
//!
//! They are in a bucket in the memory of the brokers. Its keys are hashes of codes, and expire by
//! themselves. The first node that uses a code empties its key.

use std::time::Duration;

use async_nats::jetstream::kv::{Config, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, StorageType};
use bytes::Bytes;
use headcount_control::{SIGN_IN_CODE_SECONDS, SharedCodes, SharedCodesError};
use parking_lot::Mutex;
use tokio::runtime::Handle;

use super::timing::NodeError;
use crate::connection::Connection;

const BUCKET: &str = "hc_codes";
/// Room for some 50,000 codes. When it is full, no more codes are made until earlier ones have
/// expired.
const MAX_BYTES: i64 = 16 << 20;

/// The codes of all nodes.
pub(super) struct Codes {
    runtime: Handle,
    connection: Connection,
    replicas: usize,
    store: Mutex<Store>,
}

impl Codes {
    /// Opens the bucket, or creates it on `replicas` brokers.
    pub(super) async fn open(runtime: &Handle, connection: &Connection, replicas: usize) -> Result<Self, NodeError> {
        let store = Mutex::new(open_bucket(connection, replicas).await?);
        Ok(Self { runtime: runtime.clone(), connection: connection.clone(), replicas, store })
    }

    async fn put(&self, key: &str, value: &[u8]) -> Result<(), NodeError> {
        let store = self.store.lock().clone();
        let Err(error) = store.put(key, value.to_vec().into()).await else { return Ok(()) };
        tracing::debug!(%error, "the bucket of sign-in codes is opened again");
        // The bucket may be gone with the memory of the brokers.
        let store = open_bucket(&self.connection, self.replicas).await?;
        *self.store.lock() = store.clone();
        store.put(key, value.to_vec().into()).await.map(drop).map_err(NodeError::unavailable)
    }

    /// Removes a value that nobody will take any more. It leaves no empty message, unlike a used
    /// code.
    async fn remove(&self, key: &str) -> Result<(), NodeError> {
        let store = self.store.lock().clone();
        let purge = store.stream.purge().filter(format!("{}{key}", store.prefix));
        purge.await.map(drop).map_err(NodeError::unavailable)
    }

    async fn take_once(&self, key: &str) -> Result<Option<Vec<u8>>, NodeError> {
        let store = self.store.lock().clone();
        // Read from the leader.
        let found = match store.stream.get_last_raw_message_by_subject(&format!("{}{key}", store.prefix)).await {
            Ok(message) => message,
            Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
            Err(error) => return Err(NodeError::unavailable(error)),
        };
        // A used code is an empty message.
        if found.payload.is_empty() {
            return Ok(None);
        }
        match store.update(key, Bytes::new(), found.sequence).await {
            Ok(_) => Ok(Some(found.payload.to_vec())),
            Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => Ok(None),
            Err(error) => Err(NodeError::unavailable(error)),
        }
    }
}

impl SharedCodes for Codes {
    fn keep(&self, key: &str, value: &[u8]) -> Result<(), SharedCodesError> {
        Ok(self.runtime.block_on(self.put(key, value))?)
    }

    fn end(&self, key: &str) -> Result<(), SharedCodesError> {
        Ok(self.runtime.block_on(self.remove(key))?)
    }

    fn take(&self, key: &str) -> Result<Option<Vec<u8>>, SharedCodesError> {
        Ok(self.runtime.block_on(self.take_once(key))?)
    }
}

async fn open_bucket(connection: &Connection, replicas: usize) -> Result<Store, NodeError> {
    let config = Config {
        bucket: BUCKET.to_owned(),
        history: 1,
        max_age: Duration::from_secs(SIGN_IN_CODE_SECONDS.unsigned_abs()),
        max_bytes: MAX_BYTES,
        storage: StorageType::Memory,
        num_replicas: replicas,
        ..Config::default()
    };
    connection.bucket(config).await.map_err(NodeError::unavailable)
}
