//! A cluster whose brokers and files were put back from copies: its positions stand for other events than before.

use headcount_storage::format::Incarnation;

use crate::cells::KvCells;
use crate::commands::ClusterError;
use crate::connection::{Connection, Credentials};
use crate::lease::Timing;
use crate::node;
use crate::record::{BUCKET, ClusterRecord};

/// Gives the answers of a cluster that was restored from copies another incarnation, so that no entity tag or cursor of the time that is lost stands for what nodes answer from
/// now on. It can be repeated: each time, clients ask anew. Waits until nodes that do not run any more are known to be gone.
///
/// # Errors
/// [`ClusterError`]: the tags are the same as before, unless the brokers did not answer.
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
