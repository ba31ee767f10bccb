//! The state of one partition: its projects, the index of their external ids, and the position that it reflects.

use std::collections::hash_map;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use dashmap::DashMap;
use headcount_domain::cache::table::Bytes;
use headcount_domain::fault::Fault;
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_domain::indexes::dictionary::TermCounts;
use headcount_domain::intake::event::Event;
use headcount_domain::intake::event::Position;
use headcount_domain::project::Project;
use headcount_domain::queries::{Query, Reader};
use headcount_domain::quota::{Quota, Reached};
use headcount_domain::versions::DayVersions;
use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions, ExternalIdsView, Freeze, Frozen, Merge, Written};
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::Store;

use super::checkpoint_progress::CheckpointProgress;
use super::health::PartitionHealth;
use super::quota_table::{QuotaCheck, QuotaTable};
use super::work::Outcome;
use crate::checkpoint_writer::Entries;
use crate::checkpoint_writer::{
    Collect, PartitionMeta, ProjectMeta, Records, StoreSource, highest_key, load_cells, meta_key, position_key, read_meta,
};
use crate::fault;
use crate::history::PieceOrigin;
use crate::opening_progress::Progress;
use crate::partitions::PARTITIONS;
use crate::verifier::{DamageNote, Unchecked};

/// The versions of each project that is loaded, from which `ETag`s are made. Written by the shards, read by everybody.
pub(crate) type Versions = DashMap<ProjectId, DayVersions>;

/// Partitions by number.
pub(super) type Partitions = BTreeMap<u16, Partition>;

/// The context that all partitions of an engine share.
#[derive(Clone)]
pub(crate) struct PartitionContext {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hasher: KeyHasher,
    pub(crate) versions: Arc<Versions>,
    pub(crate) external_ids_dir: PathBuf,
    /// Identifies the index of external ids that belongs to the store.
    pub(crate) index: ExternalIdsOptions,
    pub(crate) health: Arc<PartitionHealth>,
    pub(crate) limits: Arc<QuotaTable>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) checkpoints: Arc<CheckpointProgress>,
    pub(crate) unchecked: Arc<Unchecked>,
    pub(crate) damage: Arc<DamageNote>,
}

/// A checkpoint that has begun.
pub(crate) struct Begun {
    /// Its serial number, unique within the partition.
    pub(crate) serial: u64,
    /// External ids that must be durable before the checkpoint counts.
    pub(crate) new_ids: Option<Frozen>,
}

/// Memory that an external id takes until it is written.
const ID_BYTES: usize = 40;

struct ProjectState {
    project: Project,
    last: Position,
    /// Whether every record is in memory, so that unknown ones need no look-up in the store.
    complete: bool,
    changed: bool,
    /// The number of events that were folded since it was loaded.
    folded: u64,
    /// The numbers of rows and terms that `reached` was computed from.
    counted: (usize, TermCounts),
    reached: Reached,
}

impl ProjectState {
    fn source<'s>(&self, store: &'s dyn Store, partition: u16, project: ProjectId) -> StoreSource<'s> {
        StoreSource { store, partition, project, complete: self.complete }
    }

    /// Updates the quotas that the project has reached. Returns whether they changed.
    fn count(&mut self, context: &PartitionContext) -> bool {
        let counted = (self.project.rollups.group_numbers.len(), self.project.dictionary.counts);
        if counted == std::mem::replace(&mut self.counted, counted) {
            return false;
        }
        let reached = context.limits.quotas().reached(self.project.cardinality(&context.hasher));
        reached != std::mem::replace(&mut self.reached, reached)
    }
}

/// See the module.
pub(crate) struct Partition {
    number: u16,
    /// The part of the store that holds the partition: its own number, unless that part was found damaged since the start.
    stored_as: u16,
    context: PartitionContext,
    applied: Position,
    /// The highest position that the state reflects beyond `applied`: that of the checkpoint from which the partition was opened, or of
    /// a sealed event.
    ahead: Position,
    /// Whether sealed events are being replayed: project by project, so that those of others with lower positions may follow.
    replays_archive: bool,
    /// The serial number of its last checkpoint.
    serial: u64,
    /// The first event that is in no checkpoint, begun or durable.
    unsaved_from: Option<Position>,
    /// The first event of the checkpoint that has begun and is not durable.
    saving_from: Option<Position>,
    projects: HashMap<ProjectId, ProjectState>,
    index: Option<ExternalIds>,
    /// The number of different external ids of the applied events.
    external_ids: u64,
    /// Memory that the checkpoint at the writer holds until it is written.
    writing_bytes: usize,
    /// Whether that checkpoint could not be written yet, or never will be.
    is_stuck: bool,
    /// The projects of the current checkpoint that are still to be collected.
    freezing: Vec<ProjectId>,
}

