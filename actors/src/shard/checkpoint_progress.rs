//! The progress of all partitions' checkpoints: written by the shards, read by ingestion, `/readyz`
//! and `/metrics`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::PARTITIONS;

/// The progress of all partitions' checkpoints.
#[derive(Debug)]
pub(crate) struct CheckpointProgress {
    began: Stopwatch,
    partitions: [PartitionProgress; PARTITIONS as usize],
}

#[derive(Debug, Default)]
struct PartitionProgress {
    /// The time since when the partition has unsaved changes, in milliseconds since `began`, plus
    /// one; 0 if it has none.
    unsaved_since: AtomicU64,
    /// Whether its last checkpoint could not be written.
    is_failing: AtomicBool,
    /// Whether it refuses events, because it also has too many unsaved changes.
    is_full: AtomicBool,
}

impl Default for CheckpointProgress {
    fn default() -> Self {
        Self { began: Stopwatch::now(), partitions: std::array::from_fn(|_| PartitionProgress::default()) }
    }
}

impl CheckpointProgress {
    fn state(&self, partition: u16) -> Option<&PartitionProgress> {
        self.partitions.get(usize::from(partition))
    }

    /// Whether the checkpoints of a partition allow new events.
    pub(crate) fn accepts(&self, partition: u16) -> bool {
        self.state(partition).is_none_or(|state| !state.is_full.load(Ordering::Relaxed))
    }

    /// The number of partitions whose last checkpoint could not be written yet.
    pub(crate) fn failing(&self) -> usize {
        self.partitions.iter().filter(|state| state.is_failing.load(Ordering::Relaxed)).count()
    }

    /// The number of partitions that refuse events until their checkpoints can be written.
    pub(crate) fn full(&self) -> usize {
        self.partitions.iter().filter(|state| state.is_full.load(Ordering::Relaxed)).count()
    }

    /// How long the longest-waiting partition has had unsaved changes.
    pub(crate) fn longest_unsaved(&self) -> Option<Duration> {
        (0..PARTITIONS).filter_map(|partition| self.unsaved_for(partition)).max()
    }

    /// How long a partition has had unsaved changes.
    pub(crate) fn unsaved_for(&self, partition: u16) -> Option<Duration> {
        let since = self.state(partition)?.unsaved_since.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.began.elapsed().saturating_sub(Duration::from_millis(since)))
    }

    /// Records that a partition has unsaved changes, from now on unless it had some before.
    pub(super) fn note_unsaved(&self, partition: u16) {
        let Some(state) = self.state(partition) else { return };
        if state.unsaved_since.load(Ordering::Relaxed) == 0 {
            state.unsaved_since.store(self.millis(Stopwatch::now()) + 1, Ordering::Relaxed);
        }
    }

    /// Records that a checkpoint is durable. Unless `is_all`, there are unsaved changes after
    /// `frozen`.
    pub(super) fn note_saved(&self, partition: u16, frozen: Stopwatch, is_all: bool) {
        let Some(state) = self.state(partition) else { return };
        state.unsaved_since.store(if is_all { 0 } else { self.millis(frozen) + 1 }, Ordering::Relaxed);
    }

    /// Resets a partition that another machine takes over.
    pub(super) fn give_up(&self, partition: u16) {
        self.note_saved(partition, Stopwatch::now(), true);
        self.set_failing(partition, false);
        self.set_full(partition, false);
    }

    pub(super) fn set_failing(&self, partition: u16, is_failing: bool) {
        if let Some(state) = self.state(partition) {
            state.is_failing.store(is_failing, Ordering::Relaxed);
        }
    }

    pub(super) fn set_full(&self, partition: u16, is_full: bool) {
        let Some(state) = self.state(partition) else { return };
        if state.is_full.swap(is_full, Ordering::Relaxed) != is_full {
            match is_full {
                true => tracing::error!(partition, "takes no events until its checkpoint can be written"),
                false => tracing::info!(partition, "takes events again"),
            }
        }
    }

    fn millis(&self, moment: Stopwatch) -> u64 {
        u64::try_from(moment.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unsaved_is_known_since_when() {
        let progress = CheckpointProgress::default();
        assert_eq!(progress.longest_unsaved(), None);
        progress.note_unsaved(3);
        let early = Stopwatch::now();
        std::thread::sleep(Duration::from_millis(20));
        progress.note_unsaved(3);
        assert!(progress.unsaved_for(3).unwrap() >= Duration::from_millis(19), "since the first time");
        progress.note_saved(3, early, false);
        assert!(progress.longest_unsaved().unwrap() >= Duration::from_millis(19), "since the checkpoint began");
        progress.note_saved(3, early, true);
        assert_eq!(progress.longest_unsaved(), None);
    }

    #[test]
    fn states_are_counted() {
        let progress = CheckpointProgress::default();
        progress.set_failing(0, true);
        progress.set_failing(63, true);
        progress.set_full(63, true);
        assert_eq!((progress.failing(), progress.full()), (2, 1));
        assert!(progress.accepts(0) && !progress.accepts(63));
        progress.set_failing(63, false);
        progress.set_full(63, false);
        assert_eq!((progress.failing(), progress.full()), (1, 0));
        assert!(progress.accepts(63));
    }
}
