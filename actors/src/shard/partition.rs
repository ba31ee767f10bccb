//! The state of one partition: its projects, the index of their external ids, and its position.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

use headcount_common::PARTITIONS;
use headcount_domain::ids::external_ids_of;
use headcount_domain::queries::{Query, Reader};
use headcount_domain::{Day, Event, Fault, FloorMove, Position, ProjectId, Quota, SentKeys};
use headcount_storage::external_ids::{ExternalIds, ExternalIdsView, Freeze, Frozen, Merge, Purge, Written};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::log::LogMark;

use super::partition_context::PartitionContext;
use super::project_state::ProjectState;
use super::projects::Projects;
use super::quota_table::QuotaCheck;
use super::work::Outcome;
use crate::checkpoint_writer::Entries;
use crate::checkpoint_writer::{Collect, PartitionMeta, ProjectMeta, Records, highest_key, meta_key, position_key, read_meta};
use crate::fault;
use crate::history::PieceOrigin;

/// Partitions by number.
pub(super) type PartitionMap = BTreeMap<u16, Partition>;

/// A checkpoint that has begun.
pub(crate) struct Begun {
    /// Its serial number, unique within the partition.
    pub(crate) serial: u64,
    /// External ids that must be durable before the checkpoint counts.
    pub(crate) new_ids: Option<Frozen>,
}

/// A project whose state is being replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Replacement {
    pub(super) project: ProjectId,
    /// The number of the checkpoint with its state.
    pub(super) serial: u64,
}

/// The last checkpoint of a partition, and what it lacks.
#[derive(Default)]
pub(crate) struct CheckpointState {
    /// Its serial number.
    pub(super) serial: u64,
    /// The serial number of the last durable checkpoint.
    pub(super) durable: u64,
    /// The first event that is in no checkpoint, neither begun nor durable.
    pub(crate) unsaved_from: Option<Position>,
    /// Its first event, while it is in progress.
    saving_from: Option<Position>,
    /// Whether it has no mark of the log.
    pub(super) is_unmarked: bool,
    /// Its memory at the writer, until it is written.
    pub(super) writing_bytes: usize,
    /// Whether it could not be written yet, or never will be.
    pub(crate) is_stuck: bool,
    /// Its projects that are still to be collected.
    freezing: Vec<ProjectId>,
}

impl CheckpointState {
    /// Records that an event is in no checkpoint.
    fn note_event(&mut self, position: Position) {
        self.unsaved_from = Some(self.unsaved_from.map_or(position, |first| first.min(position)));
    }

    /// Records that a checkpoint is due, although no event came.
    pub(super) fn note_change(&mut self) {
        self.unsaved_from.get_or_insert(Position::MAX);
    }
}

/// The state of one partition.
pub(crate) struct Partition {
    pub(crate) number: u16,
    /// The part of the store that holds it: its own number, unless that part was found damaged.
    pub(super) stored_as: u16,
    pub(super) context: PartitionContext,
    /// The highest applied position. Each project's events are applied in order.
    pub(crate) applied: Position,
    /// The highest position that the state reflects in part, if beyond `applied`.
    pub(super) ahead: Position,
    /// Whether sealed events are being replayed, project by project.
    replays_archive: bool,
    pub(crate) checkpoint: CheckpointState,
    pub(super) projects: Projects,
    pub(super) index: Option<ExternalIds>,
    /// The number of different external ids of the applied events.
    pub(super) external_ids: u64,
    /// The deleted projects removed from the state, each with the first checkpoint without it.
    forgotten: BTreeMap<ProjectId, u64>,
    /// The project whose state is being replaced.
    pub(super) replacement: Option<Replacement>,
}

impl Partition {
    /// Opens the partition from its last checkpoint.
    pub(crate) fn open(number: u16, context: PartitionContext) -> Result<Self, Fault> {
        Self::open_in(number, number, context)
    }

