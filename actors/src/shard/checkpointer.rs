//! Checkpoints of a shard: partition by partition, in small steps on the shard's thread, written by the keeper.
//!
//! A partition whose checkpoint can't be written is stuck: the keeper tries again, and the rounds pass over the partition
//! until it succeeded.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::fault::Fault;
use headcount_storage::external_ids::{Frozen, Written};
use headcount_storage::store::{PartitionId, Store};

use super::entries::Entries;
use super::partition::{Begun, Partition};
use super::shard::Shard;
use crate::checkpoint_writer::{Claim, Job, Keeper, Mailbox, MergeJob, Outcome, Reply, Report};

/// How many records one step encodes: well under a millisecond of the shard's time.
const RECORDS_A_STEP: usize = 256;
/// A partition that changed little waits for a round for at most so many intervals, and while replaying it costs less than
/// one part in so many of what a checkpoint is due after.
const LITTLE_WAITS: u32 = 10;
const LITTLE_PART: u64 = 10;

/// When a checkpoint is due.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointPolicy {
    /// After so many events in the log since the first that is not saved: what is read again in about four seconds. What they changed is held encoded while it is written.
    pub events: u64,
    /// And after so much time, if anything changed; ten times as much where little did.
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
    /// The keeper is writing; [`Shard::hear_keeper`] goes on.
    Wait,
}

struct Collecting {
    partition: u16,
    serial: u64,
    frozen_at: Stopwatch,
    entries: Entries,
    new_ids: Option<Frozen>,
}

/// A checkpoint that the keeper has.
struct Handed {
    job: u64,
    claim: Arc<Claim>,
    stored_as: PartitionId,
    frozen_at: Stopwatch,
}

/// Work of the keeper that nobody wants any more.
#[must_use = "until it was waited for, the work may go on"]
#[derive(Default, Clone)]
pub(crate) struct TakenBack {
    claims: Vec<Arc<Claim>>,
    stored_as: Vec<PartitionId>,
}

impl TakenBack {
    /// Waits until it is over, and has the store decide whether a commit that failed counts: the state that is opened next
    /// must know. It waits for nothing else that the keeper does.
    pub(crate) fn wait(&self, store: &dyn Store) {
        self.claims.iter().for_each(|claim| claim.take_back());
        for stored_as in &self.stored_as {
            if let Err(error) = store.recover(*stored_as) {
                tracing::warn!(%stored_as, %error, "a checkpoint that was taken back is still in doubt");
            }
        }
    }

    /// Adds what else was taken back.
    pub(super) fn extend(&mut self, other: Self) {
        self.claims.extend(other.claims);
        self.stored_as.extend(other.stored_as);
    }
}

/// A merge that the keeper has.
struct Merging {
    job: u64,
    claim: Arc<Claim>,
}

/// The checkpoints of one shard.
pub(crate) struct Checkpoints {
    pub(super) keeper: Keeper,
    mailbox: Mailbox,
    pub(super) reports: Receiver<Report>,
    policy: CheckpointPolicy,
    pub(super) last: Stopwatch,
    due: VecDeque<u16>,
    collecting: Option<Collecting>,
    /// The partition whose checkpoint the round waits for.
    writing: Option<u16>,
    handed: BTreeMap<u16, Handed>,
    merging: BTreeMap<u16, Merging>,
    jobs: u64,
    /// While the engine stops: the stuck partitions that the last round still waits for.
    last_round: Option<BTreeSet<u16>>,
}

impl Checkpoints {
    pub(crate) fn new(keeper: Keeper, policy: CheckpointPolicy) -> Self {
        let (mailbox, reports) = Mailbox::new();
        Self {
            keeper,
            mailbox,
            reports,
            policy,
            last: Stopwatch::now(),
            due: VecDeque::new(),
            collecting: None,
            writing: None,
            handed: BTreeMap::new(),
            merging: BTreeMap::new(),
            jobs: 0,
            last_round: None,
        }
    }

    fn idle(&self) -> bool {
        self.due.is_empty() && self.collecting.is_none() && self.writing.is_none()
    }

    fn next_job(&mut self, partition: u16) -> (u64, Reply, Arc<Claim>) {
        self.jobs += 1;
        (self.jobs, Reply::new(partition, self.jobs, self.mailbox.clone()), Arc::default())
    }
}

impl Shard {
    /// Calls `nudge` whenever there is something for [`Shard::hear_keeper`].
    pub(crate) fn nudge_by(&self, nudge: impl Fn() + Send + Sync + 'static) {
        self.checkpoints.mailbox.nudge_by(nudge);
    }

