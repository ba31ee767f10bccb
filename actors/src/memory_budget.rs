//! Divides the memory budget of an engine.

/// The parts of a budget, in bytes.
///
/// Measured: sled takes about three times its cache; events take more than their JSON; records
/// exceed their part during a checkpoint, which holds them in encoded form; filters and indexes of
/// saved records take some 3 bytes per record; allocators keep some freed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryShares {
    /// Sled's page cache, as sled counts it.
    pub store_cache: usize,
    /// Events in flight.
    pub admission: usize,
    /// Records and rollups of all shards.
    pub records: usize,
    /// Each table and each sort of a scan. A scan has five at most, and two scans run at once.
    pub scan_sort: usize,
    /// Kept answers.
    pub views: usize,
}

/// Memory that is used with any budget: the program, its threads, sled.
const FIXED_BYTES: usize = 64 << 20;

/// Minimum for records.
const MIN_RECORD_BYTES: usize = 12 << 20;

/// Minimum budget: 64 MiB.
pub const MIN_MEMORY_BYTES: usize = 64 << 20;

impl MemoryShares {
    /// Divides `budget` bytes.
    pub fn of(budget: usize) -> Self {
        let budget = budget.max(MIN_MEMORY_BYTES);
        let store_cache = (budget / 128).clamp(1 << 20, 8 << 20);
        let admission = (budget / 16).clamp(8 << 20, 64 << 20);
        let rest = budget.saturating_sub(FIXED_BYTES + 3 * store_cache + 2 * admission);
        let records = (rest / 3 * 2).max(MIN_RECORD_BYTES);
        // Scans and kept answers use the memory that the records leave free.
        let scan_sort = (budget / 64).clamp(1 << 20, 8 << 20);
        Self { store_cache, admission, records, scan_sort, views: budget / 16 }
    }
}

/// The bytes of records for a state that is computed beside the one in service.
pub(crate) fn recomputation_bytes(budget: usize) -> usize {
    (budget / 16).max(MIN_RECORD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_fit_into_the_budget() {
        for budget in [0, 64 << 20, 128 << 20, 1 << 30, 64 << 30] {
            let shares = MemoryShares::of(budget);
            let all = 3 * shares.store_cache + 2 * shares.admission + shares.records + 10 * shares.scan_sort + shares.views;
            assert!(all <= budget.max(MIN_MEMORY_BYTES), "{budget}: {shares:?}");
            assert!(shares.records >= MIN_RECORD_BYTES.max(budget / 6), "{budget}: {shares:?}");
        }
    }
}
