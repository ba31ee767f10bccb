//! Merges the tables of partitions that do not change, so that a store at rest takes little more
//! space than its data.
//!
//! While events arrive, tables of similar sizes are merged, and former values of a pair take up to
//! half as much as the newest ones.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant as Stopwatch};

use headcount_storage::keyspace::PartitionId;

use super::sources::EngineSources;

/// How often partitions are checked within the time after which they count as at rest.
const CHECKS: u32 = 6;
/// The pause between two checks during requested merges.
const MERGE_TICK: Duration = Duration::from_millis(20);
/// The longest pause after failures.
const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

/// Finds partitions at rest.
#[derive(Debug, Default)]
pub(super) struct Resting {
    /// The time of the next check; `None` for now.
    next: Option<Stopwatch>,
    /// Whether a merge that was begun here has not ended yet.
    has_begun: bool,
    failures: u32,
}

impl Resting {
    /// Merges a partition at rest, and removes the former files of merged ones.
    pub(super) fn step(&mut self, sources: &EngineSources) {
        if self.next.is_some_and(|at| Stopwatch::now() < at) {
            return;
        }
        let is_busy = self.merge(sources, sources.settings.policy.rest);
        let pause = sources.settings.policy.rest / CHECKS;
        let pause = pause.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX_PAUSE);
        self.next = (!is_busy).then(|| Stopwatch::now() + pause);
    }

    /// Merges the tables of all partitions, one after the other. Returns `false` if that failed, or
    /// the engine stops.
    pub(super) fn merge_all(&mut self, sources: &EngineSources) -> bool {
        // An earlier merge may have failed.
        (self.failures, self.has_begun) = (0, false);
        while self.merge(sources, Duration::ZERO) {
            if sources.stop.load(Ordering::Acquire) {
                return false;
            }
            std::thread::sleep(MERGE_TICK);
        }
        self.failures == 0
    }

    /// Begins a merge of a partition that did not change for `rest`, and completes finished merges.
    /// Returns whether there is more to do now.
    fn merge(&mut self, sources: &EngineSources, rest: Duration) -> bool {
        let found = sources.store.merge_at_rest(rest, sources.spare_bytes());
        // A merge that ended without a result has failed, or another one is in progress.
        let has_failed = self.has_begun && found.has_begun && found.merged.is_empty();
        // A merge that ended during the call is reported as in progress and as merged. It has not
        // failed.
        self.has_begun = found.has_begun || (self.has_begun && found.is_merging && found.merged.is_empty());
        let is_recorded = found.merged.iter().all(|partition| record(sources, *partition));
        if has_failed || !is_recorded {
            self.failures = self.failures.saturating_add(1);
        } else if !found.merged.is_empty() {
            self.failures = 0;
        }
        self.failures == 0 && (found.is_merging || !found.merged.is_empty())
    }
}

/// Removes the former tables of a partition with a commit that changes nothing else. Returns
/// whether it succeeded.
fn record(sources: &EngineSources, partition: PartitionId) -> bool {
    match sources.writer.remove(partition, Vec::new()) {
        Some(Ok(())) => {
            sources.done("tables of a partition at rest merged");
            true
        }
        Some(Err(error)) => {
            tracing::warn!(partition = partition.number(), %error, "files of merged tables are not removed yet");
            false
        }
        // The engine stops.
        None => true,
    }
}