    /// Opens the partition from its last checkpoint in `stored_as`.
    pub(crate) fn open_in(stored_as: u16, number: u16, context: PartitionContext) -> Result<Self, Fault> {
        let store = Arc::clone(&context.store);
        let PartitionMeta { position, external_ids, serial } = read_meta(&*store, &position_key(stored_as))?.unwrap_or_default();
        let mut partition = Self {
            number,
            stored_as,
            context,
            applied: position,
            ahead: read_meta(&*store, &highest_key(stored_as))?.unwrap_or(position),
            replays_archive: false,
            checkpoint: CheckpointState { serial, durable: serial, ..CheckpointState::default() },
            projects: Projects::default(),
            index: None,
            external_ids,
            forgotten: BTreeMap::new(),
            replacement: None,
        };
        partition.check_index(external_ids)?;
        Ok(partition)
    }

    /// Opens the partition empty, to be filled from the log, in an unused part of the store:
    /// damaged data in its own part would look intact. The next start rebuilds it in its own part.
    pub(crate) fn open_empty(number: u16, context: PartitionContext) -> Result<Self, Fault> {
        for stored_as in (number..=u16::MAX).step_by(usize::from(PARTITIONS)).skip(1) {
            let meta: Option<PartitionMeta> = read_meta(&*context.store, &position_key(stored_as))?;
            if meta.is_none() {
                return Self::open_in(stored_as, number, context);
            }
        }
        Err(Fault::damaged_store("no part of the store is left to rebuild a partition in"))
    }

    /// Removes the index of external ids of a closed partition. Replaying the log fills it again.
    pub(crate) fn reset_index(number: u16, context: &PartitionContext) -> Result<(), Fault> {
        ExternalIds::reset(&context.index_dir(number), context.index.1).map_err(fault::of_index)
    }

    /// Checks that the index has all external ids of the checkpoint. Otherwise a duplicate would
    /// count.
    fn check_index(&mut self, external_ids: u64) -> Result<(), Fault> {
        if external_ids == 0 {
            return Ok(());
        }
        let unchecked = Arc::clone(&self.context.unchecked);
        let index = self.index()?;
        unchecked.check(index).map_err(fault::of_index)?;
        match index.entries() {
            fewer if fewer < external_ids => {
                Err(Fault::damaged_index(format!("the index has {fewer} external ids, the checkpoint {external_ids}")))
            }
            _ => Ok(()),
        }
    }

    /// The part of the store that holds the partition.
    pub(crate) fn stored_as(&self) -> PartitionId {
        PartitionId(self.stored_as)
    }

    /// Computes the keys of the ids of one project's next events, and reads the records to change.
    pub(crate) fn look_ahead(&self, events: &[Box<Event>], keys: &mut [SentKeys]) {
        for (keys, event) in keys.iter_mut().zip(events) {
            *keys = SentKeys::of(&event.who, &self.context.hasher);
        }
        if let ([first, _, ..], Some(keys)) = (events, keys.get(..events.len()))
            && let Some(state) = self.projects.get(first.project)
        {
            black_box(state.project.look_ahead(keys));
        }
    }

    /// Folds one event with the keys of its ids. A project's events must come once, in order.
    pub(crate) fn apply(&mut self, event: &Event, keys: SentKeys, position: Position) -> Result<Outcome, Fault> {
        if self.context.deleted.contains(event.project) {
            self.pass(position);
            return Ok(Outcome::at(position));
        }
        let Self { stored_as, context, projects, .. } = self;
        if projects.load(context, *stored_as, event.project)?.project.drops(event) {
            // Its external id stays unused.
            self.pass(position);
            return Ok(Outcome { is_dropped: true, ..Outcome::at(position) });
        }
        let external_id = event.external_id.as_deref().map(|id| self.context.hasher.external_id(event.project, id));
        let external_id = external_id.or_else(|| event.taken_id());
        let first = match external_id {
            Some(fingerprint) => {
                let first = self.index()?.first(fingerprint, position);
                first.map_err(|error| self.context.damage.noted(fault::of_index(error)))?
            }
            None => position,
        };
        if first == position {
            let Self { stored_as, context, projects, external_ids, .. } = self;
            let state = projects.load(context, *stored_as, event.project)?;
            // A replay passes events again that the checkpoint reflects beyond its own position.
            if position > state.last {
                let source = state.source(&*context.store, *stored_as, event.project);
                let subject = state.project.apply_with_keys(event, keys, position, &context.hasher, &source)?;
                state.last = position;
                state.changed = true;
                state.folded += 1;
                context.feeds.offer(event, position, subject);
                if state.count(context, event.project) {
                    context.limits.set(event.project, state.reached);
                }
                // Counted here, because the index counts an id twice if a table was written twice.
                let new_ids = u64::from(external_id.is_some());
                *external_ids += new_ids;
                state.external_ids += new_ids;
            }
        }
        self.pass(position);
        Ok(Outcome { position, first, is_dropped: false })
    }

