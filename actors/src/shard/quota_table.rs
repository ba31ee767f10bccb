//! The projects that have reached a quota. Written by the shards, read before events are logged.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use headcount_control::OwnQuotas;
use headcount_domain::{Mentions, ProjectId, Quota, Quotas, Reached};
use parking_lot::{Mutex, RwLock};

/// A question about one event: would it exceed a quota?
pub(crate) struct QuotaCheck {
    /// The index of the event in its batch.
    pub(crate) place: usize,
    /// The fingerprint of its idempotency key. A duplicate creates nothing.
    pub(crate) external_id: Option<u128>,
    pub(crate) mentions: Mentions,
}

/// The projects that have reached a quota, and the number of events that quotas refused.
#[derive(Debug, Default)]
pub(crate) struct QuotaTable {
    /// The quotas of projects without their own.
    quotas: Quotas,
    own: RwLock<HashMap<ProjectId, OwnQuotas>>,
    /// Number of projects in the table. It is almost always 0, so most events only read this.
    count: AtomicUsize,
    projects: Mutex<HashMap<ProjectId, Reached>>,
    refused: [AtomicU64; Quota::ALL.len()],
}

impl QuotaTable {
    /// Creates a table with the default quotas, and those of projects that have their own.
    pub(crate) fn new(quotas: Quotas, own: HashMap<ProjectId, OwnQuotas>) -> Self {
        Self { quotas, own: RwLock::new(own), ..Self::default() }
    }

    /// Whether no project is limited, whatever its own quotas.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.quotas == Quotas::UNLIMITED
    }

    /// The quotas of a project.
    pub(crate) fn of(&self, project: ProjectId) -> Quotas {
        if self.is_unlimited() {
            return self.quotas;
        }
        self.own.read().get(&project).map_or(self.quotas, |own| own.over(self.quotas))
    }

    /// Replaces the projects' own quotas. Returns the projects whose quotas have changed.
    pub(crate) fn replace_own(&self, own: HashMap<ProjectId, OwnQuotas>) -> Vec<ProjectId> {
        let mut known = self.own.write();
        let both = known.keys().chain(own.keys());
        let mut changed: Vec<_> = both.filter(|project| known.get(project) != own.get(project)).copied().collect();
        changed.sort_unstable();
        changed.dedup();
        *known = own;
        changed
    }

    /// Sets a project's own quotas.
    pub(crate) fn set_own(&self, project: ProjectId, quotas: OwnQuotas) {
        let mut own = self.own.write();
        if quotas == OwnQuotas::default() {
            own.remove(&project);
        } else {
            own.insert(project, quotas);
        }
    }

    /// Forgets a deleted project.
    pub(crate) fn forget(&self, project: ProjectId) {
        self.set_own(project, OwnQuotas::default());
        self.set(project, Reached::default());
    }

    /// Sets the quotas that a project has reached.
    pub(crate) fn set(&self, project: ProjectId, reached: Reached) {
        let mut projects = self.projects.lock();
        if reached.is_empty() {
            projects.remove(&project);
        } else {
            projects.insert(project, reached);
        }
        self.count.store(projects.len(), Ordering::Release);
    }

    /// Forgets the reached quotas of some projects.
    pub(super) fn forget_reached(&self, is_meant: impl Fn(ProjectId) -> bool) {
        let mut projects = self.projects.lock();
        projects.retain(|project, _| !is_meant(*project));
        self.count.store(projects.len(), Ordering::Release);
    }

    /// The quotas that a project has reached; none if it was not loaded since the start.
    pub(crate) fn reached(&self, project: ProjectId) -> Reached {
        if self.count.load(Ordering::Acquire) == 0 {
            return Reached::default();
        }
        self.projects.lock().get(&project).copied().unwrap_or_default()
    }

    /// Number of loaded projects that have reached a quota.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts an event that was refused.
    pub(crate) fn count_refusal(&self, quota: Quota) {
        self.refused[quota as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Number of refused events since the start, by quota.
    pub(crate) fn refusals(&self) -> [(Quota, u64); Quota::ALL.len()] {
        Quota::ALL.map(|quota| (quota, self.refused[quota as usize].load(Ordering::Relaxed)))
    }
}
