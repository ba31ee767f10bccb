//! A shard: some partitions, the events on their way into them, and their checkpoints. A plain struct; `actor.rs` is its shell.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_domain::answers::Question;
use headcount_domain::event::Event;
use headcount_domain::fold::{Fault, Position, Project};
use headcount_domain::ids::ProjectId;
use headcount_storage::log::{LogReader, Record};

use super::checkpoint::Checkpoints;
use super::fault;
use super::memory::Memory;
use super::partition::{Outcome, Partition, Shared, partition_of};
use crate::dead_letters::DeadLetters;
use crate::logged;

/// How long a slice of applying may take before queries get their turn.
const SLICE: Duration = Duration::from_micros(500);
/// How many panics at one position set its event aside.
const STRIKES: u8 = 2;

/// Events on their way: boxed, since an event is some hundred bytes and is handed on five times.
pub(crate) type Events = Vec<Box<Event>>;

/// A partition's share of a commit, on its way into the state.
pub(crate) struct Work {
    pub(crate) partition: u16,
    pub(crate) first: Position,
    pub(crate) events: Events,
    /// Called when all of it is in the state.
    pub(crate) reply: Box<dyn FnOnce(Vec<Outcome>) + Send>,
}

struct Queued {
    work: Work,
    outcomes: Vec<Outcome>,
}

/// See the module.
pub(crate) struct Shard {
    pub(super) shared: Shared,
    pub(super) partitions: BTreeMap<u16, Partition>,
    log: LogReader,
    dead: Arc<DeadLetters>,
    queue: VecDeque<Queued>,
    strikes: HashMap<Position, u8>,
    /// Why the state can't be trusted any more. The log has everything; a start rebuilds it.
    failed: Option<Fault>,
    probe: Probe,
    replayed: u64,
    pub(super) checkpoints: Checkpoints,
    pub(super) memory: Memory,
}

/// What a test plants before each event is folded.
pub(crate) type Probe = Option<Arc<dyn Fn(&Event) + Send + Sync>>;

impl Shard {
    /// Opens the partitions as their last checkpoints left them, and brings them up to the end of the log.
    pub(crate) fn open(
        numbers: &[u16],
        shared: Shared,
        log: LogReader,
        dead: Arc<DeadLetters>,
        probe: Probe,
        checkpoints: Checkpoints,
        memory: Memory,
    ) -> Result<Self, Fault> {
        let mut partitions = BTreeMap::new();
        for number in numbers {
            partitions.insert(*number, Partition::open(*number, shared.clone())?);
        }
        let mut shard = Self {
            shared,
            partitions,
            log,
            dead,
            queue: VecDeque::new(),
            strikes: HashMap::new(),
            failed: None,
            probe,
            replayed: 0,
            checkpoints,
            memory,
        };
        let mut replayed = 0;
        shard.catch_up(None, Position::MAX, &mut |_| replayed += 1)?;
        shard.replayed = replayed;
        Ok(shard)
    }

    /// The last position that any of its partitions reflects.
    pub(crate) fn reflected(&self) -> Position {
        self.partitions.values().map(Partition::applied).max().unwrap_or(0)
    }

    /// How many events were replayed from the log.
    pub(crate) fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Takes work in; [`Shard::advance`] does it.
    pub(crate) fn enqueue(&mut self, work: Work) {
        let outcomes = Vec::with_capacity(work.events.len());
        self.queue.push_back(Queued { work, outcomes });
    }

    /// Applies what is queued, for one slice of time. `true`: there is more.
    pub(crate) fn advance(&mut self) -> bool {
        let began = Stopwatch::now();
        while !self.is_stopped()
            && let Some(mut next) = self.queue.pop_front()
        {
            if self.failed.is_some() {
                // The reply is dropped: who waits hears that the outcome is unknown.
                continue;
            }
            let before = next.outcomes.len();
            let finished = self.apply(&mut next, began);
            self.applied_some(next.outcomes.len() - before);
            if self.failed.is_some() {
                continue;
            }
            if !finished {
                self.queue.push_front(next);
                return true;
            }
            (next.work.reply)(next.outcomes);
            if began.elapsed() >= SLICE {
                return !self.queue.is_empty();
            }
        }
        false
    }