    /// Takes a step in raising a project's floor. Returns whether the floor is raised.
    pub(crate) fn step_floor(&mut self, floor: FloorMove, position: Position) -> Result<bool, Fault> {
        if !floor.is_mark() && !self.context.deleted.contains(floor.project) {
            let Self { stored_as, context, projects, .. } = self;
            let state = projects.load(context, *stored_as, floor.project)?;
            if !state.step_floor(floor.day, position) {
                return Ok(false);
            }
            state.publish_floor(context, floor.project);
        }
        self.pass(position);
        Ok(true)
    }

    /// Skips a dead letter.
    pub(crate) fn skip(&mut self, position: Position) {
        self.pass(position);
    }

    /// Removes a deleted project from the state. Returns whether a checkpoint without it is
    /// durable: then its external ids are in tables, and don't count any more.
    pub(crate) fn forget(&mut self, id: ProjectId) -> Result<bool, Fault> {
        if let Some(serial) = self.forgotten.get(&id) {
            return Ok(*serial <= self.checkpoint.durable);
        }
        let external_ids = match self.projects.remove(id) {
            Some(state) => state.external_ids,
            None => {
                read_meta::<ProjectMeta>(&*self.context.store, &meta_key(self.stored_as, id))?.unwrap_or_default().external_ids
            }
        };
        self.external_ids = self.external_ids.saturating_sub(external_ids);
        self.checkpoint.freezing.retain(|freezing| *freezing != id);
        self.context.versions.remove(&id);
        self.context.floors.remove(id);
        self.context.limits.forget(id);
        self.forgotten.insert(id, self.checkpoint.serial + 1);
        self.checkpoint.note_change();
        Ok(false)
    }

    /// Sets the origin of the next replayed events.
    pub(crate) fn replay_from(&mut self, origin: PieceOrigin) {
        self.replays_archive = origin == PieceOrigin::Archive;
        if let PieceOrigin::EndOfArchive(until) = origin {
            // The positions between its events belong to other partitions, or to duplicates.
            self.applied = self.applied.max(until);
        }
    }

    fn pass(&mut self, position: Position) {
        let reached = if self.replays_archive { &mut self.ahead } else { &mut self.applied };
        *reached = position.max(*reached);
        self.checkpoint.note_event(position);
    }

    /// The position of the first event that is in no durable checkpoint.
    pub(crate) fn first_not_durable(&self) -> Option<Position> {
        self.checkpoint.saving_from.into_iter().chain(self.checkpoint.unsaved_from).min()
    }

    /// The floor of a project. Does not load it.
    pub(crate) fn floor(&self, id: ProjectId) -> Result<Option<Day>, Fault> {
        match self.projects.get(id) {
            _ if self.context.deleted.contains(id) => Ok(None),
            Some(state) => Ok(state.project.floor()),
            None => {
                Ok(read_meta::<ProjectMeta>(&*self.context.store, &meta_key(self.stored_as, id))?.and_then(|meta| meta.floor))
            }
        }
    }

    /// The position of a project's last event that counted. Loads the project.
    pub(crate) fn last(&mut self, project: ProjectId) -> Result<Position, Fault> {
        if self.context.deleted.contains(project) {
            return Ok(0);
        }
        let Self { stored_as, context, projects, .. } = self;
        Ok(projects.load(context, *stored_as, project)?.last)
    }

    /// The number of events folded since the partition was opened, by project.
    pub(crate) fn folded(&self) -> BTreeMap<ProjectId, u64> {
        self.projects.iter().map(|(project, state)| (project, state.folded)).collect()
    }

