//! The state of one partition: its projects, the index of its `external_id`s, and the position they reflect.

use std::collections::HashMap;
use std::collections::hash_map;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;
use headcount_domain::answers::{Question, Reader};
use headcount_domain::event::Event;
use headcount_domain::fold::{Fault, Position, Project};
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_domain::table::Bytes;
use headcount_storage::fingerprints::{FingerprintOptions, Fingerprints, Freeze, Frozen, Merge, Written};
use headcount_storage::store::Store;

use super::entries::Entries;
use super::fault;
use super::source::{Collect, ProjectMeta, Records, Standing, StoreSource, load_cells, meta_key, position_key, read};
use crate::progress::Progress;
use crate::verifier::{DamageNote, Unchecked};

/// How many partitions there are, for ever: the partition of a project must not move.
pub const PARTITIONS: u16 = 64;

/// The partition of a project: a stable hash of its id.
#[must_use]
pub fn partition_of(project: ProjectId) -> u16 {
    let hash = xxhash_rust::xxh3::xxh3_64(&project.0.to_be_bytes());
    u16::try_from(hash % u64::from(PARTITIONS)).unwrap_or(0)
}

/// The position of each project's last event that counted: what an `ETag` is made of. Written by the shards, read by all.
pub(crate) type Versions = DashMap<ProjectId, Arc<AtomicU64>>;

/// What became of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Its position.
    pub position: Position,
    /// The position of the event that has its `external_id`: its own, unless it is a duplicate.
    pub first: Position,
}

impl Outcome {
    /// Whether an earlier event has its `external_id`.
    #[must_use]
    pub fn is_duplicate(self) -> bool {
        self.first != self.position
    }
}

/// What all partitions of an engine share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hasher: KeyHasher,
    pub(crate) versions: Arc<Versions>,
    pub(crate) fingerprints_dir: PathBuf,
    /// Which index of external ids belongs to the store.
    pub(crate) index: FingerprintOptions,
    pub(crate) progress: Arc<Progress>,
    pub(crate) unchecked: Arc<Unchecked>,
    pub(crate) damage: Arc<DamageNote>,
}

struct State {
    project: Project,
    last: Position,
    version: Arc<AtomicU64>,
    /// Whether every record is in memory, so that the store need not be asked for unknown ones.
    complete: bool,
    changed: bool,
}

impl State {
    fn source<'s>(&self, store: &'s dyn Store, partition: u16, project: ProjectId) -> StoreSource<'s> {
        StoreSource { store, partition, project, complete: self.complete }
    }
}

/// See the module.
pub(crate) struct Partition {
    number: u16,
    shared: Shared,
    applied: Position,
    saved: Position,
    projects: HashMap<ProjectId, State>,
    fingerprints: Option<Fingerprints>,
    /// The projects of the checkpoint under way that are still to be collected.
    freezing: Vec<ProjectId>,
}

impl Partition {
    /// The partition as its last checkpoint left it.
    pub(crate) fn open(number: u16, shared: Shared) -> Result<Self, Fault> {
        let Standing { position, external_ids } = read(&*shared.store, &position_key(number))?.unwrap_or_default();
        let mut partition = Self {
            number,
            shared,
            applied: position,
            saved: position,
            projects: HashMap::new(),
            fingerprints: None,
            freezing: Vec::new(),
        };
        partition.check_fingerprints(external_ids)?;
        Ok(partition)
    }

