//! Converts sums to counts. A negative count is a defect, and is reported.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of negative counts since the process started.
static NEGATIVE_COUNTS: AtomicU64 = AtomicU64::new(0);

/// The number of negative counts since the process started; each is a defect.
pub fn negative_counts() -> u64 {
    NEGATIVE_COUNTS.load(Ordering::Relaxed)
}

/// Returns a sum as a count. A negative sum is a defect: a contribution was taken out that was
/// never added. It becomes 0 and is reported.
pub fn count_of(sum: i64) -> u64 {
    u64::try_from(sum).unwrap_or_else(|_| {
        debug_assert!(false, "a count of {sum}");
        NEGATIVE_COUNTS.fetch_add(1, Ordering::Relaxed);
        0
    })
}
