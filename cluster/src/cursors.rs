//! Values of a cluster: a bucket with a key for each, which changes by compare-and-set. How far
//! webhooks have come, and sign-in codes.

use std::time::Duration;

use async_nats::jetstream::kv::Config;
use async_nats::jetstream::stream::StorageType;
use headcount_common::{DocumentsError, SharedValues};
use headcount_control::SIGN_IN_CODE_SECONDS;
use tokio::runtime::Handle;

use crate::cells::{KvCells, Unanswered};
use crate::connection::Connection;

/// The most bytes of a value, which travels with each step.
const MAX_BYTES: usize = 200 << 10;
/// Room for some 50,000 codes. When it is full, no more codes are made until earlier ones have
/// expired.
const CODES_BYTES: i64 = 16 << 20;

/// See the module.
#[derive(Debug)]
pub(crate) struct Cursors {
    runtime: Handle,
    cells: KvCells,
    /// Whether the values are in the memory of the brokers, and gone with it. A removed one leaves
    /// nothing then.
    is_in_memory: bool,
}

impl From<Unanswered> for DocumentsError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

impl Cursors {
    /// Uses the progress of a cluster's webhooks, which only the owner of a project changes. The
    /// first access creates it on `replicas` brokers.
    pub(crate) fn new(runtime: &Handle, connection: &Connection, replicas: usize) -> Self {
        let bucket = Config { bucket: "hc_hooks".to_owned(), ..Config::default() };
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket), is_in_memory: false }
    }

    /// Uses the sign-in codes of a cluster, which expire by themselves. Any node accepts a code
    /// that another node has made.
    pub(crate) fn sign_in_codes(runtime: &Handle, connection: &Connection, replicas: usize) -> Self {
        let bucket = Config {
            bucket: "hc_codes".to_owned(),
            max_age: Duration::from_secs(SIGN_IN_CODE_SECONDS.unsigned_abs()),
            max_bytes: CODES_BYTES,
            storage: StorageType::Memory,
            ..Config::default()
        };
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket), is_in_memory: true }
    }

    async fn change(&self, key: &str, value: &[u8], revision: u64) -> Result<Option<u64>, Unanswered> {
        match self.cells.change(key, value.to_vec(), revision).await {
            Err(error) if self.is_in_memory => {
                tracing::debug!(%error, "a bucket in the memory of the brokers is opened again");
                self.cells.close();
                self.cells.ready().await?;
                self.cells.change(key, value.to_vec(), revision).await
            }
            changed => changed,
        }
    }
}

impl SharedValues for Cursors {
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
        let found = self.runtime.block_on(self.cells.read(key))?;
        // One that was removed is empty.
        Ok(found.filter(|cell| !cell.value.is_empty()).map(|cell| (cell.value.to_vec(), cell.revision)))
    }

    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
        self.runtime.block_on(async {
            self.cells.ready().await?;
            // What is not answered may have been written.
            let written = self.change(key, value, revision).await;
            written.map_err(|Unanswered(why)| DocumentsError::Undecided(why))?.ok_or(DocumentsError::Conflict)
        })
    }

    fn remove(&self, key: &str) -> Result<(), DocumentsError> {
        Ok(self.runtime.block_on(async {
            match self.is_in_memory {
                true => self.cells.purge(key, None).await,
                false => self.cells.delete(key).await,
            }
        })?)
    }

    fn max_bytes(&self) -> usize {
        MAX_BYTES
    }
}
