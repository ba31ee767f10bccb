//! Keeping a shard's records within its share of the memory: saved ones that are not in use are let go of, and read back
//! from the store on demand. Where too much is not saved yet, a checkpoint is due before its time; and where a checkpoint
//! can't keep up, applying waits for it.
//!
//! Rollups have their part of it, and can't be let go of: the more of them there are, the fewer records stay.
//!
//! A partition whose checkpoint can't be written keeps all that changed since, for as long as that lasts. It has a share for
//! that, and takes no more events when it has used it up; what is left is for the other partitions, which go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::cache::table::Bytes;
use headcount_domain::fault::Fault;

use super::checkpoint_progress::CheckpointProgress;
use super::checkpointer::Next;
use super::partition::Partition;
use super::shard::Shard;

/// After how many events, and how many questions, the memory is looked at.
const EVENTS_A_LOOK: usize = 1024;
const QUESTIONS_A_LOOK: usize = 64;
/// How many records of each kind and project are passed over before the clock is looked at.
const RECORDS_A_ROUND: usize = 1024;
/// How long one look may take; the next one goes on where it stopped.
const LOOK: Duration = Duration::from_millis(2);
/// And how long far beyond the limit, so that a slow machine keeps to it, too: it may find that nothing can go now.
const FAR_LOOK: Duration = Duration::from_millis(20);
/// A question that took so long is followed by a look, which may take as long as it did.
const LONG: Duration = Duration::from_millis(5);
const LONGEST_LOOK: Duration = Duration::from_millis(200);
/// How long a start waits for checkpoints that can't be written, where memory does not allow to go on without.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// What all shards have in memory, together: one busy project may use all of it.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    resident: AtomicUsize,
    unsaved: AtomicUsize,
    stuck: AtomicUsize,
    rollups: AtomicUsize,
    progress: CheckpointProgress,
}

impl Shares {
    /// How checkpoints are getting on.
    pub(crate) fn progress(&self) -> &CheckpointProgress {
        &self.progress
    }

    /// How many bytes of records and rollups are in memory.
    pub(crate) fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed).wrapping_add(self.stuck.load(Ordering::Relaxed))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Memory {
    /// How many bytes of records and rollups all shards may keep.
    limit: usize,
    shares: Arc<Shares>,
    /// What this shard last added to the shares.
    own: Held,
    events: usize,
    questions: usize,
    /// How long the next look may take.
    look: Duration,
    /// Too much is not saved yet.
    pressed: bool,
    /// So much that applying must wait for a checkpoint.
    stopped: bool,
}

/// What is in memory, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Of partitions whose checkpoints can be written, and what the others have saved.
    free: Bytes,
    /// What stuck partitions keep.
    stuck: usize,
    /// Rollups, as a part of the others.
    rollups: usize,
}

impl Held {
    /// What is left of `limit` beside the stuck partitions, which have at most half of it. However large rollups are, a quarter
    /// of it is for records: with less, every event would read its records back.
    fn rest_of(self, limit: usize) -> usize {
        (limit - self.stuck.min(limit / 2)).max(self.rollups + limit / 4)
    }
}

impl Memory {
    pub(crate) fn new(limit: usize, shares: Arc<Shares>) -> Self {
        Self { limit, shares, own: Held::default(), events: 0, questions: 0, look: LOOK, pressed: false, stopped: false }
    }

    /// Tells the others what this shard has, and answers what all have.
    fn share(&mut self, now: Held) -> Held {
        let change = |total: &AtomicUsize, before: usize, now: usize| {
            let rest = total.fetch_add(now.wrapping_sub(before), Ordering::Relaxed).wrapping_sub(before);
            rest.wrapping_add(now)
        };
        let before = std::mem::replace(&mut self.own, now);
        let free = Bytes {
            resident: change(&self.shares.resident, before.free.resident, now.free.resident),
            unsaved: change(&self.shares.unsaved, before.free.unsaved, now.free.unsaved),
        };
        let stuck = change(&self.shares.stuck, before.stuck, now.stuck);
        Held { free, stuck, rollups: change(&self.shares.rollups, before.rollups, now.rollups) }
    }

    /// How much of the log is replayed before the memory is looked at: what its events become is some times larger.
    pub(super) fn replay_bytes(&self) -> usize {
        self.limit / 8
    }
}

impl Shard {
    /// Some events were applied.
    pub(super) fn applied_some(&mut self, events: usize) {
        self.memory.events += events;
        if self.memory.events >= EVENTS_A_LOOK {
            self.relieve();
        }
    }

    /// A question was answered, which may have brought records into memory: many, if it took long.
    pub(crate) fn answered_one(&mut self, took: Duration) {
        self.memory.questions += 1;
        if self.memory.questions >= QUESTIONS_A_LOOK || took >= LONG {
            self.memory.look = took.clamp(LOOK, LONGEST_LOOK);
            self.relieve();
            self.memory.look = LOOK;
        }
    }

