//! The projects that are being deleted.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_domain::ids::ProjectId;
use parking_lot::RwLock;

/// The deleted projects whose data may not yet be removed. All readers skip their events.
///
/// A project is in it once its deletion is durable in the control log, and until that of everything else is.
#[derive(Debug, Default)]
pub(crate) struct DeletedProjects {
    projects: RwLock<BTreeSet<ProjectId>>,
    /// Length of `projects`: almost always 0, so that most look-ups take no lock.
    count: AtomicUsize,
}

impl DeletedProjects {
    /// Creates the set of `projects`.
    pub(crate) fn new(projects: Vec<ProjectId>) -> Self {
        Self { count: AtomicUsize::new(projects.len()), projects: RwLock::new(projects.into_iter().collect()) }
    }

    /// Whether a project is being deleted.
    pub(crate) fn contains(&self, project: ProjectId) -> bool {
        self.count() > 0 && self.projects.read().contains(&project)
    }

    /// The number of them.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<ProjectId> {
        self.projects.read().iter().copied().collect()
    }

    /// Adds a project whose deletion is durable.
    pub(crate) fn add(&self, project: ProjectId) {
        let mut projects = self.projects.write();
        projects.insert(project);
        self.count.store(projects.len(), Ordering::Release);
    }

    /// Removes a project whose data is gone.
    pub(crate) fn remove(&self, project: ProjectId) {
        let mut projects = self.projects.write();
        projects.remove(&project);
        self.count.store(projects.len(), Ordering::Release);
    }
}