    /// The index of external ids must hold at least those of the checkpoint: otherwise a duplicate would count.
    fn check_fingerprints(&mut self, external_ids: u64) -> Result<(), Fault> {
        if external_ids == 0 {
            return Ok(());
        }
        let unchecked = Arc::clone(&self.shared.unchecked);
        let fingerprints = self.fingerprints()?;
        unchecked.check(fingerprints).map_err(fault::of_index)?;
        match fingerprints.entries() {
            fewer if fewer < external_ids => {
                Err(Fault::damaged_index(format!("the index has {fewer} external ids, the checkpoint {external_ids}")))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn number(&self) -> u16 {
        self.number
    }

    /// The position of the last event that the state reflects.
    pub(crate) fn applied(&self) -> Position {
        self.applied
    }

    /// The position that the last checkpoint reflects.
    pub(crate) fn saved(&self) -> Position {
        self.saved
    }

    /// Folds one event. What is at or below [`Partition::applied`] must not come again.
    pub(crate) fn apply(&mut self, event: &Event, position: Position) -> Result<Outcome, Fault> {
        debug_assert!(position > self.applied, "events come in order, once");
        let first = match &event.external_id {
            Some(external_id) => {
                let fingerprint = self.shared.hasher.external_id(event.project, external_id);
                let first = self.fingerprints()?.first(fingerprint, position);
                first.map_err(|error| self.shared.damage.noted(fault::of_index(error)))?
            }
            None => position,
        };
        if first == position {
            let Self { number, shared, projects, .. } = self;
            let state = state(projects, shared, *number, event.project)?;
            let source = state.source(&*shared.store, *number, event.project);
            state.project.apply(event, position, &shared.hasher, &source)?;
            state.last = position;
            state.changed = true;
            state.version.store(position, Ordering::Release);
        }
        self.applied = position;
        Ok(Outcome { position, first })
    }

    /// Passes over an event that was set aside.
    pub(crate) fn skip(&mut self, position: Position) {
        self.applied = position;
    }

    /// Reads a project's rollups.
    pub(crate) fn read<R>(&mut self, project: ProjectId, question: impl FnOnce(&Project) -> R) -> Result<R, Fault> {
        let Self { number, shared, projects, .. } = self;
        Ok(question(&state(projects, shared, *number, project)?.project))
    }

    /// Answers a question about a project.
    pub(crate) fn answer<Q: Question>(&mut self, id: ProjectId, question: &Q) -> Result<Q::Part, Fault> {
        let Self { number, shared, projects, .. } = self;
        let state = state(projects, shared, *number, id)?;
        let source = state.source(&*shared.store, *number, id);
        question.answer(&mut Reader { id, project: &mut state.project, hasher: &shared.hasher, source: &source })
    }

    /// How much of its projects' records is in memory.
    pub(crate) fn bytes(&mut self) -> Bytes {
        let mut total = Bytes::default();
        self.projects.values_mut().for_each(|state| total += state.project.bytes());
        total
    }

    /// How many records of one kind there are at most, if any can be let go of.
    pub(crate) fn evictable(&mut self) -> usize {
        self.projects.values_mut().map(|state| state.project.most_of_a_kind()).max().unwrap_or(0)
    }

    /// Lets go of saved records that are not in use. Answers how many bytes were freed.
    pub(crate) fn evict(&mut self, enough: usize, most: usize) -> usize {
        let mut freed = 0;
        for state in self.projects.values_mut() {
            let here = state.project.evict(enough.saturating_sub(freed), most);
            state.complete &= here == 0;
            freed += here;
        }
        freed
    }

    fn fingerprints(&mut self) -> Result<&mut Fingerprints, Fault> {
        if self.fingerprints.is_none() {
            let dir = self.shared.fingerprints_dir.join(self.number.to_string());
            let opened = Fingerprints::open(&dir, self.shared.index).map_err(|error| {
                let Fault { kind, message } = fault::of_index(error);
                self.shared.damage.noted(Fault::new(kind, format!("{}: {message}", dir.display())))
            });
            self.fingerprints = Some(opened?);
        }
        self.fingerprints.as_mut().ok_or_else(|| Fault::defect("the index of external ids is not open"))
    }

    /// Begins a checkpoint of what has been applied, and returns its position. Cells, metas and the position are few, and
    /// copied at once; records follow by [`Partition::collect_records`].
    pub(crate) fn freeze(&mut self, entries: &mut Entries) -> Result<Position, Fault> {
        self.freezing.clear();
        for (id, state) in &mut self.projects {
            if !std::mem::take(&mut state.changed) {
                continue;
            }
            state.project.freeze();
            self.freezing.push(*id);
            let mut collect = Collect { partition: self.number, project: *id, entries };
            state.project.orphans.drain(..).for_each(|(space, key)| collect.orphan(space, key));
            state.project.rollups.save(&mut collect)?;
            collect.meta(ProjectMeta { last: state.last, names: state.project.names.count })?;
        }
        // The position is the partition's, whatever the project of the collector.
        let standing = Standing { position: self.applied, external_ids: self.external_ids() };
        Collect { partition: self.number, project: ProjectId(0), entries }.standing(standing)?;
        // What is indexed from here on is beyond the checkpoint, and may be written with it or not.
        Ok(self.applied)
    }

    /// How many external ids are known. Those in memory are written with the checkpoint, before it counts.
    fn external_ids(&self) -> u64 {
        self.fingerprints.as_ref().map_or(0, |known| known.entries() + known.unwritten() as u64)
    }

    /// The next part of a checkpoint: up to `most` records. `false`: that was all.
    pub(crate) fn collect_records(&mut self, most: usize, entries: &mut Entries) -> Result<bool, Fault> {
        let Some(id) = self.freezing.last().copied() else { return Ok(false) };
        let Some(state) = self.projects.get_mut(&id) else { return Ok(false) };
        let mut collect = Collect { partition: self.number, project: id, entries };
        let mut records = Records { collect: &mut collect, result: Ok(()) };
        let more = state.project.drain_frozen(most, &mut records);
        records.result?;
        if !more {
            self.freezing.pop();
        }
        Ok(!self.freezing.is_empty())
    }

    /// Moves the new fingerprints aside, for the keeper to write, and says which older ones are worth merging.
    pub(crate) fn fingerprint_jobs(&mut self) -> (Option<Frozen>, Option<Merge>) {
        let Some(fingerprints) = &mut self.fingerprints else { return (None, None) };
        let merge = fingerprints.merge();
        match fingerprints.freeze() {
            Freeze::Write(frozen) => (Some(frozen), merge),
            Freeze::Nothing | Freeze::Busy => (None, merge),
        }
    }

    /// A checkpoint of `position` is durable, and so are the `runs` of fingerprints that were written with it.
    pub(crate) fn saved_at(&mut self, position: Position, runs: Vec<Written>) {
        self.saved = self.saved.max(position);
        self.projects.values_mut().for_each(|state| state.project.settle());
        if let Some(fingerprints) = &mut self.fingerprints {
            runs.into_iter().for_each(|run| fingerprints.adopt(run));
        }
    }
}

fn state<'p>(
    projects: &'p mut HashMap<ProjectId, State>,
    shared: &Shared,
    partition: u16,
    project: ProjectId,
) -> Result<&'p mut State, Fault> {
    match projects.entry(project) {
        hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
        hash_map::Entry::Vacant(entry) => Ok(entry.insert(load(shared, partition, project)?)),
    }
}

fn load(shared: &Shared, partition: u16, id: ProjectId) -> Result<State, Fault> {
    let meta: Option<ProjectMeta> = read(&*shared.store, &meta_key(partition, id))?;
    let mut project = Project::default();
    load_cells(&*shared.store, partition, id, &mut project)?;
    let ProjectMeta { last, names } = meta.unwrap_or_default();
    project.names.count = names;
    let version = Arc::clone(&shared.versions.entry(id).or_default());
    version.store(last, Ordering::Release);
    Ok(State { project, last, version, complete: meta.is_none(), changed: false })
}
