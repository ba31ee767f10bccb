//! Partitions that take no work for a while, since their state is rebuilt after a fault.
//!
//! A rebuild opens the last checkpoint (or begins with nothing, where the store or the index is damaged) and replays the
//! log up to what was applied before. A thread of its own reads; the shard applies what that thread hands over in slices,
//! between which its other partitions are served. What arrives for the partition meanwhile is held, and then goes on.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::intake::event::Event;
use headcount_domain::intake::event::Position;
use headcount_storage::log::{History, Record};

use super::checkpointer::TakenBack;
use super::fair_queue::{Pace, SLICE};
use super::health::Condition;
use super::partition::{Outcome, Partition, Shared, partition_of};
use super::shard::{Events, Queued, Shard};
use crate::event_codec;
use crate::fault;

/// How many records of the log are read ahead of the shard.
const READ_AHEAD: usize = 2;
/// After so many attempts that failed a partition counts as failed. It is tried again all the same.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A partition that is rebuilt, and its work meanwhile, by position.
pub(super) struct Held {
    works: BTreeMap<Position, Queued>,
    mending: Mending,
}

impl Held {
    pub(super) fn hold(&mut self, queued: Queued) {
        if matches!(self.mending.stage, Stage::Stuck) {
            // The next start applies it. Its sender hears now that the outcome is not known.
            return;
        }
        self.works.insert(queued.work.first, queued);
    }
}

struct Mending {
    fault: Fault,
    /// What was applied before, and is to be applied again.
    target: Position,
    /// The part of the store that it was kept in.
    stored_as: u16,
    /// The state is rebuilt from the log alone.
    is_afresh: bool,
    /// The index of external ids, too.
    resets_index: bool,
    attempts: u32,
    stage: Stage,
    /// What was read, and is not applied yet.
    read: VecDeque<(Position, Box<Event>)>,
    /// The state that is given up, to be dropped elsewhere: that takes time.
    old: Option<Partition>,
    /// What the keeper had of it, which must be over before it is opened again.
    taken_back: TakenBack,
}

enum Stage {
    Waiting(Stopwatch),
    Running(Receiver<Piece>),
    /// Only a start can help.
    Stuck,
}

/// What the reading thread hands over.
enum Piece {
    Opened(Box<Partition>),
    Read(Position, Events),
    End,
    Failed(Fault),
}

impl Shard {
    /// The position up to which everything of a partition is applied.
    pub(super) fn all_up_to(&self, number: u16) -> Position {
        let applied = self.partitions.get(&number).map_or(0, Partition::applied);
        if let Some(dropped) = self.dropped.get(&number) {
            return applied.min(*dropped);
        }
        if self.held.contains_key(&number) {
            // A replay goes by the order of the log.
            return applied;
        }
        let of_partition = self.works.fronts().filter(|(project, _)| partition_of(*project) == number);
        of_partition.map(|(_, front)| front.next() - 1).min().map_or(applied, |before| before.min(applied))
    }

    fn take_works(&mut self, number: u16) -> BTreeMap<Position, Queued> {
        let works = self.works.extract(|project| partition_of(project) == number);
        works.into_iter().map(|queued| (queued.work.first, queued)).collect()
    }

    /// Lets what was held go on.
    fn release(&mut self, number: u16) {
        let Some(held) = self.held.remove(&number) else { return };
        for queued in held.works.into_values() {
            if queued.is_done() {
                queued.finish();
            } else {
                self.works.push(queued.work.project, queued);
            }
        }
    }

    /// The first fault that a partition is not rebuilt from yet.
    pub(super) fn failed(&self) -> Option<Fault> {
        self.held.values().next().map(|held| held.mending.fault.clone())
    }