    /// Begins a round of checkpoints if one is due, or if `now` says so.
    pub(crate) fn begin_checkpoints(&mut self, now: bool) -> Next {
        if !self.checkpoints.idle() {
            return Next::Rest;
        }
        let able = || self.partitions.values().filter(|partition| !partition.is_stuck() && partition.unsaved_from().is_some());
        let policy = self.checkpoints.policy;
        let is_time = self.checkpoints.last.elapsed() >= policy.interval;
        if !now && !is_time && able().all(|partition| self.to_replay(partition) < policy.events) {
            return Next::Rest;
        }
        let due = able().filter(|partition| now || !self.can_wait(partition)).map(Partition::number).collect();
        self.checkpoints.due = due;
        self.checkpoints.last = Stopwatch::now();
        if self.checkpoints.due.is_empty() { Next::Rest } else { Next::Step }
    }

    /// Whether so little changed that the next round is soon enough: a checkpoint costs much the same for one event.
    fn can_wait(&self, partition: &Partition) -> bool {
        let policy = self.checkpoints.policy;
        let unsaved_for = self.progress().unsaved_for(partition.number()).unwrap_or_default();
        let is_soon = unsaved_for < policy.interval.saturating_mul(LITTLE_WAITS);
        is_soon && self.to_replay(partition) < policy.events / LITTLE_PART
    }

    /// How many events a start would read for the sake of a partition: the log is read from the first one that it lacks.
    fn to_replay(&self, partition: &Partition) -> u64 {
        partition.unsaved_from().map_or(0, |first| (self.history.last_position(partition.number()) + 1).saturating_sub(first))
    }

    /// One step of the round.
    pub(crate) fn step_checkpoint(&mut self) -> Next {
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
        match self.try_step(partition) {
            Ok(next) => next,
            Err(fault) => {
                self.break_partition(partition, &fault);
                Next::Step
            }
        }
    }

    fn try_step(&mut self, number: u16) -> Result<Next, Fault> {
        let Some(mut collecting) = self.checkpoints.collecting.take() else { return self.start_partition(number) };
        let Some(partition) = self.partitions.get_mut(&collecting.partition) else { return Ok(Next::Step) };
        if partition.collect_records(RECORDS_A_STEP, &mut collecting.entries)? {
            self.checkpoints.collecting = Some(collecting);
            return Ok(Next::Step);
        }
        let Collecting { partition: number, serial, frozen_at, entries, new_ids } = collecting;
        partition.handed_over(entries.bytes());
        let stored_as = partition.stored_as();
        let (job, reply, claim) = self.checkpoints.next_job(number);
        let handed = Handed { job, claim: Arc::clone(&claim), stored_as, frozen_at };
        self.checkpoints.handed.insert(number, handed);
        self.checkpoints.writing = Some(number);
        self.checkpoints.keeper.write(Job::new(reply, claim, stored_as, serial, entries, new_ids));
        Ok(Next::Wait)
    }

    fn start_partition(&mut self, number: u16) -> Result<Next, Fault> {
        let all_up_to = self.all_up_to(number);
        let Some(partition) = self.partitions.get_mut(&number) else { return Ok(Next::Step) };
        let mut entries = Entries::default();
        let frozen_at = Stopwatch::now();
        if let Some(Begun { serial, new_ids }) = partition.freeze(all_up_to, &mut entries)? {
            let collecting = Collecting { partition: number, serial, frozen_at, entries, new_ids };
            self.checkpoints.collecting = Some(collecting);
        }
        Ok(Next::Step)
    }

    /// Takes in what the keeper has reported.
    pub(crate) fn hear_keeper(&mut self) -> Next {
        while let Ok(report) = self.checkpoints.reports.try_recv() {
            self.heard(report);
        }
        self.next_of_round()
    }

    /// How the round goes on.
    pub(super) fn next_of_round(&self) -> Next {
        match self.checkpoints.writing {
            Some(_) => Next::Wait,
            None if self.checkpoints.idle() => Next::Rest,
            None => Next::Step,
        }
    }

    /// Takes one report in.
    pub(super) fn heard(&mut self, report: Report) {
        let Report { partition: number, job, outcome } = report;
        if let Outcome::Merged(run) = outcome {
            return self.merged(number, job, run);
        }
        // A checkpoint that was taken back belongs to a state that is gone.
        if self.checkpoints.handed.get(&number).is_none_or(|handed| handed.job != job) {
            return;
        }
        match outcome {
            Outcome::Saved { ids } => self.saved(number, ids),
            Outcome::Postponed { error } => self.postponed(number, &error),
            Outcome::Dropped { ids } => self.dropped(number, ids),
            Outcome::Merged(_) => {}
        }
        self.checkpoints.writing.take_if(|writing| *writing == number);
        if let Some(waiting) = &mut self.checkpoints.last_round {
            waiting.remove(&number);
        }
        self.relieve();
    }

