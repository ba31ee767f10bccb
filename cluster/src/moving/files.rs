//! The files of projects that have lost events: they are published as the archives of their partitions.

use std::collections::BTreeMap;

use headcount_actors::MovingSource;
use headcount_common::SharedArchive as _;
use tokio::runtime::Handle;

use super::error::MoveError;
use crate::connection::Connection;
use crate::files::{Bucket, SharedFiles};
use crate::log::{last_of, sequence_of};
use crate::record::ClusterRecord;

/// The partitions with files, each with the sequence of the first message of its stream: behind all positions of its files.
pub(super) fn first_messages(source: &MovingSource) -> BTreeMap<u16, u64> {
    source.partitions_with_files().into_iter().map(|(partition, until)| (partition, sequence_of(until) + 1)).collect()
}

/// Publishes the archives of these partitions for the owner of `epoch`, who has begun it in their streams. Each has the first message of the stream sealed, which has no events. What an earlier attempt has
/// published, perhaps elsewhere, counts no more.
pub(super) fn publish(
    source: &MovingSource,
    (runtime, connection): (&Handle, &Connection),
    record: &ClusterRecord,
    bucket: &Bucket,
    (epoch, first): (u64, &BTreeMap<u16, u64>),
) -> Result<(), MoveError> {
    let open = async { SharedFiles::open_anew(connection, record, bucket).await };
    let files = runtime.block_on(open)?;
    for (partition, first) in first {
        let root = source.lay_out_archive(*partition, last_of(*first))?;
        runtime.block_on(files.replace(*partition, epoch))?;
        files.publish(*partition, &root, &|| false)?;
    }
    Ok(())
}
