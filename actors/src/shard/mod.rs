//! The shards: each owns the state of its partitions, on a thread of its own.

mod actor;
mod applier;
mod base_forgetting;
mod base_loading;
mod checkpoint_progress;
mod checkpointer;
mod checkpoints;
mod client;
mod discard;
mod evictor;
mod fair_queue;
mod floors;
mod handover;
mod health;
mod memory_usage;
mod partition;
mod partition_context;
mod partition_memory;
mod pipeline;
mod project_state;
mod projects;
mod quota_table;
mod rebuild;
mod refold;
mod replacement;
mod replay;
#[expect(clippy::module_inception, reason = "the file has the name of its type")]
mod shard;
mod shard_map;
#[cfg(test)]
mod tests;
mod work;

pub(crate) use actor::{Apply, ShardActor};
pub(crate) use applier::{Applier, Probe};
pub(crate) use checkpoint_progress::CheckpointProgress;
pub use checkpointer::CheckpointPolicy;
pub(crate) use checkpoints::Checkpoints;
pub use client::AskError;
pub(crate) use client::{Pending, ShardClient};
pub(crate) use discard::clear_unused;
pub(crate) use evictor::Evictor;
pub(crate) use floors::Floors;
pub(crate) use health::{Condition, PartitionHealth};
pub(crate) use memory_usage::MemoryUsage;
pub(crate) use partition_context::{PartitionContext, Versions};
pub(crate) use quota_table::{QuotaCheck, QuotaTable};
pub(crate) use replacement::Replaceable;
pub(crate) use shard::Shard;
pub(crate) use shard_map::ShardMap;
pub use work::Outcome;
pub(crate) use work::Work;