    /// Answers a query about a project.
    pub(crate) fn answer<Q: Query>(&mut self, id: ProjectId, question: &Q) -> Result<Q::Partial, Fault> {
        let Self { stored_as, context, projects, .. } = self;
        let mut nothing;
        let state = match context.deleted.contains(id) {
            true => {
                nothing = ProjectState::empty();
                &mut nothing
            }
            false => projects.load(context, *stored_as, id)?,
        };
        let source = state.source(&*context.store, *stored_as, id);
        question.answer(&mut Reader { id, project: &mut state.project, hasher: &context.hasher, source: &source })
    }

    /// Compares a loaded project with its changed quotas.
    pub(crate) fn recount(&mut self, id: ProjectId) {
        self.projects.get_mut(id).into_iter().for_each(|state| state.recount(&self.context, id));
    }

    /// The quota that each event would exceed, if any.
    pub(crate) fn over_quota(&mut self, id: ProjectId, asked: &[QuotaCheck]) -> Result<Vec<Option<Quota>>, Fault> {
        if self.context.deleted.contains(id) {
            return Ok(vec![None; asked.len()]);
        }
        let mut exceeded = Vec::with_capacity(asked.len());
        for QuotaCheck { external_id, mentions, .. } in asked {
            let first = match external_id {
                Some(external_id) => self.index()?.get(*external_id),
                None => Ok(None),
            };
            let first = first.map_err(|error| self.context.damage.noted(fault::of_index(error)))?;
            let Self { stored_as, context, projects, .. } = self;
            let state = projects.load(context, *stored_as, id)?;
            let source = state.source(&*context.store, *stored_as, id);
            exceeded.push(if first.is_some() { None } else { state.project.would_exceed(mentions, &source)? });
        }
        Ok(exceeded)
    }

    /// A view of the external ids that are on disk or on their way there.
    pub(crate) fn known_ids(&mut self) -> Result<ExternalIdsView, Fault> {
        Ok(self.index()?.view())
    }

    /// The first positions that have these external ids.
    pub(crate) fn first_positions(&mut self, ids: &[u128]) -> Result<Vec<Option<Position>>, Fault> {
        let known = self.index()?;
        ids.iter().map(|id| known.get(*id).map_err(fault::of_index)).collect()
    }

    pub(super) fn index(&mut self) -> Result<&mut ExternalIds, Fault> {
        if self.index.is_none() {
            let dir = self.context.index_dir(self.number);
            let opened = ExternalIds::open(&dir, self.context.index.1).map_err(|error| {
                let Fault { kind, message } = fault::of_index(error);
                self.context.damage.noted(Fault::new(kind, format!("{}: {message}", dir.display())))
            });
            self.index = Some(opened?);
        }
        self.index.as_mut().ok_or_else(|| Fault::defect("the index of external ids is not open"))
    }

    /// The highest position that the state reflects.
    pub(crate) fn reflected(&self) -> Position {
        self.applied.max(self.ahead)
    }

