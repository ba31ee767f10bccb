//! Keeping a shard's records within its share of the memory: saved ones that are not in use are let go of, and read back
//! from the store on demand. Where too much is not saved yet, a checkpoint is due before its time; and where a checkpoint
//! can't keep up, applying waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::fold::Fault;
use headcount_domain::table::Bytes;

use super::checkpoint::Next;
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

/// What all shards have in memory, together: one busy project may use all of it.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    resident: AtomicUsize,
    unsaved: AtomicUsize,
}

impl Shares {
    /// How many bytes of records are in memory.
    pub(crate) fn resident(&self) -> usize {
        self.resident.load(Ordering::Relaxed)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Memory {
    /// How many bytes of records all shards may keep.
    limit: usize,
    shares: Arc<Shares>,
    /// What this shard last added to the shares.
    own: Bytes,
    events: usize,
    questions: usize,
    /// How long the next look may take.
    look: Duration,
    /// Too much is not saved yet.
    pressed: bool,
    /// So much that applying must wait for a checkpoint.
    stopped: bool,
    /// A checkpoint was given up: until a restart nothing waits for one, and memory grows instead.
    without_checkpoints: bool,
}

impl Memory {
    pub(crate) fn new(limit: usize, shares: Arc<Shares>) -> Self {
        Self {
            limit,
            shares,
            own: Bytes::default(),
            events: 0,
            questions: 0,
            look: LOOK,
            pressed: false,
            stopped: false,
            without_checkpoints: false,
        }
    }

    /// Tells the others what this shard has, and answers what all have.
    fn share(&mut self, now: Bytes) -> Bytes {
        let change = |total: &AtomicUsize, before: usize, now: usize| {
            let rest = total.fetch_add(now.wrapping_sub(before), Ordering::Relaxed).wrapping_sub(before);
            rest.wrapping_add(now)
        };
        let before = std::mem::replace(&mut self.own, now);
        Bytes {
            resident: change(&self.shares.resident, before.resident, now.resident),
            unsaved: change(&self.shares.unsaved, before.unsaved, now.unsaved),
        }
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
        let limit = self.memory.limit;
        (self.memory.events, self.memory.questions) = (0, 0);
        let own = self.bytes();
        let mut all = self.memory.share(own);
        let mut evicting = false;
        if all.resident > limit {
            // A little more than is needed, so that the next looks find nothing to do; each shard its part.
            let too_much = all.resident - limit / 8 * 7;
            let part = (too_much as u128 * own.resident as u128 / all.resident.max(1) as u128) as usize;
            let patience = if all.resident > limit + limit / 4 { self.memory.look.max(FAR_LOOK) } else { self.memory.look };
            evicting = !self.evict(part, patience);
            let own = self.bytes();
            all = self.memory.share(own);
        }
        let own = self.memory.own;
        tracing::trace!(resident = own.resident, unsaved = own.unsaved, all = all.resident, limit, "records in memory");
        // A shard that has saved everything can do nothing about the others' part. What can be let go of goes first: while a
        // checkpoint is under way nothing can.
        let has_part = own.unsaved > limit / 16 && !self.memory.without_checkpoints;
        let in_the_way = all.resident > limit && all.unsaved > limit / 4 && !evicting;
        self.memory.stopped = has_part && all.unsaved > limit / 8 * 5;
        self.memory.pressed = has_part && (in_the_way || all.unsaved > limit / 8 * 3);
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

    fn bytes(&mut self) -> Bytes {
        let mut total = Bytes::default();
        self.partitions.values_mut().for_each(|partition| total += partition.bytes());
        total
    }

    /// A checkpoint can't be written before the next start.
    pub(super) fn give_up_checkpoints(&mut self) {
        self.memory.without_checkpoints = true;
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
        if !self.is_pressed() {
            return Ok(());
        }
        let mut next = self.begin_checkpoints(true);
        let (done, saved) = std::sync::mpsc::channel();
        loop {
            match next {
                Next::Rest => break,
                Next::Step => {
                    let done = done.clone();
                    next = self.step_checkpoint(move |saved| drop(done.send(saved)));
                }
                Next::Wait => {
                    let saved = saved.recv().map_err(|_| Fault::defect("the checkpoint thread is gone"))?;
                    next = self.saved(saved);
                }
            }
        }
        if let Some(fault) = self.failed() {
            return Err(fault.clone());
        }
        self.relieve();
        Ok(())
    }
}
