//! The fixed partitions, and the shard that hosts each.

use headcount_domain::ids::ProjectId;

/// Number of partitions. Fixed: the partition of a project must never change.
pub const PARTITIONS: u16 = 64;

/// Returns the partition of a project: a stable hash of its id.
#[must_use]
pub fn partition_of(project: ProjectId) -> u16 {
    let hash = xxhash_rust::xxh3::xxh3_64(&project.0.to_be_bytes());
    u16::try_from(hash % u64::from(PARTITIONS)).unwrap_or(0)
}

/// Assigns partitions to shards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShardMap {
    shards: usize,
}

impl ShardMap {
    /// Distributes the partitions over `shards` shards; at least one, and at most one per partition.
    pub(crate) fn new(shards: usize) -> Self {
        Self { shards: shards.clamp(1, usize::from(PARTITIONS)) }
    }

    /// Number of shards.
    pub(crate) fn shards(self) -> usize {
        self.shards
    }

    /// The shard that hosts a partition.
    pub(crate) fn shard_of(self, partition: u16) -> usize {
        usize::from(partition) % self.shards
    }

    /// The partitions that a shard hosts.
    pub(crate) fn partitions_of(self, shard: usize) -> Vec<u16> {
        (0..PARTITIONS).filter(|partition| self.shard_of(*partition) == shard).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_partition_is_hosted_once() {
        for (shards, expected) in [(0, 1), (1, 1), (3, 3), (64, 64), (1_000, 64)] {
            let map = ShardMap::new(shards);
            assert_eq!(map.shards(), expected);
            let mut hosted: Vec<u16> = (0..map.shards()).flat_map(|shard| map.partitions_of(shard)).collect();
            hosted.sort_unstable();
            assert_eq!(hosted, (0..PARTITIONS).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_partition_of_a_project_is_stable() {
        // Different values would lose the state of every project.
        assert_eq!([1, 2, u64::MAX].map(|id| partition_of(ProjectId(id))), [51, 28, 19]);
    }
}
