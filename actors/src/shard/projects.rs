//! The projects of a partition in memory, and their weights.

use std::collections::{HashMap, hash_map};

use headcount_domain::{Fault, ProjectId};

use super::memory_usage::Weight;
use super::partition_context::PartitionContext;
use super::project_state::{ProjectState, load};

/// Test builds compare the total with a new sum, up to this many projects.
const CHECKED: usize = 16;

/// The projects in memory, and the sum of their weights. [`Projects::weigh`] weighs only projects
/// that were accessed since the last call: of a hundred thousand projects, few are in use.
#[derive(Default)]
pub(super) struct Projects {
    states: HashMap<ProjectId, ProjectState>,
    /// The sum of the last weights.
    total: Weight,
    /// Projects whose weight may have changed. Some may be gone, or listed twice.
    used: Vec<ProjectId>,
}

impl Projects {
    /// The state of a project, loaded from the part `stored_as` of the store if it is not in
    /// memory.
    pub(super) fn load(&mut self, context: &PartitionContext, stored_as: u16, id: ProjectId) -> Result<&mut ProjectState, Fault> {
        let state = match self.states.entry(id) {
            hash_map::Entry::Occupied(entry) => entry.into_mut(),
            hash_map::Entry::Vacant(entry) => entry.insert(load(context, stored_as, id)?),
        };
        note(&mut self.used, id, state);
        Ok(state)
    }

    /// A project, if it is in memory.
    pub(super) fn get(&self, id: ProjectId) -> Option<&ProjectState> {
        self.states.get(&id)
    }

    /// A project, if it is in memory.
    pub(super) fn get_mut(&mut self, id: ProjectId) -> Option<&mut ProjectState> {
        let state = self.states.get_mut(&id)?;
        note(&mut self.used, id, state);
        Some(state)
    }

    /// Drops a project.
    pub(super) fn remove(&mut self, id: ProjectId) -> Option<ProjectState> {
        let state = self.states.remove(&id)?;
        self.total.subtract(state.weighed);
        Some(state)
    }

    /// All projects.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ProjectId, &ProjectState)> {
        self.states.iter().map(|(id, state)| (*id, state))
    }

    /// The projects that `wanted` selects.
    pub(super) fn select_mut(
        &mut self,
        wanted: impl Fn(&ProjectState) -> bool,
    ) -> impl Iterator<Item = (ProjectId, &mut ProjectState)> {
        let Self { states, used, .. } = self;
        states.iter_mut().filter(move |(_, state)| wanted(state)).map(|(id, state)| {
            note(used, *id, state);
            (*id, state)
        })
    }

    /// The projects that had something to evict when they were last weighed.
    pub(super) fn evictable_mut(&mut self) -> impl Iterator<Item = (ProjectId, &mut ProjectState)> {
        self.select_mut(|state| state.weighed.is_evictable())
    }

    /// The memory of all projects.
    pub(super) fn weigh(&mut self) -> Weight {
        for id in self.used.drain(..) {
            let Some(state) = self.states.get_mut(&id) else { continue };
            let now = Weight::of(&mut state.project);
            self.total.subtract(std::mem::replace(&mut state.weighed, now));
            self.total.add(now);
            state.used = false;
        }
        debug_assert!(self.states.len() > CHECKED || self.sum() == self.total, "a project was used and not noted");
        self.total
    }

    /// The memory of all projects, weighed one by one.
    fn sum(&mut self) -> Weight {
        let mut sum = Weight::default();
        self.states.values_mut().for_each(|state| sum.add(Weight::of(&mut state.project)));
        sum
    }
}

fn note(used: &mut Vec<ProjectId>, id: ProjectId, state: &mut ProjectState) {
    if !std::mem::replace(&mut state.used, true) {
        used.push(id);
    }
}
