//! The aggregators: one per shard, each owning the state of its partitions.

mod actor;
mod checkpoint_progress;
mod checkpointer;
mod entries;
mod evictor;
mod external_ids;
mod fair_queue;
mod health;
mod partition;
mod quota_table;
mod rebuild;
mod shard;
mod stored;
#[cfg(test)]
mod tests;

pub(crate) use actor::{Apply, Ask, Drain, ShardActor};
pub(crate) use checkpoint_progress::CheckpointProgress;
pub use checkpointer::CheckpointPolicy;
pub(crate) use checkpointer::Checkpoints;
pub(crate) use entries::Entries;
pub(crate) use evictor::{Memory, Shares};
pub(crate) use health::{Condition, PartitionHealth};
pub(crate) use partition::Shared;
pub(crate) use partition::Versions;
pub use partition::{Outcome, PARTITIONS, partition_of};
pub(crate) use quota_table::Limits;
pub(crate) use shard::{Asking, Events, Probe, Shard, Work};
#[cfg(test)]
pub(crate) use stored::standing_entry;
pub(crate) use stored::{saved_serial, stored_types};
