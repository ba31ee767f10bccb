//! Events on their way into the partitions of a shard: queued, applied in turns, or held while a
//! partition is rebuilt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use headcount_common::partition_of;
use headcount_domain::{Fault, FaultKind, Position, ProjectId, SentKeys};
use headcount_storage::log::LogMark;

use super::applier::Applier;
use super::fair_queue::{FairQueue, Pace, SLICE};
use super::partition::{Partition, PartitionMap};
use super::partition_context::PartitionContext;
use super::rebuild::{Rebuild, Received, Released, Wake};
use super::refold::{self, Refold};
use super::work::{QueuedWork, Work};
use crate::checkpoint_writer::CancelledJobs;
use crate::event_codec::LogRecord;
use crate::history::History;
use crate::saved_state::CopiedState;

/// The number of events whose records are read ahead together. Of 8, 16 and 32, the last two took
/// the least processor time.
const LOOK_AHEAD_EVENTS: usize = 16;

/// A partition whose state is lost, and the fault.
pub(super) type Broken = (u16, Fault);

/// A project's turn.
pub(super) struct Turn {
    /// The number of applied events.
    pub(super) applied: usize,
    pub(super) ended: Stopwatch,
    pub(super) broken: Option<Broken>,
}

/// The result of a step of a rebuild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RebuildStep {
    /// Another step may follow at once.
    Again,
    /// There is more to apply, after the shard's other work.
    More,
    /// Nothing is left to apply now.
    Done,
}

/// The events of a shard's partitions.
pub(super) struct EventPipeline {
    pub(super) context: PartitionContext,
    pub(super) partitions: PartitionMap,
    pub(super) history: Arc<dyn History>,
    pub(super) applier: Applier,
    queue: FairQueue<ProjectId, QueuedWork>,
    /// The projects whose next work is to continue raising a floor.
    rising: BTreeSet<ProjectId>,
    rebuilds: BTreeMap<u16, Rebuild>,
    /// The rests of partitions that another machine took over.
    released: BTreeMap<u16, Released>,
    /// The work of projects whose state is being replaced, in order.
    held: BTreeMap<ProjectId, Vec<QueuedWork>>,
    /// The positions up to which all events were applied when the queues were dropped.
    dropped: BTreeMap<u16, Position>,
    /// The projects that the start folds again, by partition.
    pub(super) refolds: BTreeMap<u16, Refold>,
    wake: Wake,
}

impl EventPipeline {
    /// Opens the partitions from their last checkpoints.
    pub(super) fn open(
        numbers: &[u16],
        context: PartitionContext,
        history: Arc<dyn History>,
        applier: Applier,
    ) -> Result<Self, Fault> {
        let mut refolds = BTreeMap::new();
        let mut open = |number: &u16| {
            let refold = refold::take_away(&context, *number, *number)?;
            if !refold.projects.is_empty() {
                refolds.insert(*number, refold);
            }
            Ok((*number, Partition::open(*number, context.clone())?))
        };
        let partitions = numbers.iter().map(&mut open).collect::<Result<_, Fault>>()?;
        Ok(Self {
            context,
            partitions,
            history,
            applier,
            queue: FairQueue::default(),
            rising: BTreeSet::new(),
            rebuilds: BTreeMap::new(),
            released: BTreeMap::new(),
            held: BTreeMap::new(),
            dropped: BTreeMap::new(),
            refolds,
            wake: Arc::new(|| ()),
        })
    }

