//! The erasures that are not done, and the projects that they concern.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use headcount_control::{Erasure, ErasureStage};
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::{OrganizationId, Position, ProjectId};

/// Adds the keys of an erasure that a project can have.
fn add_keys(erasure: &Erasure, project: ProjectId, keys: &mut ErasedKeys) {
    let until = erasure.until_in(project);
    erasure.users.iter().for_each(|user| keys.add(*user, until));
    let others = erasure.others.iter().filter(|(of, _)| *of == project);
    others.for_each(|(_, other)| keys.add(*other, until));
}

/// Returns the keys of erasures in the projects that `is_wanted` selects.
pub(crate) fn erased_keys_of(erasures: &[Erasure], is_wanted: impl Fn(ProjectId) -> bool) -> HashMap<ProjectId, ErasedKeys> {
    let mut keys: HashMap<ProjectId, ErasedKeys> = HashMap::new();
    for erasure in erasures {
        for project in erasure.projects().filter(|project| is_wanted(*project)) {
            add_keys(erasure, project, keys.entry(project).or_default());
        }
    }
    keys
}

/// The erasures that are not done.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    pub(crate) erasures: Vec<Erasure>,
    /// The keys to erase from the history of each project.
    pub(crate) keys: HashMap<ProjectId, Arc<ErasedKeys>>,
    /// The projects whose state may still have an erased identity, each with its number of begun
    /// erasures when the last of them began.
    pub(crate) stale: BTreeMap<ProjectId, u64>,
    pub(crate) begun: u64,
    /// The number of begun erasures of each project.
    pub(crate) begins: HashMap<ProjectId, u64>,
    /// The erasures that only suppress ids so far, each with the time when it was first seen.
    pub(crate) beginning: HashMap<(OrganizationId, u64), Stopwatch>,
    /// The number of changes of each project by erasures. An erasure counts when it begins, since
    /// the state is folded again, and when at most the log has the identity,
    /// since scans then read rewritten files.
    pub(crate) counted: HashMap<ProjectId, u64>,
    /// The number of these changes that answers do not reflect yet.
    pub(crate) pending: HashMap<ProjectId, u64>,
}

impl Unfinished {
    /// The numbers of the erasures that are at a stage in a project.
    pub(crate) fn numbers(&self, project: ProjectId, stage: ErasureStage) -> impl Iterator<Item = &Erasure> {
        let erasures = self.erasures.iter();
        erasures.filter(move |erasure| erasure.end_in(project).is_some_and(|end| end.stage == stage))
    }

    pub(crate) fn index(&mut self) {
        let keys = erased_keys_of(&self.erasures, |_| true);
        self.keys = keys.into_iter().map(|(project, keys)| (project, Arc::new(keys))).collect();
    }

    /// Records that the states of an erasure's projects may have the identity.
    fn note_begun(&mut self, erasure: &Erasure) {
        self.begun += 1;
        for project in erasure.projects() {
            self.stale.insert(project, self.begun);
            *self.begins.entry(project).or_default() += 1;
            *self.pending.entry(project).or_default() += 1;
        }
    }

    /// Follows the list of all erasures. Those that it did not know have begun now.
    pub(crate) fn replace(&mut self, all: &[Erasure], has_project: impl Fn(ProjectId) -> bool) {
        let is_unfinished = |erasure: &&Erasure| erasure.has_begun() && !erasure.is_done;
        let is_beginning = |erasure: &&Erasure| !erasure.has_begun() && !erasure.is_done;
        let (now, seen) = (Stopwatch::now(), std::mem::take(&mut self.beginning));
        let since = |erasure: (OrganizationId, u64)| (erasure, seen.get(&erasure).copied().unwrap_or(now));
        let known: HashSet<_> = self.erasures.iter().map(|erasure| (erasure.organization, erasure.number)).collect();
        self.erasures = all.iter().filter(is_unfinished).cloned().collect();
        for erasure in all.iter().filter(is_unfinished) {
            if !known.contains(&(erasure.organization, erasure.number)) {
                self.note_begun(erasure);
            }
        }
        let beginning = all.iter().filter(is_beginning).map(|erasure| since((erasure.organization, erasure.number)));
        self.beginning = beginning.collect();
        self.counted = HashMap::new();
        for erasure in all {
            for project in erasure.projects().filter(|project| has_project(*project)) {
                let changes = if erasure.stage_in(project) > ErasureStage::Begun { 2 } else { 1 };
                *self.counted.entry(project).or_default() += changes;
            }
        }
        self.pending.retain(|project, _| has_project(*project));
        self.index();
    }
}

/// The erasures that are at one stage in a project.
#[derive(Debug, Clone, Default)]
pub(crate) struct ErasuresAtStage {
    /// Their organization, if the project has any.
    pub(crate) organization: Option<OrganizationId>,
    pub(crate) numbers: Vec<u64>,
    /// The last position that any of their events can have.
    pub(crate) until: Position,
}
