//! A shard: some partitions, the events on their way into them, and their checkpoints. A plain struct; `actor.rs` is its shell.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_domain::intake::event::Event;
use headcount_domain::intake::event::Position;
use headcount_domain::project::Project;
use headcount_domain::queries::Query;
use headcount_domain::quota::Quota;
use headcount_storage::log::{History, Record};

use super::checkpointer::Checkpoints;
use super::evictor::Memory;
use super::fair_queue::{Fair, Pace, SLICE};
use super::health::PartitionHealth;
use super::partition::{Outcome, Partition, Shared, partition_of};
use super::rebuild::Held;
use crate::dead_letters::DeadLetters;
use crate::engine::QuotaAsked;
use crate::event_codec;
use crate::fault;
use crate::ingest::Permit;

/// How many panics at one position set its event aside.
const STRIKES: u8 = 2;

/// Events on their way: boxed, since an event is some hundred bytes and is handed on five times.
pub(crate) type Events = Vec<Box<Event>>;

/// A project's share of a commit, on its way into the state.
pub(crate) struct Work {
    pub(crate) partition: u16,
    pub(crate) project: ProjectId,
    pub(crate) first: Position,
    pub(crate) events: Events,
    /// What the events hold of the gate, until they are in the state.
    pub(crate) permits: Vec<Permit>,
    /// Called when all of it is in the state. Dropped where that can't be known.
    pub(crate) reply: Box<dyn FnOnce(Vec<Outcome>) + Send>,
}

/// Work of which some events are in the state.
pub(super) struct Queued {
    pub(super) work: Work,
    pub(super) outcomes: Vec<Outcome>,
}

impl Queued {
    /// The position of its first event that is not in the state.
    pub(super) fn next(&self) -> Position {
        self.work.first + self.outcomes.len() as u64
    }

    pub(super) fn is_done(&self) -> bool {
        self.outcomes.len() >= self.work.events.len()
    }

    /// Everything is in the state.
    pub(super) fn finish(self) {
        let Self { work, outcomes } = self;
        drop(work.permits);
        (work.reply)(outcomes);
    }
}

/// A question on its way to a shard; it brings its own way to answer.
pub(crate) trait Asking: Send {
    /// Whether anybody still waits for the answer.
    fn is_wanted(&self) -> bool;

    /// Answers it.
    fn answer(self: Box<Self>, shard: &mut Shard);
}

/// Why applying stopped.
enum Stop {
    /// All of it is done.
    Finished,
    /// The slice is over.
    Interrupted,
    /// The state of the partition can't be trusted any more.
    Broken(Fault),
}