    /// Calls `wake` when a rebuild has events to apply.
    pub(super) fn set_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.wake = Arc::new(wake);
    }

    /// Queues work, behind other work of its project.
    pub(super) fn enqueue(&mut self, work: Work) {
        let queued = QueuedWork::new(work);
        match self.rebuilds.get_mut(&queued.work.partition) {
            Some(rebuild) => rebuild.hold(queued),
            None => match self.held.get_mut(&queued.work.project) {
                Some(held) => held.push(queued),
                None => self.queue.push(queued.work.project, queued),
            },
        }
    }

    /// Applies no work to a project until [`EventPipeline::let_go`]. Returns `false` while its
    /// floor is being raised.
    pub(super) fn hold(&mut self, project: ProjectId) -> bool {
        if self.rising.contains(&project) {
            return false;
        }
        let queue = &mut self.queue;
        self.held.entry(project).or_insert_with(|| queue.extract(|queued| queued == project));
        true
    }

    /// Lets the work of a project continue.
    pub(super) fn let_go(&mut self, project: ProjectId) {
        for queued in self.held.remove(&project).into_iter().flatten() {
            self.queue.push(project, queued);
        }
    }

    /// Whether work waits for the state of its project.
    pub(super) fn has_held(&self) -> bool {
        self.held.values().any(|works| !works.is_empty())
    }

    /// The first unapplied work of each project, whatever it waits for.
    fn fronts(&self) -> impl Iterator<Item = (ProjectId, &QueuedWork)> {
        let held = self.held.iter().filter_map(|(project, works)| Some((*project, works.first()?)));
        self.queue.fronts().chain(held)
    }

    /// Whether there is work that can be applied now.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether work waits for a rebuild.
    pub(super) fn is_rebuilding(&self) -> bool {
        !self.rebuilds.is_empty()
    }

    /// The position up to which all events of a partition are applied.
    pub(super) fn all_up_to(&self, number: u16) -> Position {
        let applied = self.partitions.get(&number).map_or(0, |partition| partition.applied);
        if let Some(dropped) = self.dropped.get(&number) {
            return applied.min(*dropped);
        }
        if self.rebuilds.contains_key(&number) {
            // A replay follows the order of the log, and counts sealed events only after it has
            // read all of them.
            return applied;
        }
        let of_partition = self.fronts().filter(|(project, _)| partition_of(*project) == number);
        of_partition.map(|(_, front)| front.next() - 1).min().map_or(applied, |before| before.min(applied))
    }

    /// Returns the mark of the log at the last position that a partition's state reflects in part,
    /// if known. For some projects, that may be beyond [`all_up_to`](Self::all_up_to).
    pub(super) fn mark_of_reflected(&self, number: u16) -> Option<LogMark> {
        let reflected = self.partitions.get(&number).map_or(0, Partition::reflected);
        self.history.mark(number, reflected.max(self.all_up_to(number)))
    }

    /// Whether all events of a project up to a position are applied.
    pub(super) fn has_applied(&self, project: ProjectId, position: Position) -> bool {
        let number = partition_of(project);
        let Some(partition) = self.partitions.get(&number) else { return position == 0 };
        if self.dropped.contains_key(&number) || self.rebuilds.contains_key(&number) {
            return self.all_up_to(number) >= position;
        }
        // Work of other projects may wait at lower positions.
        partition.reflected() >= position && self.fronts().all(|(of, front)| of != project || front.next() > position)
    }

    /// The position up to which all delivered events are in durable checkpoints, if all events up
    /// to `delivered` were delivered. `None` if it is unknown, because a partition is being
    /// rebuilt, or queues were dropped.
    pub(super) fn durable_until(&self, delivered: Position) -> Option<Position> {
        if self.is_rebuilding() || !self.dropped.is_empty() {
            return None;
        }
        let unsaved = self.partitions.values().filter_map(Partition::first_not_durable);
        let queued = self.fronts().map(|(_, front)| front.next());
        Some(unsaved.chain(queued).min().map_or(delivered, |first| delivered.min(first - 1)))
    }

    /// Drops the queues. Senders get the answer that the outcome is unknown, and the next start
    /// replays the events from the log.
    pub(super) fn drop_queues(&mut self) {
        // Checkpoints continue, so they must know the dropped events.
        for number in self.partitions.keys().copied().collect::<Vec<_>>() {
            let all_up_to = self.all_up_to(number);
            self.dropped.entry(number).and_modify(|known| *known = all_up_to.min(*known)).or_insert(all_up_to);
        }
        if self.has_queued() || self.has_held() || self.is_rebuilding() {
            tracing::warn!("some events that are in the log are not counted yet; the next start counts them");
        }
        self.queue = FairQueue::default();
        self.rising.clear();
        self.rebuilds.clear();
        self.held.clear();
    }

    /// Applies work of the project whose turn it is, for a slice of time from `began`. Returns
    /// `None` if the queues are empty.
    pub(super) fn apply_next(&mut self, began: Stopwatch) -> Option<Turn> {
        let (project, queued) = self.queue.next()?;
        Some(self.take_turn(project, queued, began))
    }

    /// Whether a floor is being raised.
    pub(super) fn is_raising(&self) -> bool {
        !self.rising.is_empty()
    }

    /// Continues to raise a floor, for a slice of time from `began`. Returns `None` if none is
    /// being raised.
    pub(super) fn raise_next(&mut self, began: Stopwatch) -> Option<Turn> {
        let project = *self.rising.first()?;
        let queued = self.queue.take(project)?;
        Some(self.take_turn(project, queued, began))
    }

    fn take_turn(&mut self, project: ProjectId, mut queued: QueuedWork, began: Stopwatch) -> Turn {
        let before = queued.outcomes.len();
        let result = self.apply(&mut queued, began);
        let ended = Stopwatch::now();
        self.queue.charge(project, ended - began);
        let applied = queued.outcomes.len() - before;
        let number = queued.work.partition;
        if result.is_ok() && queued.is_done() {
            queued.finish();
        } else {
            self.queue.put_back(project, queued);
        }
        Turn { applied, ended, broken: result.err().map(|fault| (number, fault)) }
    }

    fn apply(&mut self, queued: &mut QueuedWork, began: Stopwatch) -> Result<(), Fault> {
        let QueuedWork { work, outcomes } = queued;
        let Some(partition) = self.partitions.get_mut(&work.partition) else {
            return Err(Fault::defect("not a partition of this shard"));
        };
        let events = match &work.record {
            LogRecord::Events(events) => events,
            LogRecord::Floor(floor) => {
                let mut pace = Pace::new(began);
                loop {
                    outcomes.extend(Applier::step_floor(partition, *floor, work.first)?);
                    match outcomes.is_empty() {
                        false => drop(self.rising.remove(&work.project)),
                        true if !pace.is_over() => continue,
                        true => drop(self.rising.insert(work.project)),
                    }
                    return Ok(());
                }
            }
        };
        let from = outcomes.len();
        let mut pace = Pace::new(began);
        let mut positions = work.first + from as u64..;
        for next in events[from..].chunks(LOOK_AHEAD_EVENTS) {
            let mut keys = [SentKeys::default(); LOOK_AHEAD_EVENTS];
            partition.look_ahead(next, &mut keys);
            for ((event, keys), position) in next.iter().zip(keys).zip(&mut positions) {
                match self.applier.apply(partition, (event, keys), position)? {
                    Some(outcome) => outcomes.push(outcome),
                    None => return Err(Fault::defect(format!("the event at position {position} panicked"))),
                }
                if outcomes.len() < events.len() && pace.is_over() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Gives a partition's state up, and begins to rebuild it.
    pub(super) fn begin_rebuild(&mut self, (number, fault): Broken, cancelled: CancelledJobs) {
        // The next start opens the damaged part of the store again, and must not trust it.
        self.context.damage.noted(fault.clone());
        let old = self.partitions.remove(&number);
        let mut rebuild = Rebuild::after(&fault, number, old, self.rebuilds.remove(&number), cancelled);
        self.rising.retain(|project| partition_of(*project) != number);
        self.queue.extract(|project| partition_of(project) == number).into_iter().for_each(|queued| rebuild.hold(queued));
        // A thread that replaces a state finds that it is given up.
        let given_up: Vec<ProjectId> = self.held.keys().copied().filter(|project| partition_of(*project) == number).collect();
        for project in given_up {
            self.held.remove(&project).into_iter().flatten().for_each(|queued| rebuild.hold(queued));
            self.context.health.let_go(project);
        }
        self.context.health.set_condition(number, rebuild.condition(), &fault);
        if rebuild.is_failed() {
            tracing::error!(partition = number, %fault, "a partition can't be rebuilt before the next start");
        } else {
            let attempts = rebuild.attempts;
            tracing::error!(partition = number, %fault, attempts, "a partition's state is given up, and rebuilt from the log");
        }
        self.rebuilds.insert(number, rebuild);
    }

    /// Begins to open a partition that this machine takes over, and to replay it up to `until`.
    pub(super) fn adopt(&mut self, number: u16, until: Position, copied: Option<CopiedState>) {
        let left = self.released.remove(&number);
        let left = left.unwrap_or_else(|| Released::new(number));
        let rebuild = Rebuild::adopting(until, left, copied);
        self.context.health.set_condition(number, rebuild.condition(), &rebuild.fault);
        self.rebuilds.insert(number, rebuild);
    }

    /// Whether work of a partition waits for any reason, or its state is being replaced.
    pub(super) fn has_work_of(&self, number: u16) -> bool {
        let is_held = self.held.keys().any(|project| partition_of(*project) == number);
        is_held || self.fronts().any(|(project, _)| partition_of(project) == number)
    }

    /// Gives up a partition that another machine takes over. Waiting work is dropped, and its
    /// senders get the answer that the outcome is unknown.
    pub(super) fn give_up(&mut self, number: u16, cancelled: CancelledJobs) {
        let is_of = |project: ProjectId| partition_of(project) == number;
        self.rising.retain(|project| !is_of(*project));
        drop(self.queue.extract(is_of));
        for project in self.held.keys().copied().filter(|project| is_of(*project)).collect::<Vec<_>>() {
            self.held.remove(&project);
            self.context.health.let_go(project);
        }
        let rebuild = self.rebuilds.remove(&number);
        let mut left = match (rebuild, &self.partitions.get(&number)) {
            (Some(rebuild), _) => rebuild.into_released(),
            (None, Some(partition)) => Released::new(partition.stored_as().0),
            (None, None) => return,
        };
        left.cancelled.extend(cancelled);
        if let Some(old) = self.partitions.remove(&number) {
            // Dropping the state takes time. If no thread can be started, this thread drops it.
            left.closing.extend(std::thread::Builder::new().name("give-up".into()).spawn(move || drop(old)).ok());
        }
        self.released.insert(number, left);
        self.context.give_up(number);
    }

    /// Takes the rest of a partition that this machine gave up, if there is any. Returns `None` if
    /// the partition is here.
    pub(super) fn take_released(&mut self, number: u16) -> Option<Option<Released>> {
        let is_here = self.partitions.contains_key(&number) || self.rebuilds.contains_key(&number);
        (!is_here).then(|| self.released.remove(&number))
    }

    /// Puts the rest of a partition back.
    pub(super) fn put_released(&mut self, number: u16, left: Released) {
        self.released.insert(number, left);
    }

    /// The first fault that is not repaired by a rebuild yet. Leaves out damage of the archive,
    /// which waits for an intact file.
    pub(super) fn first_fault(&self) -> Option<Fault> {
        let mut faults = self.rebuilds.values().map(|rebuild| &rebuild.fault);
        faults.find(|fault| fault.kind != FaultKind::DamagedArchive).cloned()
    }

    /// The fault of a partition that is not repaired by a rebuild yet.
    pub(super) fn fault_of(&self, number: u16) -> Option<Fault> {
        self.rebuilds.get(&number).map(|rebuild| rebuild.fault.clone())
    }

    /// Makes the rebuild of a partition read all of its events.
    pub(super) fn rebuild_to_the_end(&mut self, number: u16) {
        let last = self.history.last_position(number);
        if let Some(rebuild) = self.rebuilds.get_mut(&number) {
            rebuild.read_until(last);
        }
    }

    /// The partition whose rebuild is running.
    pub(super) fn running_rebuild(&self) -> Option<u16> {
        self.rebuilds.iter().find(|(_, rebuild)| rebuild.is_running()).map(|(number, _)| *number)
    }

    /// Starts the next rebuild that is due.
    pub(super) fn start_rebuild(&mut self) -> Result<(), Broken> {
        let now = Stopwatch::now();
        let Some((number, rebuild)) = self.rebuilds.iter_mut().find(|(_, rebuild)| rebuild.is_due(now)) else { return Ok(()) };
        rebuild.start(*number, &self.context, &self.history, &self.wake).map_err(|fault| (*number, fault))
    }

    /// Applies events of a rebuild, and receives pieces from its thread, for a slice of time from
    /// `began`. Adds the number of applied events to `applied`.
    pub(super) fn step_rebuild(&mut self, number: u16, began: Stopwatch, applied: &mut usize) -> Result<RebuildStep, Fault> {
        let Some(rebuild) = self.rebuilds.get_mut(&number) else { return Ok(RebuildStep::Done) };
        let mut pace = Pace::new(began);
        while let Some((position, event)) = rebuild.next_event() {
            let is_wanted = |partition: &&mut Partition| rebuild.is_wanted(position, partition.applied);
            if let Some(partition) = self.partitions.get_mut(&number).filter(is_wanted) {
                let keys = SentKeys::of(&event.who, &self.context.hasher);
                match self.applier.apply(partition, (&event, keys), position)? {
                    Some(outcome) => rebuild.applied(outcome),
                    None => return Err(Fault::defect(format!("the event at position {position} panicked at its replay"))),
                }
                *applied += 1;
            }
            if pace.is_over() {
                break;
            }
        }
        if rebuild.has_events() || began.elapsed() >= SLICE {
            return Ok(RebuildStep::More);
        }
        if let Some((position, floor)) = rebuild.next_floor()
            && let Some(partition) = self.partitions.get_mut(&number)
            && rebuild.is_wanted(position, partition.applied)
        {
            let outcome = Applier::raise_floor(partition, floor, position)?;
            rebuild.applied(outcome);
        }
        match rebuild.receive()? {
            Received::Opened(partition) => drop(self.partitions.insert(number, *partition)),
            Received::Events(origin) => {
                if let Some(partition) = self.partitions.get_mut(&number) {
                    partition.replay_from(origin);
                }
            }
            Received::Nothing => return Ok(RebuildStep::Done),
            Received::End => {
                let applied = self.partitions.get(&number).map_or(0, |partition| partition.applied);
                rebuild.check_complete(applied)?;
                self.context.erasures.reflects(&rebuild.refolded);
                tracing::info!(partition = number, position = applied, "the partition is rebuilt");
                self.release(number);
                return Ok(RebuildStep::More);
            }
        }
        Ok(RebuildStep::Again)
    }

    /// Lets the work of a rebuilt partition continue.
    fn release(&mut self, number: u16) {
        for queued in self.rebuilds.remove(&number).into_iter().flat_map(Rebuild::into_works) {
            if queued.is_done() {
                queued.finish();
            } else {
                self.queue.push(queued.work.project, queued);
            }
        }
        self.context.health.set_working(number);
    }
}
