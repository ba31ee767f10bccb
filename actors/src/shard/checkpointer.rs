//! Decides which partition's checkpoint is next: a state machine without clocks, threads or files.
//!
//! Checkpoints come in rounds, one partition after the other. A partition is frozen, collected in
//! small steps between other work, and submitted to the checkpoint writer. A partition whose
//! checkpoint can't be written is stuck: the writer retries, and the rounds skip the partition
//! until it succeeds.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant as Stopwatch};

/// A partition with few changes skips rounds for at most this many intervals, while replaying its
/// changes costs less than this part of the limit for a checkpoint.
const FEW_CHANGES_WAIT: u32 = 10;
const FEW_CHANGES_PART: u64 = 10;

/// The conditions under which a checkpoint is due.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// Number of events in the log since the first unsaved one: about four seconds of replay. The
    /// changes are held in encoded form while they are written.
    pub events: u64,
    /// Time since the last round, if there are changes. Partitions with few changes wait ten times
    /// as long.
    pub interval: Duration,
}

impl Default for CheckpointPolicy {
    fn default() -> Self {
        Self { events: 1_000_000, interval: Duration::from_secs(60) }
    }
}

/// A partition with unsaved changes that is not stuck.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsaved {
    pub(super) partition: u16,
    /// The number of events that a start would read for this partition.
    pub(super) events_to_replay: u64,
    /// How long it has had unsaved changes.
    pub(super) unsaved_for: Duration,
}

/// The next step of checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing to do.
    Rest,
    /// Freeze this partition.
    Freeze(u16),
    /// Collect more records of this frozen partition.
    Collect(u16),
    /// Wait for the checkpoint writer.
    Wait,
}

impl Next {
    /// Whether the step is work for the shard's thread.
    pub(crate) fn is_step(self) -> bool {
        matches!(self, Self::Freeze(_) | Self::Collect(_))
    }
}

/// The partition whose turn it is in the round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Current {
    Collecting(u16),
    Writing(u16),
}

/// The state machine of a shard's checkpoints.
pub(super) struct Checkpointer {
    policy: CheckpointPolicy,
    pub(super) round_began: Stopwatch,
    due: VecDeque<u16>,
    current: Option<Current>,
    /// The checkpoints at the writer: job and time of freezing.
    submitted: BTreeMap<u16, (u64, Stopwatch)>,
    /// The merges at the writer.
    merging: BTreeMap<u16, u64>,
    jobs: u64,
    /// While the engine stops: the stuck partitions that the last round still waits for.
    last_round: Option<BTreeSet<u16>>,
}

impl Checkpointer {
    pub(super) fn new(policy: CheckpointPolicy, now: Stopwatch) -> Self {
        Self {
            policy,
            round_began: now,
            due: VecDeque::new(),
            current: None,
            submitted: BTreeMap::new(),
            merging: BTreeMap::new(),
            jobs: 0,
            last_round: None,
        }
    }

