//! The shard that hosts each partition.

use headcount_common::PARTITIONS;

/// Assigns partitions to shards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShardMap {
    /// Number of shards.
    pub(crate) shards: usize,
}

impl ShardMap {
    /// Distributes the partitions over `shards` shards; at least one, and at most one per
    /// partition.
    pub(crate) fn new(shards: usize) -> Self {
        Self { shards: shards.clamp(1, usize::from(PARTITIONS)) }
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
            assert_eq!(map.shards, expected);
            let mut hosted: Vec<u16> = (0..map.shards).flat_map(|shard| map.partitions_of(shard)).collect();
            hosted.sort_unstable();
            assert_eq!(hosted, (0..PARTITIONS).collect::<Vec<_>>());
        }
    }
}
