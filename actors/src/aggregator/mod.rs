//! The aggregators: one per shard, each owning the state of its partitions.

mod actor;
mod checkpoint;
mod entries;
mod fault;
mod memory;
mod partition;
mod shard;
mod source;

pub(crate) use actor::{Aggregator, Apply, Ask, Drain};
pub use checkpoint::CheckpointPolicy;
pub(crate) use checkpoint::Checkpoints;
pub(crate) use entries::Entries;
pub(crate) use memory::{Memory, Shares};
pub(crate) use partition::Shared;
pub(crate) use partition::Versions;
pub use partition::{Outcome, PARTITIONS, partition_of};
pub(crate) use shard::{Events, Probe, Shard, Work};