    /// Reads one project's rollups.
    pub(crate) fn read<R>(&mut self, project: ProjectId, question: impl FnOnce(&Project) -> R) -> Result<R, Fault> {
        self.partition_for(project)?.read(project, question)
    }

    /// Answers a question about a project. A record that can't be read back loses the state: the next start rebuilds it.
    pub(crate) fn answer<Q: Question>(&mut self, project: ProjectId, question: &Q) -> Result<Q::Part, Fault> {
        let answer = self.partition_for(project)?.answer(project, question);
        if let Err(fault) = &answer {
            self.fail(fault.clone());
        }
        answer
    }

    fn partition_for(&mut self, project: ProjectId) -> Result<&mut Partition, Fault> {
        if let Some(fault) = &self.failed {
            return Err(fault.clone());
        }
        self.partitions.get_mut(&partition_of(project)).ok_or_else(|| Fault::defect("not a partition of this shard"))
    }

    /// The position that a partition's state reflects.
    pub(crate) fn applied(&self, partition: u16) -> Position {
        self.partitions.get(&partition).map_or(0, Partition::applied)
    }

    /// Why the state can't be trusted any more.
    pub(crate) fn failed(&self) -> Option<&Fault> {
        self.failed.as_ref()
    }

    pub(super) fn fail(&mut self, fault: Fault) {
        tracing::error!(%fault, "shard state lost; restart to rebuild it from the log");
        self.failed = Some(fault);
    }

    /// Applies a share from where it stopped. `false`: the slice is over before the share is.
    fn apply(&mut self, queued: &mut Queued, began: Stopwatch) -> bool {
        let Queued { work, outcomes } = queued;
        while outcomes.len() < work.events.len() {
            let from = outcomes.len();
            let Some(partition) = self.partitions.get_mut(&work.partition) else {
                self.fail(Fault::defect("not a partition of this shard"));
                return false;
            };
            let probe = &self.probe;
            let run = catch_unwind(AssertUnwindSafe(|| {
                for (event, position) in work.events[from..].iter().zip(work.first + from as u64..) {
                    if let Some(probe) = probe {
                        probe(event);
                    }
                    outcomes.push(partition.apply(event, position)?);
                    if outcomes.len() % 64 == 0 && began.elapsed() >= SLICE {
                        break;
                    }
                }
                Ok(())
            }));
            match run {
                Ok(Ok(())) if outcomes.len() < work.events.len() => return false,
                Ok(Ok(())) => {}
                Ok(Err(fault)) => {
                    self.fail(fault);
                    return false;
                }
                Err(_) => {
                    let position = work.first + outcomes.len() as u64;
                    let event = &work.events[outcomes.len()];
                    match self.recover(work.partition, position, event) {
                        Ok(outcome) => outcomes.push(outcome),
                        Err(fault) => {
                            self.fail(fault);
                            return false;
                        }
                    }
                }
            }
        }
        true
    }

    /// A panic at `position`: drops the partition's state, and rebuilds it from its checkpoint and the log, up to and with
    /// that event, which is set aside if it panics again.
    fn recover(&mut self, partition: u16, position: Position, event: &Event) -> Result<Outcome, Fault> {
        tracing::error!(partition, position, "an event made its shard panic; rebuilding");
        self.strike(position, event)?;
        let mut outcome = Outcome { position, first: position };
        self.reopen(partition)?;
        self.catch_up(Some(partition), position, &mut |applied| {
            if applied.position == position {
                outcome = applied;
            }
        })?;
        Ok(outcome)
    }

    fn reopen(&mut self, number: u16) -> Result<(), Fault> {
        self.abandon_checkpoint(number);
        self.partitions.insert(number, Partition::open(number, self.shared.clone())?);
        Ok(())
    }

