//! Small values of a cluster, which nodes change by compare-and-set: those that belong to
//! documents, such as what was sent, the counts of dropped events, and the sign-in codes. Each
//! bucket is created when it is first asked.

use std::time::Duration;

use async_nats::jetstream::kv::Config;
use async_nats::jetstream::stream::StorageType;
use headcount_common::{DocumentsError, SharedValues};
use headcount_control::SIGN_IN_CODE_SECONDS;
use tokio::runtime::Handle;

use crate::cells::{KvCells, Unanswered};
use crate::connection::Connection;

/// The bucket of values that belong to documents, of which only one kind has some, and the most
/// bytes of a value, which travels with each step.
pub(crate) const OF_DOCUMENTS: (&str, usize) = ("hc_hooks", MAX_BYTES);
/// The bucket of the counts of dropped events. A value has room for some 5,000 projects of a
/// partition, in a message of a broker that takes no more than 1 MB.
pub(crate) const COUNTS: (&str, usize) = ("hc_intake", 512 << 10);
/// Its keys are hashes of codes. A code that was used is empty until its key vanishes, so that no
/// other node accepts it.
const CODES: &str = "hc_codes";
/// Room for some 50,000 codes. When it is full, no more codes are made until earlier ones have
/// expired.
const MAX_BYTES_OF_CODES: i64 = 16 << 20;
const MAX_BYTES: usize = 200 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct BrokerValues {
    runtime: Handle,
    cells: KvCells,
    max_bytes: usize,
}

impl From<Unanswered> for DocumentsError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

impl BrokerValues {
    /// The values of a bucket on the disks of the brokers: [`OF_DOCUMENTS`] or [`COUNTS`].
    pub(crate) fn new((runtime, connection, replicas): (&Handle, &Connection, usize), of: (&str, usize)) -> Self {
        let bucket = Config { bucket: of.0.to_owned(), ..Config::default() };
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket), max_bytes: of.1 }
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
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket), max_bytes: MAX_BYTES }
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

    fn keys(&self, prefix: &str) -> Result<Vec<String>, DocumentsError> {
        Ok(self.runtime.block_on(self.cells.keys(prefix))?)
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}
