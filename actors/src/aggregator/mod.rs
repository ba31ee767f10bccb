//! The aggregators: one per shard, each owning the state of its partitions.

mod actor;
mod checkpoint;
mod entries;
mod fair;
pub(crate) mod fault;
mod health;
mod ids;
mod limits;
mod memory;
mod mending;
mod partition;
mod progress;
mod shard;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use actor::{Aggregator, Apply, Ask, Drain};
pub use checkpoint::CheckpointPolicy;
pub(crate) use checkpoint::Checkpoints;
pub(crate) use entries::Entries;
pub(crate) use health::{Condition, PartitionHealth};
pub(crate) use limits::Limits;
pub(crate) use memory::{Memory, Shares};
pub(crate) use partition::Shared;
pub(crate) use partition::Versions;
pub use partition::{Outcome, PARTITIONS, partition_of};
pub(crate) use progress::CheckpointProgress;
pub(crate) use shard::{Asking, Events, Probe, Shard, Work};
#[cfg(test)]
pub(crate) use source::standing_entry;
pub(crate) use source::{saved_serial, stored_types};