    fn strike(&mut self, position: Position, event: &Event) -> Result<(), Fault> {
        let strikes = self.strikes.entry(position).or_insert(0);
        *strikes += 1;
        if *strikes >= STRIKES {
            tracing::error!(position, "the event panicked twice and is set aside");
            self.dead
                .add(position, "panicked twice", event)
                .map_err(|error| Fault::io(format!("could not set an event aside: {error}")))?;
        }
        Ok(())
    }

    /// Replays the log into one partition (or all of this shard) up to `last`, setting aside what panics twice.
    fn catch_up(&mut self, only: Option<u16>, last: Position, seen: &mut dyn FnMut(Outcome)) -> Result<(), Fault> {
        loop {
            match self.replay(only, last, seen)? {
                Replayed::All => return Ok(()),
                Replayed::Enough => self.make_room()?,
                Replayed::Panicked(partition, position, event) => {
                    tracing::error!(partition, position, "an event made its shard panic at replay; starting over");
                    self.strike(position, &event)?;
                    self.reopen(partition)?;
                }
            }
        }
    }

    /// One pass over the log, from where each partition stands.
    fn replay(&mut self, only: Option<u16>, last: Position, seen: &mut dyn FnMut(Outcome)) -> Result<Replayed, Fault> {
        let limit = self.memory.replay_bytes();
        let (partitions, dead, probe) = (&mut self.partitions, &self.dead, &self.probe);
        let after: BTreeMap<u16, Position> = partitions
            .values()
            .filter(|partition| only.is_none_or(|number| number == partition.number()))
            .map(|partition| (partition.number(), partition.applied()))
            .collect();
        // Of a shard that hosts partition n and others above, n is the number.
        let (progress, number) = (&self.shared.progress, partitions.keys().next().map_or(0, |number| usize::from(*number)));
        let mut end: Result<Replayed, Fault> = Ok(Replayed::All);
        let mut read = 0;
        let mut visit = |record: Record<'_>| -> ControlFlow<()> {
            let Some(partition) = partitions.get_mut(&record.partition) else { return ControlFlow::Continue(()) };
            if record.first > last {
                return ControlFlow::Break(());
            }
            match replay_record(partition, &record, last, dead, probe, seen) {
                Ok(None) => {}
                Ok(Some((partition, position, event))) => {
                    end = Ok(Replayed::Panicked(partition, position, event));
                    return ControlFlow::Break(());
                }
                Err(fault) => {
                    end = Err(fault);
                    return ControlFlow::Break(());
                }
            }
            progress.reached(number, record.first);
            read += record.payload.len();
            if read < limit {
                return ControlFlow::Continue(());
            }
            end = Ok(Replayed::Enough);
            ControlFlow::Break(())
        };
        self.log.read(|number| after.get(&number).copied(), &mut visit).map_err(fault::of_log)?;
        end
    }
}

/// How a pass over the log ended.
enum Replayed {
    /// With all of it.
    All,
    /// With as much as should be read before the memory is looked at.
    Enough,
    /// With an event that panicked, in a partition.
    Panicked(u16, Position, Box<Event>),
}

type Panicked = (u16, Position, Box<Event>);

fn replay_record(
    partition: &mut Partition,
    record: &Record<'_>,
    last: Position,
    dead: &DeadLetters,
    probe: &Probe,
    seen: &mut dyn FnMut(Outcome),
) -> Result<Option<Panicked>, Fault> {
    let events = logged::decode(record.payload).map_err(fault::of_logged)?;
    for (event, position) in events.into_iter().zip(record.first..) {
        if position > last {
            break;
        }
        if position <= partition.applied() {
            continue;
        }
        if dead.contains(position) {
            partition.skip(position);
            continue;
        }
        let run = catch_unwind(AssertUnwindSafe(|| {
            if let Some(probe) = probe {
                probe(&event);
            }
            partition.apply(&event, position)
        }));
        match run {
            Ok(outcome) => seen(outcome?),
            Err(_) => return Ok(Some((record.partition, position, event))),
        }
    }
    Ok(None)
}
