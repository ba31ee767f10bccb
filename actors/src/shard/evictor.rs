//! Keeps records and rollups within the memory budget.
//!
//! - Saved records that are not in use are evicted, and read back from the store on demand.
//! - If too much is unsaved, a checkpoint is due early. If checkpoints can't keep up, applying
//!   events waits.
//! - Rollups count against the budget and are never evicted: the more there are, the fewer records
//!   stay.
//!
//! A partition whose checkpoint can't be written keeps all changes since the last one. It has a
//! share of the budget for them, and refuses events once the share is used up. All other partitions
//! continue with the rest.

use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use super::checkpoint_progress::CheckpointProgress;
use super::memory_usage::{MemoryUsage, Usage};
use super::partition::{Partition, PartitionMap};

/// Number of events, and of queries, between two checks of the budget.
const EVENTS_PER_CHECK: usize = 1024;
const QUERIES_PER_CHECK: usize = 64;
/// Number of records of each kind and project that are visited between two readings of the clock.
const RECORDS_PER_ROUND: usize = 1024;
/// How long one eviction may take. The next one continues where it stopped.
const PATIENCE: Duration = Duration::from_millis(2);
/// How long an eviction may take far beyond the budget, so that slow machines stay within it.
const FAR_PATIENCE: Duration = Duration::from_millis(20);
/// After a query that took this long, there is a check, which may take as long as the query did.
const LONG_QUERY: Duration = Duration::from_millis(5);
const MAX_PATIENCE: Duration = Duration::from_millis(200);

/// Decides what to evict, when a checkpoint is due for lack of memory, and when applying events
/// must wait.
#[derive(Debug)]
pub(crate) struct Evictor {
    /// The budget of all shards in bytes.
    budget: usize,
    total: Arc<MemoryUsage>,
    /// The last usage of this shard in the total.
    own: Usage,
    events: usize,
    queries: usize,
    /// Whether a checkpoint should begin early.
    pub(crate) checkpoint_due: bool,
    /// Whether checkpoints must be written at full speed, because applying events would have to
    /// wait soon.
    pub(super) is_pressing: bool,
    backpressured: bool,
}

/// A command to evict this many bytes, unless it takes longer than `patience`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Evict {
    bytes: usize,
    patience: Duration,
}

impl Evictor {
    /// Creates the evictor of one shard. `budget` and `total` belong to all shards.
    pub(crate) fn new(budget: usize, total: Arc<MemoryUsage>) -> Self {
        Self {
            budget,
            total,
            own: Usage::default(),
            events: 0,
            queries: 0,
            checkpoint_due: false,
            is_pressing: false,
            backpressured: false,
        }
    }

    /// Makes events wait for a checkpoint until the next check of memory.
    #[cfg(test)]
    pub(super) fn press(&mut self) {
        self.backpressured = true;
    }

    /// Whether applying events must wait for a checkpoint.
    pub(crate) fn is_backpressured(&self) -> bool {
        self.backpressured
    }

    /// Whether stuck partitions of this shard keep more than any budget allows.
    pub(super) fn is_exhausted(&self) -> bool {
        self.own.stuck > self.budget / 2
    }

    /// How many bytes of the log may be replayed between two checks. The state of events is several
    /// times larger.
    pub(super) fn replay_bytes(&self) -> usize {
        self.budget / 8
    }

    /// Counts applied events. Returns whether a check is due.
    pub(super) fn applied(&mut self, events: usize) -> bool {
        self.events += events;
        self.events >= EVENTS_PER_CHECK
    }

    /// Counts an answered query, which may have read many records. Returns the patience for a check
    /// if one is due.
    pub(super) fn answered(&mut self, took: Duration) -> Option<Duration> {
        self.queries += 1;
        (self.queries >= QUERIES_PER_CHECK || took >= LONG_QUERY).then(|| took.clamp(PATIENCE, MAX_PATIENCE))
    }

    /// Evicts records if the shards use more than the budget, and decides whether a checkpoint is
    /// due.
    pub(super) fn evict_if_needed(
        &mut self,
        partitions: &mut PartitionMap,
        progress: &CheckpointProgress,
        patience: Option<Duration>,
    ) {
        let mut all = self.report(usage_of(partitions));
        let mut is_finished = true;
        if let Some(Evict { bytes, patience }) = self.eviction(all, patience.unwrap_or(PATIENCE)) {
            is_finished = evict(partitions, bytes, patience);
            all = self.report(usage_of(partitions));
        }
        self.decide(all, is_finished);
        self.note_partitions(partitions, progress, all.stuck);
    }

    /// Publishes this shard's usage, and returns that of all shards.
    fn report(&mut self, own: Usage) -> Usage {
        (self.events, self.queries) = (0, 0);
        self.total.replace(std::mem::replace(&mut self.own, own), own)
    }

