//! Values of a cluster, such as how far notifications are sent: a bucket with a key for each, which
//! only the owner of the project changes, by compare-and-set.

use async_nats::jetstream::kv::Config;
use headcount_common::{DocumentsError, SharedValues};
use tokio::runtime::Handle;

use crate::cells::{KvCells, Unanswered};
use crate::connection::Connection;

const BUCKET: &str = "hc_hooks";
/// The most bytes of a value, which travels with each step.
const MAX_BYTES: usize = 200 << 10;

/// See the module.
#[derive(Debug)]
pub(crate) struct Cursors {
    runtime: Handle,
    cells: KvCells,
}

impl From<Unanswered> for DocumentsError {
    fn from(Unanswered(why): Unanswered) -> Self {
        Self::Unavailable(why)
    }
}

impl Cursors {
    /// Uses the bucket of a cluster, which is created on `replicas` brokers when it is first asked.
    pub(crate) fn new(runtime: &Handle, connection: &Connection, replicas: usize) -> Self {
        let bucket = Config { bucket: BUCKET.to_owned(), ..Config::default() };
        Self { runtime: runtime.clone(), cells: KvCells::created(connection, replicas, bucket) }
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
            let written = self.cells.change(key, value.to_vec(), revision).await;
            written.map_err(|Unanswered(why)| DocumentsError::Undecided(why))?.ok_or(DocumentsError::Conflict)
        })
    }

    fn remove(&self, key: &str) -> Result<(), DocumentsError> {
        Ok(self.runtime.block_on(self.cells.delete(key))?)
    }

    fn max_bytes(&self) -> usize {
        MAX_BYTES
    }
}
