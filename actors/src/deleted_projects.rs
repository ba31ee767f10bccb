//! The projects in deletion.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use headcount_common::partition_of;
use headcount_control::{Registry, RegistryError};
use headcount_domain::ProjectId;
use parking_lot::{Mutex, RwLock};

use crate::local_remains::LocalRemains;

/// The deleted projects whose data may not be removed yet. All readers skip their events.
///
/// A project is in this set from when its deletion is durable in the control log, until the removal
/// of all other data is, and while this machine may have data of it.
#[derive(Debug, Default)]
pub(crate) struct DeletedProjects {
    projects: RwLock<BTreeSet<ProjectId>>,
    /// Length of `projects`. It is almost always 0, so most lookups take no lock.
    count: AtomicUsize,
    /// The data that this machine may have.
    remains: LocalRemains,
    /// Locked while `projects` are computed from the remaining data.
    replacing: Mutex<()>,
    /// Locked while the control data are followed.
    following: Mutex<()>,
}

impl DeletedProjects {
    /// Creates the set of `projects`, for data that are only read.
    pub(crate) fn new(projects: Vec<ProjectId>) -> Self {
        let count = AtomicUsize::new(projects.len());
        Self { count, projects: RwLock::new(projects.into_iter().collect()), ..Self::default() }
    }

    /// Creates the set of a machine with these data.
    pub(crate) fn of(remains: LocalRemains, registry: &Registry) -> Self {
        let deleted = Self { remains, ..Self::default() };
        deleted.replace(registry);
        deleted
    }

    /// Whether a project is being deleted.
    pub(crate) fn contains(&self, project: ProjectId) -> bool {
        self.count() > 0 && self.projects.read().contains(&project)
    }

    /// The number of projects.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// All projects.
    pub(crate) fn all(&self) -> Vec<ProjectId> {
        self.projects.read().iter().copied().collect()
    }

    /// Adds a project whose deletion is durable.
    pub(crate) fn add(&self, project: ProjectId) {
        let mut projects = self.projects.write();
        projects.insert(project);
        self.count.store(projects.len(), Ordering::Release);
    }

    /// Removes a project whose data are gone.
    pub(crate) fn remove(&self, project: ProjectId) {
        let _nobody_replaces_all = self.replacing.lock();
        let mut projects = self.projects.write();
        projects.remove(&project);
        self.count.store(projects.len(), Ordering::Release);
    }

    /// Follows the changes of the control data. On return, it is durable that
    /// this machine has to remove its data of the deleted projects. Returns whether there are new
    /// ones.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(crate) fn follow(&self, registry: &Registry) -> Result<bool, RegistryError> {
        let _one_after_the_other = self.following.lock();
        let has_new = match self.remains.behind(registry, registry.applied()?) {
            None => false,
            Some((after, applied)) => self.remains.note(applied, registry.removed_after(after)?)?,
        };
        if has_new || self.count() > 0 {
            self.replace(registry);
        }
        Ok(has_new)
    }

    fn replace(&self, registry: &Registry) {
        let _one_after_the_other = self.replacing.lock();
        let all: BTreeSet<ProjectId> = registry.deletions().into_iter().chain(self.remains.projects()).collect();
        let mut projects = self.projects.write();
        *projects = all;
        self.count.store(projects.len(), Ordering::Release);
    }

    /// The projects of a partition of which this machine may have data.
    pub(crate) fn remaining_of(&self, partition: u16) -> BTreeSet<ProjectId> {
        if self.count() > 0 { self.remains.of_partition(partition) } else { BTreeSet::new() }
    }

    /// Durably records that this machine may have data again of the projects of a partition whose
    /// deletion has not ended.
    pub(crate) fn note_again(&self, partition: u16) -> io::Result<()> {
        if self.count() == 0 {
            return Ok(());
        }
        // Projects found here must not be left out meanwhile.
        let _nobody_replaces_all = self.replacing.lock();
        let projects = self.projects.read().iter().copied().filter(|project| partition_of(*project) == partition).collect();
        self.remains.add(&projects)
    }

    /// Durably records that this machine has no data of some projects, and can't get any again.
    pub(crate) fn removed_here(&self, projects: &BTreeSet<ProjectId>) -> io::Result<()> {
        self.remains.remove(projects)
    }

    /// All projects of which this machine may have an erased identity.
    pub(crate) fn with_erased(&self) -> BTreeSet<ProjectId> {
        self.remains.erased()
    }

    /// The same of one partition, each with the number for [`Self::erased_here`].
    pub(crate) fn with_erased_of(&self, partition: u16) -> BTreeMap<ProjectId, u64> {
        self.remains.erased_of(partition)
    }

    /// Durably records that this machine may have an erased identity of some projects again.
    pub(crate) fn note_erased_again(&self, projects: &[ProjectId]) -> io::Result<()> {
        self.remains.add_erased(projects)
    }

    /// Durably records that this machine has no erased identity of some projects, except those with
    /// a later erasure. Returns these.
    pub(crate) fn erased_here(&self, projects: &BTreeMap<ProjectId, u64>) -> io::Result<Vec<ProjectId>> {
        self.remains.remove_erased(projects)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use headcount_domain::Instant;
    use headcount_storage::files::switch::Switch;

    use super::*;

    /// A task that takes a partition over asks for the data to remove.
    #[test]
    fn nobody_who_asks_what_remains_waits_for_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let now = Instant(1_700_000_000_000);
        let keys = registry.initialize(now).unwrap();
        let deleted = DeletedProjects::of(LocalRemains::open(dir.path(), &registry).unwrap(), &registry);
        registry.delete_project(keys.organization_id, keys.project_id, now).unwrap();
        let ((begins, has_begun), (goes_on, may_go_on)) = (channel(), channel::<()>());
        let may_go_on = Mutex::new(Some(may_go_on));
        let switch = Switch::watch(dir.path(), move |_, path| {
            let is_noted = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("deletions.json"));
            if is_noted && let Some(may_go_on) = may_go_on.lock().take() {
                begins.send(()).unwrap();
                may_go_on.recv_timeout(Duration::from_secs(30)).unwrap();
            }
        });
        let partition = partition_of(keys.project_id);
        thread::scope(|scope| {
            let noting = scope.spawn(|| deleted.follow(&registry).unwrap());
            has_begun.recv_timeout(Duration::from_secs(30)).unwrap();
            let (asked, was_answered) = channel();
            let deleted = &deleted;
            scope.spawn(move || asked.send((deleted.with_erased_of(partition), deleted.with_erased())).unwrap());
            let answer = was_answered.recv_timeout(Duration::from_secs(10));
            goes_on.send(()).unwrap();
            assert_eq!(answer.unwrap(), (BTreeMap::new(), BTreeSet::new()));
            assert!(noting.join().unwrap());
        });
        drop(switch);
        assert_eq!(deleted.remaining_of(partition), BTreeSet::from([keys.project_id]));
    }
}