    fn saved(&mut self, number: u16, ids: Option<Written>) {
        let Some(handed) = self.checkpoints.handed.remove(&number) else { return };
        let Some(partition) = self.partitions.get_mut(&number) else { return };
        if partition.is_stuck() {
            tracing::info!(partition = number, "its checkpoints can be written again");
        }
        partition.settle();
        ids.into_iter().for_each(|run| partition.adopt(run));
        let is_all = partition.unsaved_from().is_none();
        self.progress().note_saved(number, handed.frozen_at, is_all);
        self.progress().set_failing(number, false);
        self.progress().set_full(number, false);
        self.begin_merge(number);
    }

    fn postponed(&mut self, number: u16, error: &str) {
        let Some(partition) = self.partitions.get_mut(&number) else { return };
        if !partition.is_stuck() {
            tracing::error!(partition = number, error, "its checkpoints can't be written; the log keeps its events");
        }
        partition.set_stuck();
        self.progress().note_unsaved(number);
        self.progress().set_failing(number, true);
    }

    /// The log has everything, but what that checkpoint took would be missing from the next one: there must be none.
    fn dropped(&mut self, number: u16, ids: Option<Written>) {
        self.checkpoints.handed.remove(&number);
        let Some(partition) = self.partitions.get_mut(&number) else { return };
        partition.set_stuck();
        ids.into_iter().for_each(|run| partition.adopt(run));
        self.progress().set_failing(number, true);
    }

    fn begin_merge(&mut self, number: u16) {
        if self.checkpoints.merging.contains_key(&number) {
            return;
        }
        let Some(merge) = self.partitions.get_mut(&number).and_then(Partition::merge) else { return };
        let (job, reply, claim) = self.checkpoints.next_job(number);
        self.checkpoints.merging.insert(number, Merging { job, claim: Arc::clone(&claim) });
        self.checkpoints.keeper.merge(MergeJob { reply, claim, merge });
    }

    fn merged(&mut self, number: u16, job: u64, run: Option<Written>) {
        let merging = &mut self.checkpoints.merging;
        if merging.get(&number).is_none_or(|merging| merging.job != job) {
            return;
        }
        merging.remove(&number);
        if let Some(run) = run
            && let Some(partition) = self.partitions.get_mut(&number)
        {
            partition.adopt(run);
            self.begin_merge(number);
        }
    }

    /// One last round: each partition is written once, and what the keeper has postponed is tried once more. `Rest`: it is
    /// over, whether or not all could be written.
    pub(crate) fn drain(&mut self) -> Next {
        if !self.checkpoints.idle() {
            return self.next_of_round();
        }
        if self.has_queued() {
            return Next::Wait;
        }
        if self.checkpoints.last_round.is_none() {
            let stuck: BTreeSet<u16> = self.checkpoints.handed.keys().copied().collect();
            stuck.iter().for_each(|number| self.checkpoints.keeper.hurry(*number));
            self.checkpoints.last_round = Some(stuck);
            if self.begin_checkpoints(true) == Next::Step {
                return Next::Step;
            }
        }
        match &self.checkpoints.last_round {
            Some(waiting) if !waiting.is_empty() => Next::Wait,
            _ => Next::Rest,
        }
    }

    /// Takes back the checkpoint and the merge of a partition whose state is about to be dropped, and waits until that is
    /// decided.
    pub(super) fn abandon_checkpoint(&mut self, number: u16) {
        let store = Arc::clone(&self.shared.store);
        self.cancel_checkpoint(number).wait(&*store);
    }

    /// Takes back the checkpoint and the merge of a partition. It may be opened again when that was waited for.
    pub(super) fn cancel_checkpoint(&mut self, number: u16) -> TakenBack {
        let checkpoints = &mut self.checkpoints;
        checkpoints.due.retain(|due| *due != number);
        checkpoints.collecting.take_if(|collecting| collecting.partition == number);
        checkpoints.writing.take_if(|writing| *writing == number);
        if let Some(waiting) = &mut checkpoints.last_round {
            waiting.remove(&number);
        }
        let (handed, merging) = (checkpoints.handed.remove(&number), checkpoints.merging.remove(&number));
        let stored_as = handed.iter().map(|handed| handed.stored_as).collect();
        let claims: Vec<_> = handed.map(|handed| handed.claim).into_iter().chain(merging.map(|merging| merging.claim)).collect();
        claims.iter().for_each(|claim| claim.stop());
        self.progress().set_failing(number, false);
        self.progress().set_full(number, false);
        TakenBack { claims, stored_as }
    }
}