    /// Gives a partition's state up, and has it rebuilt.
    pub(super) fn break_partition(&mut self, number: u16, fault: &Fault) {
        // The next start opens the damaged part of the store again, and must not trust it.
        self.shared.damage.noted(fault.clone());
        let mut taken_back = self.cancel_checkpoint(number);
        let old = self.partitions.remove(&number);
        let mut works = self.take_works(number);
        let before = self.held.remove(&number).map(|held| {
            works.extend(held.works);
            held.mending
        });
        let attempts = before.as_ref().map_or(0, |before| before.attempts + 1);
        before.iter().for_each(|before| taken_back.extend(before.taken_back.clone()));
        let mending = Mending {
            fault: fault.clone(),
            target: before.as_ref().map_or(0, |before| before.target),
            stored_as: before.as_ref().map_or(number, |before| before.stored_as),
            is_afresh: before.as_ref().is_some_and(|before| before.is_afresh),
            resets_index: before.as_ref().is_some_and(|before| before.resets_index),
            attempts,
            stage: Stage::Waiting(Stopwatch::now() + pause(attempts)),
            read: VecDeque::new(),
            old: None,
            taken_back,
        };
        let mending = mending.after(fault, old, before.is_none());
        let is_stuck = matches!(mending.stage, Stage::Stuck);
        let condition = if is_stuck || attempts >= ATTEMPTS { Condition::Failed } else { Condition::Rebuilding };
        self.shared.health.set(number, condition, &fault.to_string());
        if is_stuck {
            tracing::error!(partition = number, %fault, "a partition can't be rebuilt before the next start");
            works.clear();
        } else {
            tracing::error!(partition = number, %fault, attempts, "a partition's state is given up, and rebuilt from the log");
        }
        self.held.insert(number, Held { works, mending });
    }

    /// One slice of the rebuild that is under way; begins the next one that is due. `true`: there is more to apply now.
    pub(super) fn mend(&mut self) -> bool {
        if self.held.is_empty() {
            return false;
        }
        let is_running = |held: &Held| matches!(held.mending.stage, Stage::Running(_));
        let running = self.held.iter().find(|(_, held)| is_running(held)).map(|(number, _)| *number);
        match running {
            Some(number) => self.mend_some(number),
            None => {
                self.begin_to_mend();
                false
            }
        }
    }

    fn begin_to_mend(&mut self) {
        let now = Stopwatch::now();
        let is_due = |mending: &Mending| matches!(mending.stage, Stage::Waiting(from) if from <= now);
        let due = self.held.iter_mut().find(|(_, held)| is_due(&held.mending));
        let Some((number, mending)) = due.map(|(number, held)| (*number, &mut held.mending)) else { return };
        let (pieces, receiver) = sync_channel(READ_AHEAD);
        let order = Order {
            number,
            stored_as: mending.stored_as,
            is_afresh: mending.is_afresh,
            resets_index: mending.resets_index,
            target: mending.target,
            shared: self.shared.clone(),
            history: Arc::clone(&self.history),
            old: mending.old.take(),
            taken_back: mending.taken_back.clone(),
            pieces,
            wake: Arc::clone(&self.wake),
        };
        mending.stage = Stage::Running(receiver);
        let thread = std::thread::Builder::new().name("rebuild".into()).spawn(move || order.run());
        if let Err(error) = thread {
            self.break_partition(number, &Fault::io(format!("could not start a thread: {error}")));
        }
    }

    fn mend_some(&mut self, number: u16) -> bool {
        let began = Stopwatch::now();
        loop {
            if self.is_stopped() {
                return false;
            }
            if let Err(fault) = self.apply_read(number, began) {
                self.break_partition(number, &fault);
                return false;
            }
            let Some(mending) = self.mending(number) else { return false };
            if !mending.read.is_empty() || began.elapsed() >= SLICE {
                return true;
            }
            let Stage::Running(pieces) = &mending.stage else { return false };
            match pieces.try_recv() {
                Ok(Piece::Opened(partition)) => {
                    mending.stored_as = partition.stored_as().number();
                    self.partitions.insert(number, *partition);
                }
                Ok(Piece::Read(first, events)) => {
                    let target = mending.target;
                    mending.read = (first..).zip(events).take_while(|(position, _)| *position <= target).collect();
                }
                Ok(Piece::End) => return self.finish_mending(number),
                Ok(Piece::Failed(fault)) => self.break_partition(number, &fault),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => {
                    self.break_partition(number, &Fault::defect("a rebuild's thread ended"));
                }
            }
        }
    }

    fn mending(&mut self, number: u16) -> Option<&mut Mending> {
        Some(&mut self.held.get_mut(&number)?.mending)
    }

    /// Applies what was read, for one slice.
    fn apply_read(&mut self, number: u16, began: Stopwatch) -> Result<(), Fault> {
        let mut pace = Pace::new(began);
        let mut applied = 0;
        while let Some((position, event)) = self.mending(number).and_then(|mending| mending.read.pop_front()) {
            applied += usize::from(self.apply_again(number, position, &event)?);
            if pace.is_over() {
                break;
            }
        }
        self.applied_some(applied);
        Ok(())
    }