/// See the module.
///
/// # Fairness
/// Events wait in a queue per project, questions in one per organization; both are served by turns of measured time
/// ([`Fair`]). An event is applied after at most one [`QUANTUM`](super::fair_queue::QUANTUM) per other project of the shard, one slice of questions
/// and one of a rebuild, plus what single events or questions take beyond that, since those can't be interrupted: however
/// many events another project has queued, and however costly they are. Events of one project are applied in their order.
pub(crate) struct Shard {
    pub(super) shared: Shared,
    pub(super) partitions: BTreeMap<u16, Partition>,
    pub(super) history: Arc<dyn History>,
    pub(super) dead: Arc<DeadLetters>,
    pub(super) works: Fair<ProjectId, Queued>,
    /// The work of partitions that take none now.
    pub(super) held: BTreeMap<u16, Held>,
    questions: Fair<Option<OrganizationId>, Box<dyn Asking>>,
    /// The positions up to which everything was applied when the queues were dropped.
    pub(super) dropped: BTreeMap<u16, Position>,
    strikes: HashMap<Position, u8>,
    pub(super) probe: Probe,
    replayed: u64,
    /// Has the shard's thread call [`Shard::advance`].
    pub(super) wake: Arc<dyn Fn() + Send + Sync>,
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
        history: Arc<dyn History>,
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
            history,
            dead,
            works: Fair::default(),
            held: BTreeMap::new(),
            questions: Fair::default(),
            dropped: BTreeMap::new(),
            strikes: HashMap::new(),
            probe,
            replayed: 0,
            wake: Arc::new(|| ()),
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
        self.partitions.values().map(Partition::reflected).max().unwrap_or(0)
    }

    /// How many events were replayed from the log.
    pub(crate) fn replayed(&self) -> u64 {
        self.replayed
    }

    /// Which partitions take events and questions.
    pub(crate) fn health(&self) -> Arc<PartitionHealth> {
        Arc::clone(&self.shared.health)
    }

    /// Has `wake` called when a rebuild has something to apply. It must have [`Shard::advance`] called.
    pub(crate) fn set_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.wake = Arc::new(wake);
    }

    /// Takes work in; [`Shard::advance`] does it.
    pub(crate) fn enqueue(&mut self, work: Work) {
        let outcomes = Vec::with_capacity(work.events.len());
        let queued = Queued { work, outcomes };
        match self.held.get_mut(&queued.work.partition) {
            Some(held) => held.hold(queued),
            None => self.works.push(queued.work.project, queued),
        }
    }

    /// Takes a question in; [`Shard::advance`] answers it, unless nobody waits for it any more.
    pub(crate) fn enqueue_question(&mut self, organization: Option<OrganizationId>, question: Box<dyn Asking>) {
        self.questions.push(organization, question);
    }

    /// Does a slice of what there is to do: events, questions, a rebuild. `true`: there is more.
    pub(crate) fn advance(&mut self) -> bool {
        if self.shared.health.is_stopping() {
            self.drop_queues();
            return false;
        }
        self.advance_events();
        self.advance_questions();
        let mending = self.mend();
        mending || !self.is_folded() || !self.questions.is_empty()
    }

    /// Whether no event waits to be applied that can be applied now.
    pub(crate) fn is_folded(&self) -> bool {
        self.works.is_empty() || self.is_stopped()
    }

    /// Whether events or questions wait, for whatever reason.
    pub(crate) fn has_queued(&self) -> bool {
        !self.works.is_empty() || !self.questions.is_empty() || !self.held.is_empty()
    }

    /// Drops what is queued: senders hear that the outcome is unknown, and the next start replays it from the log.
    pub(crate) fn drop_queues(&mut self) {
        // Checkpoints go on, so that they must know what waited.
        for number in self.partitions.keys().copied().collect::<Vec<_>>() {
            let all_up_to = self.all_up_to(number);
            self.dropped.entry(number).and_modify(|known| *known = all_up_to.min(*known)).or_insert(all_up_to);
        }
        let waited = !self.works.is_empty() || !self.held.is_empty();
        if waited {
            tracing::warn!("some events that are in the log are not counted yet; the next start counts them");
        }
        self.works = Fair::default();
        self.held.clear();
        self.questions = Fair::default();
    }

    fn advance_events(&mut self) {
        let began = Stopwatch::now();
        let mut started = began;
        while !self.is_stopped()
            && let Some((project, mut next)) = self.works.next()
        {
            let before = next.outcomes.len();
            let stop = self.apply(&mut next, started);
            let now = Stopwatch::now();
            let applied = next.outcomes.len() - before;
            self.works.charge(project, now - started);
            match stop {
                Stop::Finished => next.finish(),
                Stop::Interrupted => self.works.put_back(project, next),
                Stop::Broken(fault) => {
                    let partition = next.work.partition;
                    self.works.put_back(project, next);
                    self.break_partition(partition, &fault);
                }
            }
            self.applied_some(applied);
            if now - began >= SLICE {
                break;
            }
            started = now;
        }
    }

    fn advance_questions(&mut self) {
        let began = Stopwatch::now();
        let mut started = began;
        while let Some((organization, question)) = self.questions.next() {
            if !question.is_wanted() {
                continue;
            }
            question.answer(self);
            let now = Stopwatch::now();
            self.questions.charge(organization, now - started);
            self.answered_one(now - started);
            if now - began >= SLICE {
                break;
            }
            started = now;
        }
    }

    /// Reads one project's rollups.
    pub(crate) fn read<R>(&mut self, project: ProjectId, question: impl FnOnce(&Project) -> R) -> Result<R, Fault> {
        let partition = self.partition_for(project)?;
        let answer = catch_unwind(AssertUnwindSafe(|| partition.read(project, question)));
        self.watch(project, answer.unwrap_or_else(|_| Err(Fault::defect("a question panicked"))))
    }

    /// Answers a question about a project. Where the state is found damaged, its partition is rebuilt.
    pub(crate) fn answer<Q: Query>(&mut self, project: ProjectId, question: &Q) -> Result<Q::Partial, Fault> {
        let partition = self.partition_for(project)?;
        let answer = catch_unwind(AssertUnwindSafe(|| partition.answer(project, question)));
        let answer = answer.unwrap_or_else(|_| Err(Fault::defect("a question panicked")));
        self.watch(project, answer)
    }

    /// Which quota of its project each event would exceed, if any.
    pub(crate) fn over_quota(&mut self, project: ProjectId, asked: &[QuotaAsked]) -> Result<Vec<Option<Quota>>, Fault> {
        let partition = self.partition_for(project)?;
        let exceeded = catch_unwind(AssertUnwindSafe(|| partition.over_quota(project, asked)));
        self.watch(project, exceeded.unwrap_or_else(|_| Err(Fault::defect("a question panicked"))))
    }

    /// The position of a project's last event that counted.
    pub(crate) fn last(&mut self, project: ProjectId) -> Result<Position, Fault> {
        let last = self.partition_for(project)?.last(project);
        self.watch(project, last)
    }

    /// Reading changes no state. So after an error of the operating system the next question may succeed; any other fault
    /// says that the state, or what it is read from, is not what it was.
    pub(super) fn watch<R>(&mut self, project: ProjectId, answer: Result<R, Fault>) -> Result<R, Fault> {
        if let Err(fault) = &answer {
            match fault.kind {
                FaultKind::Io => tracing::warn!(partition = partition_of(project), %fault, "a question could not be answered"),
                FaultKind::DamagedStore | FaultKind::DamagedIndex | FaultKind::DamagedLog | FaultKind::Defect => {
                    self.break_partition(partition_of(project), fault);
                }
            }
        }
        answer
    }

    pub(super) fn partition_for(&mut self, project: ProjectId) -> Result<&mut Partition, Fault> {
        let number = partition_of(project);
        self.shared.health.check(number).map_err(Fault::io)?;
        self.partitions.get_mut(&number).ok_or_else(|| Fault::io("the engine is shutting down"))
    }

    /// Applies a share from where it stopped, for a slice of time from `began` on.
    fn apply(&mut self, queued: &mut Queued, began: Stopwatch) -> Stop {
        let Queued { work, outcomes } = queued;
        let Some(partition) = self.partitions.get_mut(&work.partition) else {
            return Stop::Broken(Fault::defect("not a partition of this shard"));
        };
        let (probe, dead, some_are_dead) = (&self.probe, &self.dead, !self.strikes.is_empty());
        let from = outcomes.len();
        let mut pace = Pace::new(began);
        let run = catch_unwind(AssertUnwindSafe(|| -> Result<(), Fault> {
            for (event, position) in work.events[from..].iter().zip(work.first + from as u64..) {
                if some_are_dead && dead.contains(position) {
                    partition.skip(position);
                    outcomes.push(Outcome { position, first: position });
                    continue;
                }
                if let Some(probe) = probe {
                    probe(event);
                }
                outcomes.push(partition.apply(event, position)?);
                if outcomes.len() < work.events.len() && pace.is_over() {
                    break;
                }
            }
            Ok(())
        }));
        match run {
            Ok(Ok(())) if queued.is_done() => Stop::Finished,
            Ok(Ok(())) => Stop::Interrupted,
            Ok(Err(fault)) => Stop::Broken(fault),
            Err(_) => {
                let position = queued.next();
                tracing::error!(partition = queued.work.partition, position, "an event made its shard panic");
                match self.strike(position, &queued.work.events[queued.outcomes.len()]) {
                    Ok(()) => Stop::Broken(Fault::defect(format!("the event at position {position} panicked"))),
                    Err(fault) => Stop::Broken(fault),
                }
            }
        }
    }

    /// Opens a partition again as its last checkpoint left it: at a start, where nobody waits for its neighbours.
    fn reopen(&mut self, number: u16) -> Result<(), Fault> {
        self.abandon_checkpoint(number);
        self.partitions.insert(number, Partition::open(number, self.shared.clone())?);
        Ok(())
    }

    pub(super) fn strike(&mut self, position: Position, event: &Event) -> Result<(), Fault> {
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
        self.history.read(&|number| after.get(&number).copied(), &mut visit).map_err(fault::of_log)?;
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
    let events = event_codec::decode(record.payload).map_err(fault::of_logged)?;
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
