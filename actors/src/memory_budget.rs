//! How the memory that an engine may take is shared out.

/// The shares of a budget, in bytes.
///
/// What was measured: sled takes about three times its cache; events take more than their JSON; records go past their share
/// while a checkpoint is under way, which is held encoded meanwhile; the filters and indexes of what is saved take some 3 bytes a
/// record; allocators keep some of what was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShares {
    /// Sled's page cache, as sled counts it.
    pub store_cache: usize,
    /// Events under way.
    pub admission: usize,
    /// Records and rollups of all shards.
    pub records: usize,
}

/// What there is whatever the budget: the program, its threads, sled.
const FIXED_BYTES: usize = 64 << 20;

/// The least share of records.
const MIN_RECORD_BYTES: usize = 12 << 20;

/// The least budget: 64 MiB.
pub const MIN_MEMORY_BYTES: usize = 64 << 20;

impl MemoryShares {
    /// Shares `budget` bytes out.
    #[must_use]
    pub fn of(budget: usize) -> Self {
        let budget = budget.max(MIN_MEMORY_BYTES);
        let store_cache = (budget / 128).clamp(1 << 20, 8 << 20);
        let admission = (budget / 16).clamp(8 << 20, 64 << 20);
        let rest = budget.saturating_sub(FIXED_BYTES + 3 * store_cache + 2 * admission);
        let records = (rest / 3 * 2).max(MIN_RECORD_BYTES);
        Self { store_cache, admission, records }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_fit_into_the_budget() {
        for budget in [0, 64 << 20, 128 << 20, 1 << 30, 64 << 30] {
            let shares = MemoryShares::of(budget);
            let all = 3 * shares.store_cache + 2 * shares.admission + shares.records;
            assert!(all <= budget.max(MIN_MEMORY_BYTES), "{budget}: {shares:?}");
            assert!(shares.records >= MIN_RECORD_BYTES.max(budget / 6), "{budget}: {shares:?}");
        }
    }
}
