//! Small values of a cluster, which nodes change by compare-and-set: those that belong to
//! documents, such as what was sent, and the sign-in codes. Each bucket is created when it is first
//! asked.

use std::time::Duration;

use async_nats::jetstream::kv::Config;
use async_nats::jetstream::stream::StorageType;
use headcount_common::{DocumentsError, SharedValues};
use headcount_control::SIGN_IN_CODE_SECONDS;
use tokio::runtime::Handle;

use crate::cells::{KvCells, Unanswered};
use crate::connection::Connection;

const OF_DOCUMENTS: &str = "hc_hooks";
/// Its keys are hashes of codes. A code that was used is empty until its key vanishes, so that no
/// other node accepts it.
const CODES: &str = "hc_codes";
/// Room for some 50,000 codes. When it is full, no more codes are made until earlier ones have
/// expired.
const MAX_BYTES_OF_CODES: i64 = 16 << 20;
/// The most bytes of a value, which travels with each step.
const MAX_BYTES: usize = 200 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct BrokerValues {
    runtime: Handle,
    cells: KvCells,
}

impl From<Unanswered> for DocumentsError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

impl BrokerValues {
    /// The values that belong to documents. Only one kind has some.
    pub(crate) fn of_documents(runtime: &Handle, connection: &Connection, replicas: usize) -> Self {
        let bucket = Config { bucket: OF_DOCUMENTS.to_owned(), ..Config::default() };
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket) }
    }

    /// The sign-in codes, in the memory of the brokers.
    pub(crate) fn of_codes(runtime: &Handle, connection: &Connection, replicas: usize) -> Self {
        let bucket = Config {
            bucket: CODES.to_owned(),
            max_age: Duration::from_secs(SIGN_IN_CODE_SECONDS.unsigned_abs()),
            max_bytes: MAX_BYTES_OF_CODES,
            storage: StorageType::Memory,
            ..Config::default()
        };
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket) }
    }
}

impl SharedValues for BrokerValues {
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
        let found = self.runtime.block_on(self.cells.read(key))?;
        // One that was removed is empty.
        Ok(found.filter(|cell| !cell.value.is_empty()).map(|cell| (cell.value.to_vec(), cell.revision)))
    }

    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
        self.runtime.block_on(async {
            self.cells.ready().await?;
            let written = self.cells.change(key, value.to_vec(), revision).await;
            let written = written.map_err(|Unanswered(why)| {
                // A bucket in memory may be gone with it.
                self.cells.close();
                DocumentsError::Undecided(why)
            });
            written?.ok_or(DocumentsError::Conflict)
        })
    }

    fn remove(&self, key: &str) -> Result<(), DocumentsError> {
        Ok(self.runtime.block_on(self.cells.purge(key, None))?)
    }

    fn max_bytes(&self) -> usize {
        MAX_BYTES
    }
}
