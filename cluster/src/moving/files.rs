//! Publishes the files of projects that have lost events, as the archives of their partitions.

use std::collections::BTreeMap;

use headcount_actors::MovingSource;
use headcount_common::SharedArchive as _;
use tokio::runtime::Handle;

use super::error::MoveError;
use crate::connection::Connection;
use crate::files::{Bucket, SharedFiles};
use crate::log::{last_of, sequence_of};
use crate::record::ClusterRecord;

/// The partitions with files, each with the sequence of its stream's first message, which is after
/// all positions in the files.
pub(super) fn first_messages(source: &MovingSource) -> BTreeMap<u16, u64> {
    source.partitions_with_files().into_iter().map(|(partition, until)| (partition, sequence_of(until) + 1)).collect()
}

/// Publishes the archives of these partitions for the owner of `epoch`, which has begun in their
/// streams. Each archive is sealed up to the first message of the stream, which has no events.
/// Archives of an earlier attempt, perhaps at another place, are replaced.
pub(super) fn publish(
    source: &MovingSource,
    (runtime, connection): (&Handle, &Connection),
    record: &ClusterRecord,
    bucket: &Bucket,
    (epoch, first): (u64, &BTreeMap<u16, u64>),
) -> Result<(), MoveError> {
    let open = async { SharedFiles::open_new(connection, record, bucket).await };
    let files = runtime.block_on(open)?;
    for (partition, first) in first {
        let root = source.lay_out_archive(*partition, last_of(*first))?;
        runtime.block_on(files.replace(*partition, epoch))?;
        files.publish(*partition, &root, &|| false)?;
    }
    Ok(())
}