    /// Whether no round is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.due.is_empty() && self.current.is_none()
    }

    /// Begins a round if one is due, or if `force` is set. Does nothing during a round.
    pub(super) fn begin_round(&mut self, now: Stopwatch, force: bool, unsaved: &[Unsaved]) -> Next {
        if !self.is_idle() {
            return Next::Rest;
        }
        let is_time = now.saturating_duration_since(self.round_began) >= self.policy.interval;
        if !force && !is_time && unsaved.iter().all(|one| one.events_to_replay < self.policy.events) {
            return Next::Rest;
        }
        self.due = unsaved.iter().filter(|one| force || !self.can_wait(one)).map(|one| one.partition).collect();
        self.round_began = now;
        self.next()
    }

    /// Whether the next round is soon enough for a partition: a checkpoint costs much the same for
    /// one event as for many.
    fn can_wait(&self, unsaved: &Unsaved) -> bool {
        let is_soon = unsaved.unsaved_for < self.policy.interval.saturating_mul(FEW_CHANGES_WAIT);
        is_soon && unsaved.events_to_replay < self.policy.events / FEW_CHANGES_PART
    }

    /// The next step of the round.
    pub(super) fn next(&self) -> Next {
        match self.current {
            Some(Current::Writing(_)) => Next::Wait,
            Some(Current::Collecting(partition)) => Next::Collect(partition),
            None => self.due.front().map_or(Next::Rest, |partition| Next::Freeze(*partition)),
        }
    }

    /// Records that the partition is frozen, or has nothing to collect.
    pub(super) fn frozen(&mut self, partition: u16, has_records: bool) {
        self.due.retain(|due| *due != partition);
        self.current = has_records.then_some(Current::Collecting(partition));
    }

    /// Records that all records are collected. Returns the number of the writer's job.
    pub(super) fn submitted(&mut self, partition: u16, frozen_at: Stopwatch) -> u64 {
        self.jobs += 1;
        self.submitted.insert(partition, (self.jobs, frozen_at));
        self.current = Some(Current::Writing(partition));
        self.jobs
    }

    /// Records that the writer has tried a checkpoint. If `is_over`, it will not try again. Returns
    /// the time of freezing, or `None` for a cancelled checkpoint.
    pub(super) fn reported(&mut self, partition: u16, job: u64, is_over: bool) -> Option<Stopwatch> {
        let (_, frozen_at) = self.submitted.get(&partition).copied().filter(|(submitted, _)| *submitted == job)?;
        if is_over {
            self.submitted.remove(&partition);
        }
        // Whatever the outcome, the round continues.
        self.current.take_if(|current| *current == Current::Writing(partition));
        if let Some(waiting) = &mut self.last_round {
            waiting.remove(&partition);
        }
        Some(frozen_at)
    }

    /// Begins a merge of external ids, unless a merge of this partition is in progress. Returns the
    /// number of the writer's job.
    pub(super) fn begin_merge(&mut self, partition: u16) -> Option<u64> {
        if self.merging.contains_key(&partition) {
            return None;
        }
        self.jobs += 1;
        self.merging.insert(partition, self.jobs);
        Some(self.jobs)
    }

    /// Records the end of a merge. Returns `false` for a cancelled merge.
    pub(super) fn merged(&mut self, partition: u16, job: u64) -> bool {
        let is_current = self.merging.get(&partition) == Some(&job);
        if is_current {
            self.merging.remove(&partition);
        }
        is_current
    }

    /// Forgets the checkpoint and the merge of a partition: reports about them are ignored.
    pub(super) fn cancel(&mut self, partition: u16) {
        self.due.retain(|due| *due != partition);
        self.current.take_if(|current| matches!(current, Current::Collecting(at) | Current::Writing(at) if *at == partition));
        self.submitted.remove(&partition);
        self.merging.remove(&partition);
        if let Some(waiting) = &mut self.last_round {
            waiting.remove(&partition);
        }
    }

    /// Begins the last round before a stop, which waits for one more attempt of each stuck
    /// checkpoint. Returns their partitions; `None` if it had begun before.
    pub(super) fn begin_last_round(&mut self) -> Option<Vec<u16>> {
        if self.last_round.is_some() {
            return None;
        }
        let stuck: BTreeSet<u16> = self.submitted.keys().copied().collect();
        let partitions = stuck.iter().copied().collect();
        self.last_round = Some(stuck);
        Some(partitions)
    }

    /// The next step of the last round. `Rest` means that it is over, even if some checkpoints
    /// could not be written.
    pub(super) fn next_of_last_round(&self) -> Next {
        match (self.next(), &self.last_round) {
            (Next::Rest, Some(waiting)) if !waiting.is_empty() => Next::Wait,
            (next, _) => next,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: CheckpointPolicy = CheckpointPolicy { events: 1_000, interval: Duration::from_secs(60) };

    fn machine() -> (Checkpointer, Stopwatch) {
        let began = Stopwatch::now();
        (Checkpointer::new(POLICY, began), began)
    }

    fn unsaved(partition: u16, events_to_replay: u64, seconds: u64) -> Unsaved {
        Unsaved { partition, events_to_replay, unsaved_for: Duration::from_secs(seconds) }
    }

    /// Freezes, collects and submits the partition whose turn it is.
    fn submit(machine: &mut Checkpointer, partition: u16, at: Stopwatch) -> u64 {
        assert_eq!(machine.next(), Next::Freeze(partition));
        machine.frozen(partition, true);
        assert_eq!(machine.next(), Next::Collect(partition));
        let job = machine.submitted(partition, at);
        assert_eq!(machine.next(), Next::Wait);
        job
    }

    #[test]
    fn a_table_of_due_rounds() {
        // Seconds since the last round, forced, unsaved partitions; the partitions of the round.
        let table: [(u64, bool, &[Unsaved], &[u16]); 9] = [
            (0, false, &[], &[]),
            (60, true, &[], &[]),
            (59, false, &[unsaved(1, 999, 59)], &[]),
            (0, false, &[unsaved(1, 1_000, 0)], &[1]),
            (0, false, &[unsaved(1, 1_000, 0), unsaved(2, 99, 0), unsaved(3, 100, 0)], &[1, 3]),
            (60, false, &[unsaved(1, 99, 599)], &[]),
            (60, false, &[unsaved(1, 99, 600)], &[1]),
            (60, false, &[unsaved(1, 100, 1)], &[1]),
            (0, true, &[unsaved(1, 1, 0), unsaved(2, 1, 0)], &[1, 2]),
        ];
        for (seconds, force, partitions, expected) in table {
            let (mut machine, began) = machine();
            let next = machine.begin_round(began + Duration::from_secs(seconds), force, partitions);
            assert_eq!(next, expected.first().map_or(Next::Rest, |first| Next::Freeze(*first)), "{partitions:?}");
            assert_eq!(machine.due, expected);
        }
    }

    #[test]
    fn a_round_goes_from_partition_to_partition() {
        let (mut machine, began) = machine();
        machine.begin_round(began, true, &[unsaved(1, 1, 0), unsaved(2, 1, 0), unsaved(3, 1, 0)]);
        let first = submit(&mut machine, 1, began);
        assert_eq!(machine.begin_round(began, true, &[unsaved(9, 1, 0)]), Next::Rest, "a round is under way");
        assert_eq!(machine.reported(1, first, true), Some(began));
        assert_eq!(machine.reported(1, first, true), None, "reported before");
        // The partition's external ids are still being written, so nothing is collected.
        machine.frozen(2, false);
        let third = submit(&mut machine, 3, began);
        machine.reported(3, third, true);
        assert_eq!(machine.next(), Next::Rest);
    }

    #[test]
    fn a_checkpoint_that_fails_does_not_hold_up_the_round_and_is_reported_again() {
        let (mut machine, began) = machine();
        machine.begin_round(began, true, &[unsaved(1, 1, 0), unsaved(2, 1, 0)]);
        let failing = submit(&mut machine, 1, began);
        assert_eq!(machine.reported(1, failing, false), Some(began));
        let second = submit(&mut machine, 2, began);
        assert_eq!(machine.reported(1, failing, false), Some(began), "tried again");
        assert_eq!(machine.next(), Next::Wait, "for the second one");
        machine.reported(2, second, true);
        assert_eq!(machine.reported(1, failing, true), Some(began));
        assert_eq!(machine.next(), Next::Rest);
    }

    #[test]
    fn reports_about_what_was_cancelled_are_ignored() {
        let (mut machine, began) = machine();
        machine.begin_round(began, true, &[unsaved(1, 1, 0), unsaved(2, 1, 0)]);
        let cancelled = submit(&mut machine, 1, began);
        let merge = machine.begin_merge(1).unwrap();
        assert_eq!(machine.begin_merge(1), None, "one at a time");
        machine.cancel(1);
        assert_eq!(machine.next(), Next::Freeze(2));
        assert_eq!(machine.reported(1, cancelled, true), None);
        assert!(!machine.merged(1, merge));
        let next = machine.begin_merge(1).unwrap();
        assert!(!machine.merged(1, merge) && machine.merged(1, next));
        machine.frozen(2, true);
        machine.cancel(2);
        assert_eq!(machine.next(), Next::Rest);
    }

    #[test]
    fn the_last_round_waits_once_for_each_stuck_partition() {
        let (mut machine, began) = machine();
        machine.begin_round(began, true, &[unsaved(1, 1, 0)]);
        let stuck = submit(&mut machine, 1, began);
        machine.reported(1, stuck, false);
        assert_eq!(machine.begin_last_round(), Some(vec![1]));
        assert_eq!(machine.begin_last_round(), None);
        assert_eq!(machine.next_of_last_round(), Next::Wait);
        machine.begin_round(began, true, &[unsaved(2, 1, 0)]);
        assert_eq!(machine.next_of_last_round(), Next::Freeze(2), "the others meanwhile");
        let other = submit(&mut machine, 2, began);
        machine.reported(2, other, true);
        assert_eq!(machine.next_of_last_round(), Next::Wait);
        machine.reported(1, stuck, false);
        assert_eq!(machine.next_of_last_round(), Next::Rest, "it failed again");
    }
}
