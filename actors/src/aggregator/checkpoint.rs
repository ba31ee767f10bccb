//! Checkpoints of a shard: partition by partition, in small steps on the shard's thread, written by the keeper.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::fold::Fault;
use headcount_domain::fold::Position;

use super::entries::Entries;
use super::shard::Shard;
use crate::keeper::{Job, Keeper, Saved};

/// How many records one step encodes: well under a millisecond of the shard's time.
const RECORDS_A_STEP: usize = 256;

/// When a checkpoint is due.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// After so many events: what is replayed in about four seconds. What they changed is held encoded while it is written.
    pub events: u64,
    /// And after so much time, if anything changed.
    pub interval: Duration,
}

impl Default for CheckpointPolicy {
    fn default() -> Self {
        Self { events: 1_000_000, interval: Duration::from_secs(60) }
    }
}

/// What is to be done next about checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing.
    Rest,
    /// Another step, when queries had their turn.
    Step,
    /// The keeper is writing; [`Checkpoints::saved`] goes on.
    Wait,
}

struct Collecting {
    partition: u16,
    position: Position,
    entries: Entries,
}

/// The checkpoints of one shard.
pub(crate) struct Checkpoints {
    keeper: Keeper,
    policy: CheckpointPolicy,
    last: Stopwatch,
    due: VecDeque<u16>,
    collecting: Option<Collecting>,
    writing: Option<(u16, Arc<AtomicBool>)>,
}

impl Checkpoints {
    pub(crate) fn new(keeper: Keeper, policy: CheckpointPolicy) -> Self {
        Self { keeper, policy, last: Stopwatch::now(), due: VecDeque::new(), collecting: None, writing: None }
    }

    pub(super) fn keeper(&self) -> Keeper {
        self.keeper.clone()
    }

    fn idle(&self) -> bool {
        self.due.is_empty() && self.collecting.is_none() && self.writing.is_none()
    }
}

impl Shard {
    /// Whether no round is under way.
    pub(crate) fn checkpoints_idle(&self) -> bool {
        self.checkpoints.idle()
    }

    /// Begins a round of checkpoints if one is due, or if `now` says so.
    pub(crate) fn begin_checkpoints(&mut self, now: bool) -> Next {
        if !self.checkpoints.idle() {
            return Next::Rest;
        }
        let behind = |partition: &super::partition::Partition| partition.applied() - partition.saved();
        let events: u64 = self.partitions.values().map(behind).max().unwrap_or(0);
        let policy = self.checkpoints.policy;
        let due = now || events >= policy.events || self.checkpoints.last.elapsed() >= policy.interval;
        if events == 0 || !due {
            return Next::Rest;
        }
        let partitions = self.partitions.values();
        self.checkpoints.due =
            partitions.filter(|partition| behind(partition) > 0).map(super::partition::Partition::number).collect();
        self.checkpoints.last = Stopwatch::now();
        Next::Step
    }

    /// One step of the round. `done` is called by the keeper, and must bring its argument to [`Shard::saved`].
    pub(crate) fn step_checkpoint(&mut self, done: impl FnOnce(Saved) + Send + 'static) -> Next {
        if self.checkpoints.writing.is_some() {
            return Next::Wait;
        }
        let partition = match &self.checkpoints.collecting {
            Some(collecting) => collecting.partition,
            None => match self.checkpoints.due.pop_front() {
                Some(due) => due,
                None => return Next::Rest,
            },
        };
        match self.try_step(partition, done) {
            Ok(next) => next,
            Err(fault) => {
                self.break_partition(partition, &fault);
                Next::Step
            }
        }
    }

    fn try_step(&mut self, number: u16, done: impl FnOnce(Saved) + Send + 'static) -> Result<Next, Fault> {
        let Some(mut collecting) = self.checkpoints.collecting.take() else { return self.start_partition(number) };
        let Some(partition) = self.partitions.get_mut(&collecting.partition) else { return Ok(Next::Step) };
        if partition.collect_records(RECORDS_A_STEP, &mut collecting.entries)? {
            self.checkpoints.collecting = Some(collecting);
            return Ok(Next::Step);
        }
        let cancelled = Arc::new(AtomicBool::new(false));
        let (fingerprints, merge) = partition.fingerprint_jobs();
        self.checkpoints.writing = Some((collecting.partition, Arc::clone(&cancelled)));
        let realm = partition.realm();
        self.checkpoints.keeper.write(Job {
            partition: collecting.partition,
            realm,
            position: collecting.position,
            entries: collecting.entries,
            fingerprints,
            merge,
            cancelled,
            done: Box::new(done),
        });
        Ok(Next::Wait)
    }

    fn start_partition(&mut self, number: u16) -> Result<Next, Fault> {
        let all_up_to = self.all_up_to(number);
        let Some(partition) = self.partitions.get_mut(&number) else { return Ok(Next::Step) };
        let mut entries = Entries::default();
        let position = partition.freeze(all_up_to, &mut entries)?;
        self.checkpoints.collecting = Some(Collecting { partition: number, position, entries });
        Ok(Next::Step)
    }

    /// The keeper is done with a checkpoint.
    pub(crate) fn saved(&mut self, saved: Saved) -> Next {
        // A checkpoint that was taken back belongs to a state that is gone.
        let current = matches!(&self.checkpoints.writing, Some((number, _)) if *number == saved.partition);
        if !current {
            // The round goes on with the partitions that are left.
            return if self.checkpoints.writing.is_some() || self.checkpoints.idle() { Next::Rest } else { Next::Step };
        }
        self.checkpoints.writing = None;
        if !saved.durable {
            self.give_up_checkpoints();
        }
        if let Some(partition) = self.partitions.get_mut(&saved.partition)
            && saved.durable
        {
            partition.saved_at(saved.position, saved.runs);
        }
        Next::Step
    }

    /// Takes back the checkpoint of a partition whose state is about to be dropped, and waits until that is decided.
    pub(super) fn abandon_checkpoint(&mut self, number: u16) {
        self.cancel_checkpoint(number);
        self.checkpoints.keeper.settle();
    }

    /// Takes back the checkpoint of a partition. That is decided when the keeper has settled.
    pub(super) fn cancel_checkpoint(&mut self, number: u16) {
        self.checkpoints.due.retain(|due| *due != number);
        if self.checkpoints.collecting.as_ref().is_some_and(|collecting| collecting.partition == number) {
            self.checkpoints.collecting = None;
        }
        if let Some((_, cancelled)) = self.checkpoints.writing.take_if(|(writing, _)| *writing == number) {
            cancelled.store(true, Ordering::Release);
        }
    }
}
