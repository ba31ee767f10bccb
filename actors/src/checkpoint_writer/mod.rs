//! The checkpoint writer: one thread writes checkpoints and one merges tables of external ids, so
//! that no shard waits for the disk, and no checkpoint for a merge.

mod bases;
mod claim;
mod entries;
mod job;
mod merger;
mod removal;
mod report;
mod snapshots;
mod stored;
#[cfg(test)]
mod tests;
mod urgency;
mod writer;

pub(crate) use bases::{BaseSource, key_check};
pub(crate) use claim::{CancelledJobs, Claim};
pub(crate) use entries::Entries;
pub(crate) use job::Job;
pub(crate) use merger::MergeJob;
pub(crate) use report::{JobOutcome, Mailbox, Reply, Report};
#[cfg(feature = "cluster")]
pub(crate) use snapshots::saved_mark;
pub(crate) use snapshots::{
    decode_part, decode_project, is_of_partition, is_project_meta, saved_position, saved_projects, saved_reflected,
};
#[cfg(feature = "cluster")]
pub(crate) use stored::mark_key;
pub(crate) use stored::{
    Collect, PartitionMeta, ProjectMeta, Records, StoreSource, for_each_identity, highest_key, lacking_rollups, load_cells,
    meta_key, position_key, read_meta, stored_types,
};
pub(crate) use urgency::Hurry;
pub(crate) use writer::CheckpointWriter;
