//! A shard: some partitions, their events, queries and checkpoints. `actor.rs` drives it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::partition_of;
use headcount_domain::queries::Query;
use headcount_domain::{Day, Fault, FaultKind, OrganizationId, Position, ProjectId, Quota};
use headcount_storage::external_ids::{ExternalIdsView, Purge, Written};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::Store;

use super::applier::Applier;
use super::checkpointer::Next;
use super::checkpoints::Checkpoints;
use super::evictor::Evictor;
use super::fair_queue::{FairQueue, SLICE};
use super::partition::Partition;
use super::partition_context::PartitionContext;
use super::pipeline::{Broken, EventPipeline, RebuildStep};
use super::quota_table::QuotaCheck;
use super::work::Work;
use crate::checkpoint_writer::Hurry;
use crate::history::History;

/// How long a start waits for checkpoints that can't be written, if memory is short.
const MAX_WAIT_FOR_STUCK: Duration = Duration::from_secs(120);
/// How long an eviction may take while the directory is opened. Only the start waits for it.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// A request that a shard answers on its thread.
pub(crate) trait ShardRequest: Send {
    /// Whether the asker still waits for the answer.
    fn is_wanted(&self) -> bool;

    /// Answers the request.
    fn answer(self: Box<Self>, shard: &mut Shard);
}

/// Some partitions, the events and queries for them, and their checkpoints.
///
/// # Fairness
/// Events wait in a queue per project, requests in one per organization. Both are served in turns
/// of measured time ([`FairQueue`]), and events of one project in order.
///
/// An event waits for at most one [`QUANTUM`](super::fair_queue::QUANTUM) per other project of the
/// shard, one slice of requests and one of a rebuild, and for the overrun of single events or
/// requests, which can't be interrupted. This holds however many events another project has queued,
/// and however costly they are.
pub(crate) struct Shard {
    pub(super) pipeline: EventPipeline,
    pub(super) checkpoints: Checkpoints,
    pub(super) evictor: Evictor,
    /// Whether a job waits for checkpoints of everything.
    wants_checkpoints: bool,
    /// Whether a job waits for the round in progress, or the next one.
    round_is_awaited: bool,
    /// Exists while checkpoints are urgent.
    hurry: Option<Hurry>,
    requests: FairQueue<Option<OrganizationId>, Box<dyn ShardRequest>>,
    /// The number of events replayed from the log.
    pub(crate) replayed: u64,
}

impl Shard {
    /// Opens the partitions from their last checkpoints, and brings them up to the end of the log.
    pub(crate) fn open(
        numbers: &[u16],
        context: PartitionContext,
        history: Arc<dyn History>,
        applier: Applier,
        checkpoints: Checkpoints,
        evictor: Evictor,
    ) -> Result<Self, Fault> {
        let pipeline = EventPipeline::open(numbers, context, history, applier)?;
        let mut shard = Self {
            pipeline,
            checkpoints,
            evictor,
            wants_checkpoints: false,
            round_is_awaited: false,
            hurry: None,
            requests: FairQueue::default(),
            replayed: 0,
        };
        shard.catch_up()?;
        Ok(shard)
    }

    /// The last position that each partition reflects.
    pub(crate) fn reflected(&self) -> impl Iterator<Item = (u16, Position)> {
        self.pipeline.partitions.iter().map(|(number, partition)| (*number, partition.reflected()))
    }

    /// Calls `wake` when a rebuild has events to apply. It must cause a call of [`Shard::advance`].
    pub(crate) fn set_wake(&mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.pipeline.set_wake(wake);
    }

    /// Calls `notify` whenever [`Shard::hear_writer`] has something to do.
    pub(crate) fn notify_with(&self, notify: impl Fn() + Send + Sync + 'static) {
        self.checkpoints.notify_with(notify);
    }

    /// The number of events of a partition folded since it was opened, by project.
    pub(crate) fn folded(&self, number: u16) -> BTreeMap<ProjectId, u64> {
        self.pipeline.partitions.get(&number).map(Partition::folded).unwrap_or_default()
    }

    /// The part of the store that holds a partition; `None` if it is being rebuilt.
    pub(crate) fn stored_as(&self, number: u16) -> Option<u16> {
        let partition = self.pipeline.partitions.get(&number).filter(|_| self.pipeline.fault_of(number).is_none())?;
        Some(partition.stored_as().0)
    }

    /// The store, and the part of it that holds a partition; `None` if it is being rebuilt.
    pub(crate) fn store_of(&self, number: u16) -> Option<(Arc<dyn Store>, PartitionId)> {
        Some((Arc::clone(&self.pipeline.context.store), PartitionId(self.stored_as(number)?)))
    }

