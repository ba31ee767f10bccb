//! The state of one project, as its partition keeps it.

use headcount_domain::indexes::dictionary::TermCounts;
use headcount_domain::{Day, Fault, Position, Project, ProjectId, Reached, RisingFloor};
use headcount_storage::store::Store;

use super::memory_usage::Weight;
use super::partition_context::PartitionContext;
use crate::checkpoint_writer::{ProjectMeta, StoreSource, load_cells, meta_key, read_meta};

/// A project in memory.
pub(super) struct ProjectState {
    pub(super) project: Project,
    pub(super) last: Position,
    /// The number of different external ids of its events.
    pub(super) external_ids: u64,
    /// Whether every record is in memory, so that unknown ones need no lookup in the store.
    pub(super) complete: bool,
    pub(super) changed: bool,
    /// The number of events folded since it was loaded.
    pub(super) folded: u64,
    /// The numbers of rows and terms that `reached` was computed from.
    counted: (usize, TermCounts),
    pub(super) reached: Reached,
    /// The floor that is being raised.
    rising: Option<RisingFloor>,
    /// Its memory when it was last weighed.
    pub(super) weighed: Weight,
    /// Whether its weight may have changed since.
    pub(super) used: bool,
}

/// The number of rows that a step in raising a floor visits: a fraction of a millisecond.
const FLOOR_ROWS: usize = 256;

impl ProjectState {
    /// A project without events.
    pub(super) fn empty() -> Self {
        let (project, counted, reached) = (Project::default(), Default::default(), Reached::default());
        let (rising, weighed) = (None, Weight::default());
        Self {
            project,
            last: 0,
            external_ids: 0,
            complete: true,
            changed: false,
            folded: 0,
            counted,
            reached,
            rising,
            weighed,
            used: false,
        }
    }

    /// Publishes the floor for other threads.
    pub(super) fn publish_floor(&self, context: &PartitionContext, id: ProjectId) {
        if let Some(floor) = self.project.floor() {
            context.floors.set(id, floor);
        }
    }

    /// Takes a step in raising the floor, for the record at `position`. Returns whether the floor
    /// is raised.
    pub(super) fn step_floor(&mut self, day: Day, position: Position) -> bool {
        // A replay meets records that the checkpoint reflects. A record that raises nothing leaves
        // no trace, since the archive does not keep it.
        if position <= self.last || self.project.floor().is_some_and(|floor| day <= floor) {
            return true;
        }
        let rising = self.rising.get_or_insert_with(|| RisingFloor::new(day, position));
        if !self.project.raise_floor(rising, FLOOR_ROWS) {
            return false;
        }
        (self.rising, self.last, self.changed) = (None, position, true);
        true
    }

    /// Whether a floor is being raised. The state is then between two positions.
    pub(super) fn has_rising_floor(&self) -> bool {
        self.rising.is_some()
    }

    /// Returns the source of its records.
    pub(super) fn source<'s>(&self, store: &'s dyn Store, partition: u16, project: ProjectId) -> StoreSource<'s> {
        StoreSource { store, partition, project, complete: self.complete }
    }

    /// Updates the quotas that the project has reached. Returns whether they changed.
    pub(super) fn count(&mut self, context: &PartitionContext, id: ProjectId) -> bool {
        let counted = (self.project.rollups.group_numbers.len(), self.project.dictionary.counts);
        if counted == std::mem::replace(&mut self.counted, counted) {
            return false;
        }
        let reached = context.limits.of(id).reached(self.project.cardinality(&context.hasher));
        reached != std::mem::replace(&mut self.reached, reached)
    }

    /// Compares the project with its changed quotas.
    pub(super) fn recount(&mut self, context: &PartitionContext, id: ProjectId) {
        self.reached = context.limits.of(id).reached(self.project.cardinality(&context.hasher));
        context.limits.set(id, self.reached);
    }
}

/// Reads the state of a project.
pub(super) fn load(context: &PartitionContext, partition: u16, id: ProjectId) -> Result<ProjectState, Fault> {
    let meta: Option<ProjectMeta> = read_meta(&*context.store, &meta_key(partition, id))?;
    let mut project = Project::default();
    load_cells(&*context.store, partition, id, &mut project)?;
    let ProjectMeta { last, names, external_ids, floor } = meta.unwrap_or_default();
    project.restore_floor(floor);
    project.dictionary.counts = names;
    let reached = context.limits.of(id).reached(project.cardinality(&context.hasher));
    // Set before the version, which marks the project as loaded.
    context.limits.set(id, reached);
    let counted = (project.rollups.group_numbers.len(), names);
    project.versions.restore_last(last);
    let (complete, changed, folded, rising) = (meta.is_none(), false, 0, None);
    let (weighed, used) = (Weight::default(), false);
    let state = ProjectState { project, last, external_ids, complete, changed, folded, counted, reached, rising, weighed, used };
    state.publish_floor(context, id);
    context.versions.insert(id, state.project.versions.clone());
    Ok(state)
}