impl Partition {
    /// Opens the partition as its last checkpoint left it.
    pub(crate) fn open(number: u16, context: PartitionContext) -> Result<Self, Fault> {
        Self::open_in(number, number, context)
    }

    /// Opens the partition as its last checkpoint in `stored_as` left it.
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
            serial,
            unsaved_from: None,
            saving_from: None,
            projects: HashMap::new(),
            index: None,
            external_ids,
            writing_bytes: 0,
            is_stuck: false,
            freezing: Vec::new(),
        };
        partition.check_index(external_ids)?;
        Ok(partition)
    }

    /// Opens the partition empty, to be filled from the log, in an unused part of the store: in its own part, damaged data
    /// can't be distinguished from intact data. The next start opens its own part again, and rebuilds it too.
    pub(crate) fn open_empty(number: u16, context: PartitionContext) -> Result<Self, Fault> {
        for stored_as in (number..=u16::MAX).step_by(usize::from(PARTITIONS)).skip(1) {
            let meta: Option<PartitionMeta> = read_meta(&*context.store, &position_key(stored_as))?;
            if meta.is_none() {
                return Self::open_in(stored_as, number, context);
            }
        }
        Err(Fault::damaged_store("no part of the store is left to rebuild a partition in"))
    }

    /// Removes the index of external ids of a partition that is not open. Replaying the log fills it again.
    pub(crate) fn reset_index(number: u16, context: &PartitionContext) -> Result<(), Fault> {
        ExternalIds::reset(&context.external_ids_dir.join(number.to_string()), context.index).map_err(fault::of_index)
    }

    /// Checks that the index of external ids holds at least those of the checkpoint: otherwise a duplicate would count.
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

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// The part of the store that holds the partition.
    pub(crate) fn stored_as(&self) -> PartitionId {
        PartitionId(self.stored_as)
    }

    /// The highest position that was applied. Events of one project are applied in order, those of different projects in any
    /// order: lower positions may still wait.
    pub(crate) fn applied(&self) -> Position {
        self.applied
    }

    /// Folds one event. Events of one project must come once, in the order of their positions.
    pub(crate) fn apply(&mut self, event: &Event, position: Position) -> Result<Outcome, Fault> {
        let first = match &event.external_id {
            Some(external_id) => {
                let fingerprint = self.context.hasher.external_id(event.project, external_id);
                let first = self.index()?.first(fingerprint, position);
                first.map_err(|error| self.context.damage.noted(fault::of_index(error)))?
            }
            None => position,
        };
        if first == position {
            let Self { stored_as, context, projects, external_ids, .. } = self;
            let state = state(projects, context, *stored_as, event.project)?;
            // During a replay, events come again that the checkpoint reflects beyond its own position.
            if position > state.last {
                let source = state.source(&*context.store, *stored_as, event.project);
                state.project.apply(event, position, &context.hasher, &source)?;
                state.last = position;
                state.changed = true;
                state.folded += 1;
                if state.count(context) {
                    context.limits.set(event.project, state.reached);
                }
                // Not the index's own count: it counts an id twice if a table was written twice.
                *external_ids += u64::from(event.external_id.is_some());
            }
        }
        self.pass(position);
        Ok(Outcome { position, first })
    }

    /// Skips an event that was set aside.
    pub(crate) fn skip(&mut self, position: Position) {
        self.pass(position);
    }

    /// Notes where the next replayed events come from.
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
        self.unsaved_from = Some(self.unsaved_from.map_or(position, |first| first.min(position)));
    }

    /// The position of the first event that is in no checkpoint, begun or durable.
    pub(crate) fn unsaved_from(&self) -> Option<Position> {
        self.unsaved_from
    }

    /// The position of the first event that is in no durable checkpoint.
    pub(crate) fn first_not_durable(&self) -> Option<Position> {
        self.saving_from.into_iter().chain(self.unsaved_from).min()
    }

    /// The position of a project's last event that counted. Loads the project.
    pub(crate) fn last(&mut self, project: ProjectId) -> Result<Position, Fault> {
        let Self { stored_as, context, projects, .. } = self;
        Ok(state(projects, context, *stored_as, project)?.last)
    }

    /// The number of events that were folded since the partition was opened, by project.
    pub(crate) fn folded(&self) -> BTreeMap<ProjectId, u64> {
        self.projects.iter().map(|(project, state)| (*project, state.folded)).collect()
    }

    /// Answers a query about a project.
    pub(crate) fn answer<Q: Query>(&mut self, id: ProjectId, question: &Q) -> Result<Q::Partial, Fault> {
        let Self { stored_as, context, projects, .. } = self;
        let state = state(projects, context, *stored_as, id)?;
        let source = state.source(&*context.store, *stored_as, id);
        question.answer(&mut Reader { id, project: &mut state.project, hasher: &context.hasher, source: &source })
    }

    /// The quota that each event would exceed, if any.
    pub(crate) fn over_quota(&mut self, id: ProjectId, asked: &[QuotaCheck]) -> Result<Vec<Option<Quota>>, Fault> {
        let mut exceeded = Vec::with_capacity(asked.len());
        for QuotaCheck { external_id, mentions, .. } in asked {
            let first = match external_id {
                Some(external_id) => self.index()?.get(*external_id),
                None => Ok(None),
            };
            let first = first.map_err(|error| self.context.damage.noted(fault::of_index(error)))?;
            let Self { stored_as, context, projects, .. } = self;
            let state = state(projects, context, *stored_as, id)?;
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

    /// Memory that its projects take.
    pub(crate) fn bytes(&mut self) -> Bytes {
        let mut total = Bytes::default();
        self.projects.values_mut().for_each(|state| total += state.project.bytes());
        total
    }

    /// Memory that its projects' rollups take, which can't be evicted.
    pub(crate) fn rollup_bytes(&self) -> usize {
        self.projects.values().map(|state| state.project.rollup_bytes()).sum()
    }

    /// The largest number of records of one kind that can be evicted.
    pub(crate) fn evictable(&mut self) -> usize {
        self.projects.values_mut().map(|state| state.project.most_of_a_kind()).max().unwrap_or(0)
    }

    /// Evicts saved records that are not in use. Returns the number of freed bytes.
    pub(crate) fn evict(&mut self, enough: usize, most: usize) -> usize {
        let mut freed = 0;
        for state in self.projects.values_mut() {
            let here = state.project.evict(enough.saturating_sub(freed), most);
            state.complete &= here == 0;
            freed += here;
        }
        freed
    }

    pub(super) fn index(&mut self) -> Result<&mut ExternalIds, Fault> {
        if self.index.is_none() {
            let dir = self.context.external_ids_dir.join(self.number.to_string());
            let opened = ExternalIds::open(&dir, self.context.index).map_err(|error| {
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

    /// Begins a checkpoint of everything that was applied. Metas and the position are few and copied at once; rollups and
    /// records follow in [`Partition::collect_records`]. Returns `None` while external ids of an earlier checkpoint are still
    /// being written: a checkpoint must not count before the ids that it covers are durable.
    ///
    /// Everything up to the position `all_up_to` is applied, and some events beyond it: a replay begins there, and skips what
    /// is applied already by the position of each project's last event.
    pub(crate) fn freeze(&mut self, all_up_to: Position, entries: &mut Entries) -> Result<Option<Begun>, Fault> {
        let new_ids = match self.freeze_ids() {
            Freeze::Busy => return Ok(None),
            Freeze::Nothing => None,
            Freeze::Write(frozen) => Some(frozen),
        };
        self.freezing.clear();
        self.saving_from = self.unsaved_from.take();
        self.writing_bytes = self.bytes().unsaved;
        for (id, state) in &mut self.projects {
            if !std::mem::take(&mut state.changed) {
                continue;
            }
            state.project.freeze();
            self.freezing.push(*id);
            let mut collect = Collect { partition: self.stored_as, project: *id, entries };
            state.project.orphans.drain(..).for_each(|(space, key)| collect.orphan(space, key));
            collect.meta(ProjectMeta { last: state.last, names: state.project.dictionary.counts })?;
        }
        // The position belongs to the partition, whatever the project of the collector.
        self.serial += 1;
        let meta = PartitionMeta { position: all_up_to, external_ids: self.external_ids, serial: self.serial };
        let highest = self.reflected();
        let mut collect = Collect { partition: self.stored_as, project: ProjectId(0), entries };
        collect.highest(highest)?;
        collect.partition_meta(meta)?;
        Ok(Some(Begun { serial: self.serial, new_ids }))
    }

    /// Freezes the external ids that are not written yet.
    pub(super) fn freeze_ids(&mut self) -> Freeze {
        self.index.as_mut().map_or(Freeze::Nothing, ExternalIds::freeze)
    }

    /// Collects up to `most` parts of rollups and records of a checkpoint. Returns whether there are more.
    pub(crate) fn collect_records(&mut self, most: usize, entries: &mut Entries) -> Result<bool, Fault> {
        let Some(id) = self.freezing.last().copied() else { return Ok(false) };
        let Some(state) = self.projects.get_mut(&id) else { return Ok(false) };
        let mut collect = Collect { partition: self.stored_as, project: id, entries };
        let mut records = Records { collect: &mut collect, result: Ok(()) };
        let more = state.project.drain_frozen(most, &mut records);
        records.result?;
        if !more {
            self.freezing.pop();
        }
        Ok(!self.freezing.is_empty())
    }

    /// Records that a complete checkpoint of `encoded_bytes` went to the checkpoint writer.
    pub(crate) fn handed_over(&mut self, encoded_bytes: usize) {
        self.writing_bytes += encoded_bytes;
    }

    /// Records that the writer could not write the checkpoint.
    pub(crate) fn set_stuck(&mut self) {
        self.is_stuck = true;
    }

    /// Whether no further checkpoint can begin: it would lack what the last one took.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// Memory that a stuck partition keeps until its checkpoint can be written: all changes since the one before.
    pub(crate) fn stuck_bytes(&mut self) -> usize {
        if !self.is_stuck {
            return 0;
        }
        let ids = self.index.as_ref().map_or(0, ExternalIds::unwritten) * ID_BYTES;
        self.bytes().unsaved + self.writing_bytes + ids
    }

    /// Records that the checkpoint is durable.
    pub(crate) fn mark_durable(&mut self) {
        self.projects.values_mut().for_each(|state| state.project.mark_durable());
        self.writing_bytes = 0;
        self.is_stuck = false;
        self.saving_from = None;
    }

    /// Uses a table of external ids that was written, whatever became of its checkpoint.
    pub(crate) fn adopt(&mut self, run: Written) {
        if let Some(index) = &mut self.index {
            index.adopt(run);
        }
    }

    /// Tables of external ids that are worth merging.
    pub(crate) fn merge(&mut self) -> Option<Merge> {
        self.index.as_mut()?.merge()
    }
}

fn state<'p>(
    projects: &'p mut HashMap<ProjectId, ProjectState>,
    context: &PartitionContext,
    partition: u16,
    project: ProjectId,
) -> Result<&'p mut ProjectState, Fault> {
    match projects.entry(project) {
        hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
        hash_map::Entry::Vacant(entry) => Ok(entry.insert(load(context, partition, project)?)),
    }
}

fn load(context: &PartitionContext, partition: u16, id: ProjectId) -> Result<ProjectState, Fault> {
    let meta: Option<ProjectMeta> = read_meta(&*context.store, &meta_key(partition, id))?;
    let mut project = Project::default();
    load_cells(&*context.store, partition, id, &mut project)?;
    let ProjectMeta { last, names } = meta.unwrap_or_default();
    project.dictionary.counts = names;
    let reached = context.limits.quotas().reached(project.cardinality(&context.hasher));
    // Before the version is there, which marks the project as loaded.
    context.limits.set(id, reached);
    let counted = (project.rollups.group_numbers.len(), names);
    project.versions.restore_last(last);
    context.versions.insert(id, project.versions.clone());
    Ok(ProjectState { project, last, complete: meta.is_none(), changed: false, folded: 0, counted, reached })
}