    /// Returns the budget without the memory of stuck partitions, which have at most half of it. A
    /// quarter of the budget is for records, however large rollups are: with less, every event
    /// would read its records back.
    fn available(&self, all: Usage) -> usize {
        (self.budget - all.stuck.min(self.budget / 2)).max(all.rollups + self.budget / 4)
    }

    fn eviction(&self, all: Usage, patience: Duration) -> Option<Evict> {
        let available = self.available(all);
        if all.free.resident <= available {
            return None;
        }
        // Evicts a little more than needed, so that the next checks find nothing to do. Each shard
        // evicts its part.
        let excess = all.free.resident - available / 8 * 7;
        let bytes = (excess as u128 * self.own.free.resident as u128 / all.free.resident.max(1) as u128) as usize;
        let patience = if is_far_beyond(available, all) { patience.max(FAR_PATIENCE) } else { patience };
        Some(Evict { bytes, patience })
    }

    fn decide(&mut self, all: Usage, eviction_is_finished: bool) {
        let (available, own, free) = (self.available(all), self.own.free, all.free);
        tracing::trace!(resident = own.resident, unsaved = own.unsaved, all = free.resident, available, "records in memory");
        // A shard that has saved everything can't help the others. Eviction goes first, since it
        // must wait during a checkpoint.
        let has_unsaved = own.unsaved > available / 16;
        // A record that changes again before it is saved is encoded once, so late checkpoints save
        // much of their work.
        let is_over = free.resident > available && free.unsaved > available / 2 && eviction_is_finished;
        self.backpressured = has_unsaved && free.unsaved > available / 16 * 13;
        // Collected records are no longer unsaved, but can't be evicted until they are written. A
        // stuck partition keeps its own in any case.
        let is_held = eviction_is_finished && all.stuck == 0 && is_far_beyond(available, all) && own.resident > available / 16;
        self.is_pressing = is_held || (has_unsaved && free.unsaved > available / 16 * 12);
        self.checkpoint_due = has_unsaved && (is_over || free.unsaved > available / 8 * 5);
    }

    /// Records which partitions have unsaved changes, and which stuck ones have used up their
    /// share: a quarter of the budget, divided by their number.
    fn note_partitions(&self, partitions: &mut PartitionMap, progress: &CheckpointProgress, all_stuck: usize) {
        let share = self.budget / 4;
        let part = share / progress.failing().max(1);
        for (number, partition) in partitions {
            if partition.checkpoint.unsaved_from.is_some() {
                progress.note_unsaved(*number);
            }
            if partition.checkpoint.is_stuck {
                progress.set_full(*number, all_stuck > share && partition.stuck_bytes() > part);
            }
        }
    }
}

/// Whether memory is used far beyond what is available.
fn is_far_beyond(available: usize, all: Usage) -> bool {
    all.free.resident > available + available / 4
}

fn usage_of(partitions: &mut PartitionMap) -> Usage {
    let mut usage = Usage::default();
    for partition in partitions.values_mut() {
        let bytes = partition.bytes();
        usage.rollups += partition.rollup_bytes();
        if partition.checkpoint.is_stuck {
            usage.stuck += partition.stuck_bytes();
            usage.free.resident += bytes.resident - bytes.unsaved.min(bytes.resident);
        } else {
            usage.free += bytes;
        }
    }
    usage
}

/// Evicts `bytes`. Returns `false` if time ran out before.
fn evict(partitions: &mut PartitionMap, mut bytes: usize, patience: Duration) -> bool {
    let began = Stopwatch::now();
    let rounds = partitions.values_mut().map(Partition::evictable).max().unwrap_or(0) / RECORDS_PER_ROUND;
    // Two passes over everything: the first may find all of it in use.
    let max_idle_rounds = 2 + rounds * 2;
    let mut idle_rounds = 0;
    while bytes > 0 && idle_rounds < max_idle_rounds {
        if began.elapsed() >= patience {
            return false;
        }
        let mut freed = 0;
        for partition in partitions.values_mut() {
            freed += partition.evict(bytes.saturating_sub(freed), RECORDS_PER_ROUND);
        }
        bytes = bytes.saturating_sub(freed);
        idle_rounds = if freed == 0 { idle_rounds + 1 } else { 0 };
    }
    true
}

#[cfg(test)]
mod tests {
    use headcount_domain::cache::bytes::Bytes;

    use super::*;

    const BUDGET: usize = 1000;

    fn usage(resident: usize, unsaved: usize, stuck: usize, rollups: usize) -> Usage {
        Usage { free: Bytes { resident, unsaved }, stuck, rollups }
    }