    /// Begins a checkpoint of all applied events. Metas and the position are copied at once;
    /// rollups and records follow in [`Partition::collect_records`]. Returns `None` while earlier
    /// external ids are being written (a checkpoint must not count before its ids), while a floor
    /// is being raised, and while another thread writes the state of a project.
    ///
    /// All events up to `all_up_to` are applied, and some beyond it. A replay begins there.
    pub(crate) fn freeze(
        &mut self,
        all_up_to: Position,
        mark: Option<LogMark>,
        entries: &mut Entries,
    ) -> Result<Option<Begun>, Fault> {
        let is_written = self.replacement.is_some_and(|replacement| self.checkpoint.serial >= replacement.serial);
        if is_written || self.projects.iter().any(|(_, state)| state.has_rising_floor()) {
            return Ok(None);
        }
        let new_ids = match self.freeze_ids() {
            Freeze::Busy => return Ok(None),
            Freeze::Nothing => None,
            Freeze::Write(frozen) => Some(frozen),
        };
        self.checkpoint.freezing.clear();
        self.checkpoint.saving_from = self.checkpoint.unsaved_from.take();
        self.checkpoint.writing_bytes = self.bytes().unsaved;
        let mut to_collect = 0;
        for (id, state) in self.projects.select_mut(|state| state.changed) {
            state.changed = false;
            state.project.freeze();
            to_collect += state.project.frozen();
            self.checkpoint.freezing.push(id);
            let mut collect = Collect { partition: self.stored_as, project: id, entries };
            state.project.orphans.drain(..).for_each(|(space, key)| collect.orphan(space, key));
            let (names, external_ids) = (state.project.dictionary.counts, state.external_ids);
            collect.meta(ProjectMeta { last: state.last, names, external_ids, floor: state.project.floor() })?;
        }
        entries.reserve(to_collect);
        let next = self.checkpoint.serial + 1;
        for id in self.forgotten.iter().filter(|(_, serial)| **serial == next).map(|(id, _)| *id) {
            Collect { partition: self.stored_as, project: id, entries }.no_meta();
        }
        // The position belongs to the partition, whichever project the collector is at.
        self.checkpoint.serial += 1;
        let meta = PartitionMeta { position: all_up_to, external_ids: self.external_ids, serial: self.checkpoint.serial };
        let highest = self.reflected();
        let mut collect = Collect { partition: self.stored_as, project: ProjectId(0), entries };
        collect.highest(highest)?;
        mark.map_or(Ok(()), |mark| collect.mark(mark))?;
        self.checkpoint.is_unmarked = mark.is_none();
        collect.partition_meta(meta)?;
        Ok(Some(Begun { serial: self.checkpoint.serial, new_ids }))
    }

    /// Freezes the unwritten external ids.
    pub(super) fn freeze_ids(&mut self) -> Freeze {
        self.index.as_mut().map_or(Freeze::Nothing, ExternalIds::freeze)
    }

    /// Collects about `most` parts, records and pages of a checkpoint. Returns whether there are
    /// more.
    pub(crate) fn collect_records(&mut self, most: usize, entries: &mut Entries) -> Result<bool, Fault> {
        let Some(id) = self.checkpoint.freezing.last().copied() else { return Ok(false) };
        let Some(state) = self.projects.get_mut(id) else { return Ok(false) };
        let mut collect = Collect { partition: self.stored_as, project: id, entries };
        let mut records = Records::up_to(most, &mut collect);
        let more = state.project.drain_frozen(&mut records);
        records.end()?;
        if !more {
            self.checkpoint.freezing.pop();
        }
        Ok(!self.checkpoint.freezing.is_empty())
    }

    /// Records that a complete checkpoint of `encoded_bytes` was passed to the checkpoint writer.
    pub(crate) fn handed_over(&mut self, encoded_bytes: usize) {
        self.checkpoint.writing_bytes += encoded_bytes;
    }

    /// Records that the writer could not write the checkpoint.
    pub(crate) fn set_stuck(&mut self) {
        self.checkpoint.is_stuck = true;
    }

    /// Records that the checkpoint is durable.
    pub(crate) fn mark_durable(&mut self) {
        self.projects.select_mut(|_| true).for_each(|(_, state)| state.project.mark_durable());
        self.checkpoint.writing_bytes = 0;
        self.checkpoint.is_stuck = false;
        self.checkpoint.saving_from = None;
        // Only one checkpoint is in progress at a time.
        self.checkpoint.durable = self.checkpoint.serial;
    }

    /// Uses a written table of external ids, whatever the outcome of its checkpoint.
    pub(crate) fn adopt(&mut self, run: Written) {
        if let Some(index) = &mut self.index {
            index.adopt(run);
        }
    }

    /// Returns the removal of a deleted project's external ids.
    pub(crate) fn purge_ids(&mut self, project: ProjectId) -> Result<Purge, Fault> {
        Ok(self.index()?.purge(&external_ids_of(project)))
    }

    /// Tables of external ids that are worth merging.
    pub(crate) fn merge(&mut self) -> Option<Merge> {
        self.index.as_mut()?.merge()
    }
}