    /// Lets go of what is not in use, if there is too much.
    pub(crate) fn relieve(&mut self) {
        (self.memory.events, self.memory.questions) = (0, 0);
        let own = self.held();
        let mut all = self.memory.share(own);
        let limit = all.rest_of(self.memory.limit);
        let mut evicting = false;
        if all.free.resident > limit {
            // A little more than is needed, so that the next looks find nothing to do; each shard its part.
            let too_much = all.free.resident - limit / 8 * 7;
            let part = (too_much as u128 * own.free.resident as u128 / all.free.resident.max(1) as u128) as usize;
            let patience = if all.free.resident > limit + limit / 4 { self.memory.look.max(FAR_LOOK) } else { self.memory.look };
            evicting = !self.evict(part, patience);
            let own = self.held();
            all = self.memory.share(own);
        }
        let (own, all_free) = (self.memory.own.free, all.free);
        tracing::trace!(resident = own.resident, unsaved = own.unsaved, all = all_free.resident, limit, "records in memory");
        // A shard that has saved everything can do nothing about the others' part. What can be let go of goes first: while a
        // checkpoint is under way nothing can.
        let has_part = own.unsaved > limit / 16;
        let in_the_way = all_free.resident > limit && all_free.unsaved > limit / 4 && !evicting;
        self.memory.stopped = has_part && all_free.unsaved > limit / 8 * 5;
        self.memory.pressed = has_part && (in_the_way || all_free.unsaved > limit / 8 * 3);
        self.look_at_partitions(all.stuck);
    }

    /// Notes which partitions have something that is not saved, and which stuck ones have used up their share: a quarter of
    /// the memory for all of them, of which each may have its part whatever the others do.
    fn look_at_partitions(&mut self, all_stuck: usize) {
        let shares = &self.memory.shares;
        let share = self.memory.limit / 4;
        let part = share / shares.progress.failing().max(1);
        for (number, partition) in &mut self.partitions {
            if partition.unsaved_from().is_some() {
                shares.progress.note_unsaved(*number);
            }
            if partition.is_stuck() {
                shares.progress.set_full(*number, all_stuck > share && partition.stuck_bytes() > part);
            }
        }
    }

    /// Lets go of `enough` bytes. `false`: time was up before that.
    fn evict(&mut self, mut enough: usize, patience: Duration) -> bool {
        let began = Stopwatch::now();
        // Two rounds over everything: the first may find all of it in use.
        let most = 2 + self.rounds() * 2;
        let mut idle_rounds = 0;
        while enough > 0 && idle_rounds < most {
            if began.elapsed() >= patience {
                return false;
            }
            let mut freed = 0;
            for partition in self.partitions.values_mut() {
                freed += partition.evict(enough.saturating_sub(freed), RECORDS_A_ROUND);
            }
            enough = enough.saturating_sub(freed);
            idle_rounds = if freed == 0 { idle_rounds + 1 } else { 0 };
        }
        true
    }

    /// How many rounds it takes to pass over all records.
    fn rounds(&mut self) -> usize {
        self.partitions.values_mut().map(Partition::evictable).max().unwrap_or(0) / RECORDS_A_ROUND
    }

    fn held(&mut self) -> Held {
        let mut held = Held::default();
        for partition in self.partitions.values_mut() {
            let bytes = partition.bytes();
            held.rollups += partition.rollup_bytes();
            if partition.is_stuck() {
                held.stuck += partition.stuck_bytes();
                held.free.resident += bytes.resident - bytes.unsaved.min(bytes.resident);
            } else {
                held.free += bytes;
            }
        }
        held
    }

    /// How checkpoints are getting on.
    pub(super) fn progress(&self) -> &CheckpointProgress {
        &self.memory.shares.progress
    }

    /// Whether a checkpoint should begin before its time.
    pub(crate) fn is_pressed(&self) -> bool {
        self.memory.pressed
    }

    /// Whether applying must wait for a checkpoint.
    pub(crate) fn is_stopped(&self) -> bool {
        self.memory.stopped
    }

    /// Writes checkpoints until there is room: at a start, where nobody else drives them.
    pub(super) fn make_room(&mut self) -> Result<(), Fault> {
        self.relieve();
        if self.is_pressed() {
            let mut next = self.begin_checkpoints(true);
            while next != Next::Rest {
                next = if next == Next::Step { self.step_checkpoint() } else { self.wait_for_keeper(None)? };
            }
            if let Some(fault) = self.failed() {
                return Err(fault);
            }
            self.relieve();
        }
        self.wait_for_stuck()
    }

    /// Waits while stuck partitions keep too much: here no event can be refused.
    fn wait_for_stuck(&mut self) -> Result<(), Fault> {
        let began = Stopwatch::now();
        while self.memory.own.stuck > self.memory.limit / 2 {
            let left = LONGEST_WAIT.checked_sub(began.elapsed());
            let left = left.ok_or_else(|| Fault::io("checkpoints can't be written, and too much is in memory only"))?;
            self.wait_for_keeper(Some(left))?;
            self.relieve();
        }
        Ok(())
    }

    fn wait_for_keeper(&mut self, most: Option<Duration>) -> Result<Next, Fault> {
        let gone = || Fault::defect("the checkpoint thread is gone");
        let report = match most {
            Some(most) => match self.checkpoints.reports.recv_timeout(most) {
                Err(RecvTimeoutError::Timeout) => return Ok(self.next_of_round()),
                report => report.map_err(|_| gone())?,
            },
            None => self.checkpoints.reports.recv().map_err(|_| gone())?,
        };
        self.heard(report);
        Ok(self.next_of_round())
    }
}