    /// Returns an evictor whose shard has reported `own`, and the usage of all shards.
    fn after(own: Usage, others: Usage) -> (Evictor, Usage) {
        let total = Arc::<MemoryUsage>::default();
        total.replace(Usage::default(), others);
        let mut evictor = Evictor::new(BUDGET, total);
        let all = evictor.report(own);
        (evictor, all)
    }

    #[test]
    fn a_table_of_evictions() {
        // Own usage, usage of other shards, bytes to evict and whether the budget is far exceeded.
        let table = [
            (usage(1000, 0, 0, 0), usage(0, 0, 0, 0), None),
            (usage(1100, 0, 0, 0), usage(0, 0, 0, 0), Some((225, false))),
            // Half of the records, half of the eviction.
            (usage(550, 0, 0, 0), usage(550, 0, 0, 0), Some((112, false))),
            (usage(0, 0, 0, 0), usage(1100, 0, 0, 0), Some((0, false))),
            (usage(2000, 0, 0, 0), usage(0, 0, 0, 0), Some((1125, true))),
            // Stuck partitions have at most half of the budget.
            (usage(501, 0, 800, 0), usage(0, 0, 0, 0), Some((67, false))),
            (usage(500, 0, 500, 0), usage(0, 0, 0, 0), None),
            // Rollups can't be evicted, but a quarter of the budget stays for records.
            (usage(1200, 0, 0, 950), usage(0, 0, 0, 0), None),
            (usage(1201, 0, 0, 950), usage(0, 0, 0, 0), Some((151, false))),
        ];
        for (own, others, expected) in table {
            let (evictor, all) = after(own, others);
            let expected =
                expected.map(|(bytes, is_far)| Evict { bytes, patience: if is_far { FAR_PATIENCE } else { PATIENCE } });
            assert_eq!(evictor.eviction(all, PATIENCE), expected, "{own:?} {others:?}");
        }
        let (evictor, all) = after(usage(2000, 0, 0, 0), usage(0, 0, 0, 0));
        assert_eq!(
            evictor.eviction(all, MAX_PATIENCE).map(|evict| evict.patience),
            Some(MAX_PATIENCE),
            "a long query paid for it"
        );
    }

    #[test]
    fn a_table_of_pressure() {
        // Own usage, usage of other shards, whether the eviction was finished; then whether a
        // checkpoint is due, is urgent, and applying waits.
        let table = [
            (usage(1000, 625, 0, 0), usage(0, 0, 0, 0), true, (false, false, false)),
            (usage(1000, 626, 0, 0), usage(0, 0, 0, 0), true, (true, false, false)),
            (usage(1000, 745, 0, 0), usage(0, 0, 0, 0), true, (true, true, false)),
            (usage(1000, 807, 0, 0), usage(0, 0, 0, 0), true, (true, true, true)),
            // Unsaved records keep the eviction from finding more.
            (usage(1001, 501, 0, 0), usage(0, 0, 0, 0), true, (true, false, false)),
            (usage(1001, 501, 0, 0), usage(0, 0, 0, 0), false, (false, false, false)),
            // A checkpoint in progress keeps the eviction from finding more.
            (usage(1251, 500, 0, 0), usage(0, 0, 0, 0), true, (false, true, false)),
            (usage(1251, 500, 0, 0), usage(0, 0, 0, 0), false, (false, false, false)),
            (usage(1251, 400, 1, 0), usage(0, 0, 0, 0), true, (false, false, false)),
            (usage(62, 0, 0, 0), usage(1200, 0, 0, 0), true, (false, false, false)),
            // The other shards have the records. This one has nothing to save.
            (usage(100, 62, 0, 0), usage(900, 800, 0, 0), true, (false, false, false)),
            (usage(100, 63, 0, 0), usage(900, 800, 0, 0), true, (true, true, true)),
        ];
        for (own, others, finished, expected) in table {
            let (mut evictor, all) = after(own, others);
            evictor.decide(all, finished);
            let found = (evictor.checkpoint_due, evictor.is_pressing, evictor.is_backpressured());
            assert_eq!(found, expected, "{own:?} {others:?}");
        }
    }

    #[test]
    fn checks_are_due_after_events_and_queries() {
        let (mut evictor, _) = after(Usage::default(), Usage::default());
        assert!(!evictor.applied(EVENTS_PER_CHECK - 1) && evictor.applied(1));
        evictor.report(Usage::default());
        assert!(!evictor.applied(1));
        assert_eq!(evictor.answered(Duration::ZERO), None);
        assert_eq!(evictor.answered(Duration::from_millis(50)), Some(Duration::from_millis(50)));
        assert_eq!(evictor.answered(Duration::from_secs(5)), Some(MAX_PATIENCE));
        evictor.report(Usage::default());
        let short = std::iter::repeat_with(|| evictor.answered(Duration::ZERO)).take_while(Option::is_none).count();
        assert_eq!(short, QUERIES_PER_CHECK - 1);
    }
}