    /// Applies an event of the log, and notes its outcome where its sender still waits. `false`: the state reflects it already.
    fn apply_again(&mut self, number: u16, position: Position, event: &Event) -> Result<bool, Fault> {
        let Some(partition) = self.partitions.get_mut(&number).filter(|partition| position > partition.applied()) else {
            return Ok(false);
        };
        let outcome = if self.dead.contains(position) {
            partition.skip(position);
            Outcome { position, first: position }
        } else {
            let probe = &self.probe;
            let run = catch_unwind(AssertUnwindSafe(|| {
                if let Some(probe) = probe {
                    probe(event);
                }
                partition.apply(event, position)
            }));
            match run {
                Ok(outcome) => outcome?,
                Err(_) => {
                    self.strike(position, event)?;
                    return Err(Fault::defect(format!("the event at position {position} panicked at its replay")));
                }
            }
        };
        let held = self.held.get_mut(&number).and_then(|held| held.works.range_mut(..=position).next_back());
        if let Some((_, queued)) = held
            && queued.next() == position
            && !queued.is_done()
        {
            queued.outcomes.push(outcome);
        }
        Ok(true)
    }

    /// Everything that the log has was applied.
    fn finish_mending(&mut self, number: u16) -> bool {
        let Some(target) = self.mending(number).map(|mending| mending.target) else { return false };
        let applied = self.partitions.get(&number).map_or(0, Partition::applied);
        if applied < target {
            let fault = Fault::damaged_log(format!("the log has events up to position {applied}, not {target}"));
            self.break_partition(number, &fault);
            return false;
        }
        tracing::info!(partition = number, position = applied, "the partition is rebuilt");
        self.release(number);
        self.shared.health.set(number, Condition::Well, "");
        true
    }
}

impl Mending {
    /// Decides what is to be done after a fault.
    fn after(mut self, fault: &Fault, old: Option<Partition>, is_first: bool) -> Self {
        if let Some(old) = old {
            self.stored_as = old.stored_as().number();
            if is_first {
                self.target = self.target.max(old.applied());
            }
            self.old = Some(old);
        }
        match fault.kind {
            FaultKind::Io | FaultKind::Defect => {}
            FaultKind::DamagedStore => self.is_afresh = true,
            // What the index held of the checkpoint is not in the log behind it.
            FaultKind::DamagedIndex => (self.is_afresh, self.resets_index) = (true, true),
            FaultKind::DamagedLog => self.stage = Stage::Stuck,
        }
        self
    }
}

fn pause(attempts: u32) -> Duration {
    match attempts {
        0 => Duration::ZERO,
        attempts => (FIRST_PAUSE * 2u32.saturating_pow(attempts.min(16))).min(LONGEST_PAUSE),
    }
}

/// What the reading thread does.
struct Order {
    number: u16,
    stored_as: u16,
    is_afresh: bool,
    resets_index: bool,
    target: Position,
    shared: Shared,
    history: Arc<dyn History>,
    old: Option<Partition>,
    taken_back: TakenBack,
    pieces: SyncSender<Piece>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Order {
    fn run(mut self) {
        drop(self.old.take());
        // A checkpoint that was being written counts or doesn't, before it is opened.
        self.taken_back.wait(&*self.shared.store);
        let end = match self.read() {
            Ok(()) => Piece::End,
            Err(fault) => Piece::Failed(fault),
        };
        self.send(end);
    }

    fn read(&self) -> Result<(), Fault> {
        let partition = self.open()?;
        let after = partition.applied();
        if !self.send(Piece::Opened(Box::new(partition))) {
            return Ok(());
        }
        let mut result = Ok(());
        let mut visit = |record: Record<'_>| {
            if record.first > self.target {
                return ControlFlow::Break(());
            }
            let is_wanted = match event_codec::decode(record.payload) {
                Ok(events) => self.send(Piece::Read(record.first, events)),
                Err(error) => {
                    result = Err(fault::of_logged(error));
                    false
                }
            };
            if is_wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        self.history.read(&|number| (number == self.number).then_some(after), &mut visit).map_err(fault::of_log)?;
        result
    }

    fn open(&self) -> Result<Partition, Fault> {
        if self.resets_index {
            Partition::reset_index(self.number, &self.shared)?;
        }
        if self.is_afresh {
            Partition::open_empty(self.number, self.shared.clone())
        } else {
            Partition::open_in(self.stored_as, self.number, self.shared.clone())
        }
    }

    /// `false`: the shard doesn't want it any more.
    fn send(&self, piece: Piece) -> bool {
        let sent = self.pieces.send(piece).is_ok();
        (self.wake)();
        sent
    }
}
