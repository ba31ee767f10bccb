//! The memory of a partition.

use headcount_domain::cache::bytes::Bytes;
use headcount_storage::external_ids::ExternalIds;

use super::partition::Partition;

/// Memory of an external id until it is written.
const ID_BYTES: usize = 40;

impl Partition {
    /// Memory of its projects.
    pub(crate) fn bytes(&mut self) -> Bytes {
        self.projects.weigh().all
    }

    /// Memory of its projects' rollups, which can't be evicted.
    pub(crate) fn rollup_bytes(&mut self) -> usize {
        self.projects.weigh().rollups
    }

    /// The largest number of records of one kind that can be evicted.
    pub(crate) fn evictable(&mut self) -> usize {
        self.projects.evictable_mut().map(|(_, state)| state.project.most_of_a_kind()).max().unwrap_or(0)
    }

    /// Evicts saved records that are not in use. Returns the number of freed bytes.
    pub(crate) fn evict(&mut self, enough: usize, most: usize) -> usize {
        let mut freed = 0;
        for (_, state) in self.projects.evictable_mut() {
            let here = state.project.evict(enough.saturating_sub(freed), most);
            state.complete &= here == 0;
            freed += here;
        }
        freed
    }

    /// Memory that a stuck partition keeps until its checkpoint can be written: all changes since
    /// the one before.
    pub(crate) fn stuck_bytes(&mut self) -> usize {
        if !self.checkpoint.is_stuck {
            return 0;
        }
        let ids = self.index.as_ref().map_or(0, ExternalIds::unwritten) * ID_BYTES;
        self.bytes().unsaved + self.checkpoint.writing_bytes + ids
    }
}
