//! The names that a cluster uses on its brokers.

use crate::stream::StreamName;

/// The bucket of leases and nodes.
pub const BUCKET: &str = "hc";

/// Returns the stream of a partition.
#[must_use]
pub fn partition_stream(partition: u16) -> StreamName {
    StreamName { stream: format!("EV_{partition:03}"), subject: format!("ev.{partition:03}") }
}

/// Returns the key of a partition's lease.
pub(crate) fn lease_key(partition: u16) -> String {
    format!("lease.{partition:03}")
}
