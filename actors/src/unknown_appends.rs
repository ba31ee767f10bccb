//! Appends to the log whose outcome is unknown. Their events may be in the log, after everything
//! that this machine knows.

use std::sync::atomic::{AtomicU64, Ordering};

use headcount_common::PARTITIONS;

/// The unknown appends of each partition.
#[derive(Debug)]
pub(crate) struct UnknownAppends {
    partitions: Vec<OfPartition>,
}

#[derive(Debug, Default)]
struct OfPartition {
    /// The number of appends without an outcome.
    count: AtomicU64,
    /// The number of these that are resolved.
    found: AtomicU64,
}

impl Default for UnknownAppends {
    fn default() -> Self {
        Self { partitions: (0..PARTITIONS).map(|_| OfPartition::default()).collect() }
    }
}

impl UnknownAppends {
    /// Records an append without an outcome. Call it before the sender of its events gets an
    /// answer.
    pub(crate) fn note(&self, partition: u16) {
        if let Some(known) = self.partitions.get(usize::from(partition)) {
            known.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Records that the log of a partition was read to its end, and that no earlier append can
    /// reach it any more.
    pub(crate) fn found_out(&self, partition: u16) {
        if let Some(known) = self.partitions.get(usize::from(partition)) {
            known.found.store(known.count.load(Ordering::Acquire), Ordering::Release);
        }
    }

    /// The number of appends of a partition whose outcome was unknown, if all are resolved. If it
    /// is the same later, there was none in between.
    pub(crate) fn all_found(&self, partition: u16) -> Option<u64> {
        let known = self.partitions.get(usize::from(partition))?;
        let found = known.found.load(Ordering::Acquire);
        (known.count.load(Ordering::Acquire) == found).then_some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_append_is_unknown_until_the_log_was_read() {
        let appends = UnknownAppends::default();
        assert_eq!(appends.all_found(3), Some(0));
        appends.note(3);
        assert_eq!((appends.all_found(3), appends.all_found(4)), (None, Some(0)));
        appends.found_out(3);
        assert_eq!(appends.all_found(3), Some(1), "there was one");
    }
}