    /// The fault of a partition that is being rebuilt, or waits for it.
    pub(crate) fn fault_of(&self, number: u16) -> Option<Fault> {
        self.pipeline.fault_of(number)
    }

    /// Queues work for [`Shard::advance`].
    pub(crate) fn enqueue(&mut self, work: Work) {
        self.pipeline.enqueue(work);
    }

    /// Queues a request for [`Shard::advance`], which answers it unless the asker has left.
    pub(crate) fn enqueue_request(&mut self, organization: Option<OrganizationId>, request: Box<dyn ShardRequest>) {
        self.requests.push(organization, request);
    }

    /// Does a slice of events, of requests and of a rebuild. Returns whether there is more to do.
    pub(crate) fn advance(&mut self) -> bool {
        if self.pipeline.context.health.is_stopping() {
            self.drop_queues();
            return false;
        }
        self.advance_events();
        self.advance_requests();
        let rebuilding = self.advance_rebuild();
        let has_events = self.pipeline.has_queued() && (!self.is_backpressured() || self.pipeline.is_raising());
        rebuilding || has_events || !self.requests.is_empty()
    }

    /// Whether events or requests wait for any reason.
    pub(crate) fn has_queued(&self) -> bool {
        let waits = self.pipeline.has_held() || self.pipeline.is_rebuilding();
        self.pipeline.has_queued() || waits || !self.requests.is_empty()
    }

    /// Drops the queues. The outcomes are unknown, and the next start replays the events.
    pub(crate) fn drop_queues(&mut self) {
        self.pipeline.drop_queues();
        self.requests = FairQueue::default();
    }

    fn advance_events(&mut self) {
        let began = Stopwatch::now();
        let mut started = began;
        while let Some(turn) = match self.is_backpressured() {
            false => self.pipeline.apply_next(started),
            // A checkpoint waits for a floor that is being raised, not the other way round.
            true => self.pipeline.raise_next(started),
        } {
            turn.broken.into_iter().for_each(|broken| self.break_partition(broken));
            self.applied(turn.applied);
            if turn.ended - began >= SLICE {
                break;
            }
            started = turn.ended;
        }
    }

    fn advance_requests(&mut self) {
        let began = Stopwatch::now();
        let mut started = began;
        while let Some((organization, request)) = self.requests.next() {
            if !request.is_wanted() {
                continue;
            }
            request.answer(self);
            let now = Stopwatch::now();
            self.requests.charge(organization, now - started);
            if let Some(patience) = self.evictor.answered(now - started) {
                self.check_memory(Some(patience));
            }
            if now - began >= SLICE {
                break;
            }
            started = now;
        }
    }

    /// Takes a slice of the current or the next rebuild. Returns whether there is more to apply.
    fn advance_rebuild(&mut self) -> bool {
        let Some(number) = self.pipeline.running_rebuild() else {
            if let Err(broken) = self.pipeline.start_rebuild() {
                self.break_partition(broken);
            }
            return false;
        };
        let began = Stopwatch::now();
        while !self.is_backpressured() {
            let mut applied = 0;
            let step = self.pipeline.step_rebuild(number, began, &mut applied);
            self.applied(applied);
            match step {
                Ok(RebuildStep::Again) => {}
                Ok(step) => return step == RebuildStep::More,
                Err(fault) => {
                    self.break_partition((number, fault));
                    return false;
                }
            }
        }
        false
    }

    /// Gives a partition's state up, and begins a rebuild.
    pub(super) fn break_partition(&mut self, broken: Broken) {
        let cancelled = self.checkpoints.cancel(broken.0);
        self.pipeline.begin_rebuild(broken, cancelled);
    }

    /// Answers a query about a project.
    pub(crate) fn answer<Q: Query>(&mut self, project: ProjectId, query: &Q) -> Result<Q::Partial, Fault> {
        self.read(project, |partition| partition.answer(project, query))
    }

    /// Returns the quota of its project that each event would exceed, if any.
    pub(crate) fn over_quota(&mut self, project: ProjectId, checks: &[QuotaCheck]) -> Result<Vec<Option<Quota>>, Fault> {
        self.read(project, |partition| partition.over_quota(project, checks))
    }

    /// Compares a project with its changed quotas. Loads the project.
    pub(crate) fn recount(&mut self, project: ProjectId) -> Result<(), Fault> {
        self.read(project, |partition| {
            partition.last(project)?;
            partition.recount(project);
            Ok(())
        })
    }

    /// The floor of a project, which need not be loaded.
    pub(crate) fn floor(&mut self, project: ProjectId) -> Result<Option<Day>, Fault> {
        self.read(project, |partition| partition.floor(project))
    }

