//! The sign-in codes of a cluster. Any node accepts a code that another node has made.
//!
//! They are in a bucket in the memory of the brokers. Its keys are hashes of codes, and expire by
//! themselves. The first node that uses a code empties its key.

use std::time::Duration;

use async_nats::jetstream::kv::Config;
use async_nats::jetstream::stream::StorageType;
use bytes::Bytes;
use headcount_control::{SIGN_IN_CODE_SECONDS, SharedCodes, SharedCodesError};
use tokio::runtime::Handle;

use super::timing::NodeError;
use crate::cells::{Cell, KvCells};
use crate::connection::Connection;

const BUCKET: &str = "hc_codes";
/// Room for some 50,000 codes. When it is full, no more codes are made until earlier ones have
/// expired.
const MAX_BYTES: i64 = 16 << 20;

/// The codes of all nodes.
pub(super) struct Codes {
    runtime: Handle,
    cells: KvCells,
}

impl Codes {
    /// Opens the bucket, or creates it on `replicas` brokers.
    pub(super) async fn open(runtime: &Handle, connection: &Connection, replicas: usize) -> Result<Self, NodeError> {
        let bucket = Config {
            bucket: BUCKET.to_owned(),
            max_age: Duration::from_secs(SIGN_IN_CODE_SECONDS.unsigned_abs()),
            max_bytes: MAX_BYTES,
            storage: StorageType::Memory,
            ..Config::default()
        };
        let cells = KvCells::created(connection, replicas, bucket);
        cells.open().await?;
        Ok(Self { runtime: runtime.clone(), cells })
    }

    async fn put(&self, key: &str, value: &[u8]) -> Result<(), NodeError> {
        let Err(error) = self.cells.put(key, value.to_vec()).await else { return Ok(()) };
        tracing::debug!(%error, "the bucket of sign-in codes is opened again");
        // It may be gone with the memory of the brokers.
        self.cells.close();
        self.cells.open().await?;
        Ok(self.cells.put(key, value.to_vec()).await.map(drop)?)
    }

    async fn take_once(&self, key: &str) -> Result<Option<Vec<u8>>, NodeError> {
        // One that was used is empty.
        let found = self.cells.read(key).await?.filter(|cell| !cell.value.is_empty());
        let Some(Cell { value, revision }) = found else { return Ok(None) };
        let taken = self.cells.change(key, Bytes::new(), revision).await?;
        Ok(taken.map(|_| value.to_vec()))
    }
}

impl SharedCodes for Codes {
    fn keep(&self, key: &str, value: &[u8]) -> Result<(), SharedCodesError> {
        Ok(self.runtime.block_on(self.put(key, value))?)
    }

    fn end(&self, key: &str) -> Result<(), SharedCodesError> {
        // Unlike a used code, it leaves no empty message, since it need not be kept from a second
        // use.
        Ok(self.runtime.block_on(self.cells.purge(key, None)).map_err(NodeError::from)?)
    }

    fn take(&self, key: &str) -> Result<Option<Vec<u8>>, SharedCodesError> {
        Ok(self.runtime.block_on(self.take_once(key))?)
    }
}
