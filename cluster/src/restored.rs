//! Gives a cluster new entity tags after its brokers and files were restored from copies, because
//! its positions then stand for other events.

use headcount_storage::format::Incarnation;

use crate::cells::KvCells;
use crate::commands::ClusterError;
use crate::connection::{Connection, Credentials};
use crate::lease::Timing;
use crate::node;
use crate::record::{BUCKET, ClusterRecord};

/// Gives the answers of a restored cluster another incarnation, so that entity tags and cursors
/// from the lost time don't match any new answer. It can be repeated: each time, clients load
/// everything again. Waits until nodes that stopped are known to be gone.
///
/// # Errors
/// Returns a [`ClusterError`]: the tags are the same as before, unless the brokers did not answer.
pub async fn restored(brokers: &[String], credentials: &Credentials, timing: Timing) -> Result<ClusterRecord, ClusterError> {
    let connection = Connection::open(brokers, credentials).await?;
    let record = ClusterRecord::read(&connection).await?.ok_or(ClusterError::NotPutBack)?;
    let cells = KvCells::existing(&connection, BUCKET);
    let first = node::seen(&cells).await?;
    let running = node::live(&cells, &first, |_| true, timing).await?;
    if !running.is_empty() {
        return Err(ClusterError::Running(running));
    }
    let answers = Incarnation::random().map_err(ClusterError::Random)?;
    Ok(record.restore(&connection, answers).await?)
}