    /// The position of a project's last event that counted. Loads the project.
    pub(crate) fn last(&mut self, project: ProjectId) -> Result<Position, Fault> {
        self.read(project, |partition| partition.last(project))
    }

    /// The external ids of a project's partition that are on disk or on their way there.
    pub(crate) fn known_ids(&mut self, project: ProjectId) -> Result<ExternalIdsView, Fault> {
        self.known_ids_in(partition_of(project))
    }

    /// The external ids of a partition that are on disk or on their way there.
    pub(crate) fn known_ids_in(&mut self, number: u16) -> Result<ExternalIdsView, Fault> {
        self.read_partition(number, Partition::known_ids)
    }

    /// Removes a deleted project from the state. Returns the part of the store with its partition
    /// once a checkpoint without the project is durable.
    pub(crate) fn forget(&mut self, project: ProjectId) -> Result<Option<PartitionId>, Fault> {
        self.read(project, |partition| Ok(partition.forget(project)?.then_some(partition.stored_as())))
    }

    /// Returns the removal of a deleted project's external ids.
    pub(crate) fn purge_ids(&mut self, project: ProjectId) -> Result<Purge, Fault> {
        self.read(project, |partition| partition.purge_ids(project))
    }

    /// Uses the tables of external ids that a removal has written.
    pub(crate) fn adopt_ids(&mut self, project: ProjectId, written: Written) -> Result<(), Fault> {
        self.read(project, |partition| {
            partition.adopt(written);
            Ok(())
        })
    }

    /// The first positions that have these external ids.
    pub(crate) fn first_positions(&mut self, project: ProjectId, ids: &[u128]) -> Result<Vec<Option<Position>>, Fault> {
        self.read(project, |partition| partition.first_positions(ids))
    }

    /// Reads a project's partition. Reading changes no state, so after an error of the operating
    /// system the next request may succeed. After any other fault the partition is rebuilt.
    pub(super) fn read<R>(
        &mut self,
        project: ProjectId,
        read: impl FnOnce(&mut Partition) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.pipeline.context.health.check_project_answers(project)?;
        self.read_partition(partition_of(project), read)
    }

    pub(super) fn read_partition<R>(
        &mut self,
        number: u16,
        read: impl FnOnce(&mut Partition) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        self.pipeline.context.health.check_answers(number)?;
        let partition = self.pipeline.partitions.get_mut(&number).ok_or_else(|| Fault::io("the engine is shutting down"))?;
        let answer = catch_unwind(AssertUnwindSafe(|| read(partition)));
        let answer = answer.unwrap_or_else(|_| Err(Fault::defect("a question panicked")));
        if let Err(fault) = &answer {
            match fault.kind {
                FaultKind::Io => tracing::warn!(partition = number, %fault, "a question could not be answered"),
                FaultKind::DamagedStore
                | FaultKind::DamagedIndex
                | FaultKind::DamagedLog
                | FaultKind::DamagedArchive
                | FaultKind::Defect => {
                    self.break_partition((number, fault.clone()));
                }
            }
        }
        answer
    }

    fn applied(&mut self, events: usize) {
        if self.evictor.applied(events) {
            self.evict_if_needed();
        }
    }

    /// Evicts records if more than the budget is in memory.
    pub(crate) fn evict_if_needed(&mut self) {
        self.check_memory(None);
    }

    fn check_memory(&mut self, patience: Option<Duration>) {
        let EventPipeline { partitions, context, .. } = &mut self.pipeline;
        self.evictor.evict_if_needed(partitions, &context.checkpoints, patience);
        self.note_urgency();
    }

    /// Writes checkpoints at full speed while a job waits for them, a held project waits for its
    /// partition to be saved, or memory runs short.
    fn note_urgency(&mut self) {
        self.round_is_awaited &= self.wants_checkpoints || !self.checkpoints.checkpointer.is_idle();
        let is_held = self.pipeline.partitions.values().any(|partition| partition.replacement.is_some());
        self.hurry = match self.round_is_awaited || is_held || self.evictor.is_pressing {
            true => self.hurry.take().or_else(|| Some(self.checkpoints.writer.hurry())),
            false => None,
        };
    }

    /// Whether checkpoints are to be written at full speed, however busy the processors are.
    pub(crate) fn is_urgent(&self) -> bool {
        self.hurry.is_some()
    }

    /// Whether a checkpoint should begin early, for lack of memory.
    pub(crate) fn checkpoint_due(&self) -> bool {
        self.wants_checkpoints || self.evictor.checkpoint_due
    }

    /// Requests checkpoints of everything soon.
    pub(crate) fn want_checkpoints(&mut self) {
        (self.wants_checkpoints, self.round_is_awaited) = (true, true);
        self.note_urgency();
    }

    /// The position up to which all delivered events are in durable checkpoints. See
    /// [`EventPipeline::durable_until`].
    pub(crate) fn durable_until(&self, delivered: Position) -> Option<Position> {
        self.pipeline.durable_until(delivered)
    }

    /// Whether applying events must wait for a checkpoint.
    pub(crate) fn is_backpressured(&self) -> bool {
        self.evictor.is_backpressured()
    }

    /// Begins a round of checkpoints if one is due, or if `force` is set.
    pub(crate) fn begin_checkpoints(&mut self, force: bool) -> Next {
        if self.checkpoints.checkpointer.is_idle() {
            self.wants_checkpoints &= !force;
            self.save_unmarked();
        }
        let next = self.checkpoints.begin_round(force, &self.pipeline.partitions, &*self.pipeline.history);
        self.note_urgency();
        next
    }

    /// The next step of the round.
    pub(crate) fn next_step(&self) -> Next {
        self.checkpoints.checkpointer.next()
    }

    /// Performs one step of the round.
    pub(crate) fn step_checkpoint(&mut self) -> Next {
        let (number, result) = match self.checkpoints.checkpointer.next() {
            Next::Freeze(number) => {
                let all_up_to = self.pipeline.all_up_to(number);
                let mark = self.pipeline.mark_of_reflected(number);
                let partition = self.pipeline.partitions.get_mut(&number);
                (number, self.checkpoints.freeze(number, partition, all_up_to, mark))
            }
            Next::Collect(number) => (number, self.checkpoints.collect(number, self.pipeline.partitions.get_mut(&number))),
            next => return next,
        };
        if let Err(fault) = result {
            self.break_partition((number, fault));
        }
        self.checkpoints.checkpointer.next()
    }

    /// Handles the reports of the checkpoint writer.
    pub(crate) fn hear_writer(&mut self) -> Next {
        while let Some(report) = self.checkpoints.try_receive() {
            self.checkpoints.handle(report, &mut self.pipeline.partitions);
            self.evict_if_needed();
        }
        self.note_urgency();
        self.checkpoints.checkpointer.next()
    }

    /// Writes each partition a last time, and retries postponed checkpoints once. `Rest` means that
    /// this is over, even if some could not be written.
    pub(crate) fn drain(&mut self) -> Next {
        self.round_is_awaited = true;
        self.note_urgency();
        match self.checkpoints.checkpointer.next() {
            Next::Rest if self.has_queued() => Next::Wait,
            Next::Rest => {
                if self.checkpoints.begin_last_round() {
                    self.round_is_awaited = true;
                    self.begin_checkpoints(true);
                }
                self.checkpoints.checkpointer.next_of_last_round()
            }
            next => next,
        }
    }

    /// Writes checkpoints until there is room. During a start, nothing else drives them.
    pub(super) fn make_room(&mut self) -> Result<(), Fault> {
        self.check_memory(Some(START_PATIENCE));
        if self.checkpoint_due() {
            self.write_round()?;
            self.check_memory(Some(START_PATIENCE));
        }
        let began = Stopwatch::now();
        let _hurry = self.checkpoints.writer.hurry();
        // Stuck partitions keep too much, and events of the log can't be refused.
        while self.evictor.is_exhausted() {
            let left = MAX_WAIT_FOR_STUCK.checked_sub(began.elapsed());
            let left = left.ok_or_else(|| Fault::io("checkpoints can't be written, and too much is in memory only"))?;
            self.wait_for_writer(Some(left))?;
            self.evict_if_needed();
        }
        Ok(())
    }

    /// Writes checkpoints of everything, for a shard that nothing else drives.
    pub(crate) fn write_checkpoints(&mut self) -> Result<(), Fault> {
        self.write_round()?;
        match self.pipeline.partitions.values().all(|partition| partition.first_not_durable().is_none()) {
            true => Ok(()),
            false => Err(Fault::io("a checkpoint can't be written")),
        }
    }

    fn write_round(&mut self) -> Result<(), Fault> {
        let _hurry = self.checkpoints.writer.hurry();
        let mut next = self.begin_checkpoints(true);
        while next != Next::Rest {
            next = if next.is_step() { self.step_checkpoint() } else { self.wait_for_writer(None)? };
        }
        self.pipeline.first_fault().map_or(Ok(()), Err)
    }

    fn wait_for_writer(&mut self, timeout: Option<Duration>) -> Result<Next, Fault> {
        if let Some(report) = self.checkpoints.receive(timeout)? {
            self.checkpoints.handle(report, &mut self.pipeline.partitions);
            self.evict_if_needed();
        }
        Ok(self.checkpoints.checkpointer.next())
    }
}
