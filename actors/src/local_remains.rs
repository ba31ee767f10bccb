//! The deleted projects of which this machine may still have data, and the projects of which it may
//! still have an erased identity.
//!
//! The control log has the deleted projects, and records when no shared data of them are left. But
//! only the machine itself knows the data on its own disk: a checkpoint, tables, and fetched files
//! of a partition that another machine owns now. So each machine keeps a small file with the last
//! record of the control log whose deletions and erasures it has noted, and the projects of which
//! it may have data. A machine that was away continues from there. A machine that owns every
//! partition has removed the data itself before the record.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use headcount_common::{ControlError, checked_json, partition_of};
use headcount_control::{ErasureStage, Registry, RegistryError, RemovedAfter};
use headcount_domain::ProjectId;
use headcount_storage::files::{self, PRIVATE_FILE};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

const FILE_NAME: &str = "deletions.json";
/// The version of the file.
const VERSION: u8 = 1;
/// The number of records after which the file is written even without deletions and erasures: fewer
/// than a cluster keeps.
const NOTED_EVERY: u64 = 256;

/// The file of a data directory.
#[derive(Debug, Default)]
pub(crate) struct LocalRemains {
    path: PathBuf,
    /// Never locked while the file is written, since tasks read it.
    noted: Mutex<NotedRemovals>,
    /// Locked while the file is written, and until the change is in memory.
    writing: Mutex<()>,
    /// The deletions and changes of erasures that the registry had applied at the last check.
    seen: Mutex<AppliedRemovals>,
}

/// The number of deletions, and of changes of erasures, that a registry has applied since the
/// start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AppliedRemovals {
    deletions: u64,
    erasures: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct NotedRemovals {
    /// The record of the control log up to which deletions are noted.
    until: u64,
    /// Projects of which this machine may have data.
    projects: BTreeSet<ProjectId>,
    /// Projects of which this machine may have an erased identity, each with the last record of the
    /// control log that erases one.
    #[serde(with = "pairs")]
    erased: BTreeMap<ProjectId, u64>,
}

impl LocalRemains {
    /// Opens the file of a data directory, and notes the deletions that it lacks. If the file is
    /// missing or damaged, these are all deletions ever.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(crate) fn open(dir: &Path, registry: &Registry) -> Result<Self, RegistryError> {
        let (path, noted) = read(dir)?;
        let seen = Mutex::new(applied(registry));
        let removed = registry.removed_after(noted.until)?;
        let remains = Self { path, noted: Mutex::new(noted), writing: Mutex::default(), seen };
        remains.add_removed(removed)?;
        Ok(remains)
    }

    /// Begins the file of a data directory after a record, unless it has all deletions and erasures
    /// up to there. `remove` first removes all data from the directory.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    #[cfg(feature = "cluster")]
    pub(crate) fn begin_after(dir: &Path, until: u64, remove: impl FnOnce() -> io::Result<()>) -> Result<(), RegistryError> {
        let (path, noted) = read(dir)?;
        if noted.until >= until {
            return Ok(());
        }
        let begun = remove().and_then(|()| write(&path, &NotedRemovals { until, ..NotedRemovals::default() }));
        begun.map_err(|error| failed("begin", &path, error))
    }

    /// Notes only the deletions and erasures that have not ended, on the machine that owned every
    /// partition until now.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(crate) fn note_under_way(&self, registry: &Registry) -> Result<(), RegistryError> {
        let erasures = registry.erasures();
        let ends = erasures.iter().filter(|erasure| !erasure.is_done).flat_map(|erasure| &erasure.ends);
        let begun = ends.filter(|end| end.stage == ErasureStage::Begun);
        let written = self.change(|noted| {
            let erased = begun.map(|end| (end.project, noted.until)).collect();
            Some(NotedRemovals { until: noted.until, projects: registry.deletions().into_iter().collect(), erased })
        });
        written.map_err(|error| failed("write", &self.path, error))
    }

    /// Returns the record after which to read deletions and erasures for [`Self::note`], and the
    /// registry's counts from before. Returns `None` if all are noted, and few records have come
    /// since, up to `last`.
    pub(crate) fn behind(&self, registry: &Registry, last: u64) -> Option<(u64, AppliedRemovals)> {
        let (applied, until) = (applied(registry), self.noted.lock().until);
        (applied != *self.seen.lock() || last >= until + NOTED_EVERY).then_some((until, applied))
    }

    /// Notes deletions and erasures, durably. Returns whether there are deletions.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(crate) fn note(&self, applied: AppliedRemovals, removed: RemovedAfter) -> Result<bool, RegistryError> {
        self.add_removed(removed)?;
        let before = std::mem::replace(&mut *self.seen.lock(), applied);
        Ok(before.deletions != applied.deletions)
    }

    fn add_removed(&self, removed: RemovedAfter) -> Result<(), RegistryError> {
        let RemovedAfter { deleted, erased, until } = removed;
        let written = self.change(|noted| {
            let mut noted = NotedRemovals { until, ..noted.clone() };
            noted.projects.extend(deleted);
            noted.erased.extend(erased);
            Some(noted)
        });
        written.map_err(|error| failed("write", &self.path, error))
    }

    /// Makes the change that `change` returns, if any. Replaces the file first, so that the notes
    /// in memory are always on disk.
    fn change(&self, change: impl FnOnce(&NotedRemovals) -> Option<NotedRemovals>) -> io::Result<()> {
        let _one = self.writing.lock();
        let changed = change(&self.noted.lock());
        if let Some(noted) = changed {
            write(&self.path, &noted)?;
            *self.noted.lock() = noted;
        }
        Ok(())
    }

    /// The projects of which this machine may have data.
    pub(crate) fn projects(&self) -> BTreeSet<ProjectId> {
        self.noted.lock().projects.clone()
    }

    /// The same, of one partition.
    pub(crate) fn of_partition(&self, partition: u16) -> BTreeSet<ProjectId> {
        let noted = self.noted.lock();
        noted.projects.iter().copied().filter(|project| partition_of(*project) == partition).collect()
    }

    /// Records that this machine may have data of some projects.
    pub(crate) fn add(&self, projects: &BTreeSet<ProjectId>) -> io::Result<()> {
        self.change(|noted| {
            let is_new = !projects.is_subset(&noted.projects);
            let all = || noted.projects.union(projects).copied().collect();
            is_new.then(|| NotedRemovals { projects: all(), ..noted.clone() })
        })
    }

    /// Records that this machine has no data of some projects.
    pub(crate) fn remove(&self, projects: &BTreeSet<ProjectId>) -> io::Result<()> {
        self.change(|noted| {
            let has_some = !noted.projects.is_disjoint(projects);
            let left = || noted.projects.difference(projects).copied().collect();
            has_some.then(|| NotedRemovals { projects: left(), ..noted.clone() })
        })
    }

    /// The projects of a partition of which this machine may have an erased identity, each with the
    /// number for [`Self::remove_erased`].
    pub(crate) fn erased_of(&self, partition: u16) -> BTreeMap<ProjectId, u64> {
        let noted = self.noted.lock();
        let theirs = noted.erased.iter().filter(|(project, _)| partition_of(**project) == partition);
        theirs.map(|(project, at)| (*project, *at)).collect()
    }

    /// All projects of which this machine may have an erased identity.
    pub(crate) fn erased(&self) -> BTreeSet<ProjectId> {
        self.noted.lock().erased.keys().copied().collect()
    }

    /// Records that this machine may have an erased identity of some projects.
    pub(crate) fn add_erased(&self, projects: &[ProjectId]) -> io::Result<()> {
        self.change(|noted| {
            let mut changed = noted.clone();
            for project in projects {
                changed.erased.entry(*project).or_insert(noted.until);
            }
            (changed.erased.len() > noted.erased.len()).then_some(changed)
        })
    }

    /// Records that this machine has no erased identity of some projects, except those whose
    /// erasure was noted since [`Self::erased_of`] returned these. Returns the exceptions.
    pub(crate) fn remove_erased(&self, projects: &BTreeMap<ProjectId, u64>) -> io::Result<Vec<ProjectId>> {
        let mut gone = Vec::new();
        self.change(|noted| {
            let mut changed = noted.clone();
            changed.erased.retain(|project, at| projects.get(project) != Some(at));
            gone.extend(noted.erased.keys().copied().filter(|project| !changed.erased.contains_key(project)));
            (!gone.is_empty()).then_some(changed)
        })?;
        Ok(gone)
    }
}

/// Reads the file of a data directory, and returns its path, too.
fn read(dir: &Path) -> Result<(PathBuf, NotedRemovals), RegistryError> {
    let path = dir.join(FILE_NAME);
    let bytes = files::read_if_there(&path).map_err(|error| failed("read", &path, error))?;
    Ok((path, bytes.and_then(|bytes| checked_json::decode(VERSION, &bytes)).unwrap_or_default()))
}

fn write(path: &Path, noted: &NotedRemovals) -> io::Result<()> {
    files::write_atomically(path, &checked_json::encode(VERSION, noted)?, PRIVATE_FILE)
}

fn applied(registry: &Registry) -> AppliedRemovals {
    AppliedRemovals { deletions: registry.deletions_applied(), erasures: registry.erasures_applied() }
}

/// A map as a list of pairs, since JSON keys can only be texts.
mod pairs {
    use std::collections::BTreeMap;

    use headcount_domain::ProjectId;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<ProjectId, u64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<ProjectId, u64>, D::Error> {
        Ok(Vec::<(ProjectId, u64)>::deserialize(deserializer)?.into_iter().collect())
    }
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> RegistryError {
    ControlError::Io { doing, path: path.to_owned(), source }.into()
}

#[cfg(test)]
mod tests {
    use headcount_domain::Instant;

    use super::*;
    use headcount_control::{Erasure, ErasureEnd, NewProject};

    const NOW: Instant = Instant(1_700_000_000_000);

    fn note(remains: &LocalRemains, registry: &Registry) -> bool {
        let Some((after, applied)) = remains.behind(registry, registry.applied().unwrap()) else { return false };
        remains.note(applied, registry.removed_after(after).unwrap()).unwrap()
    }

    fn remaining(remains: &LocalRemains) -> Vec<ProjectId> {
        remains.projects().into_iter().collect()
    }

    #[test]
    fn what_was_deleted_while_the_machine_was_away_is_noted_when_it_is_back() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let organization = registry.initialize(NOW).unwrap().organization_id;
        let new = || NewProject { name: "p".to_owned(), ..NewProject::default() };
        let [first, second, third] = [(); 3].map(|()| registry.create_project(organization, new(), NOW).unwrap().id);
        let open = || LocalRemains::open(dir.path(), &registry).unwrap();
        assert_eq!(remaining(&open()), []);
        registry.delete_project(organization, first, NOW).unwrap();
        let remains = open();
        assert_eq!(remaining(&remains), [first]);
        assert!(!note(&remains, &registry));
        remains.remove(&BTreeSet::from([first])).unwrap();
        assert_eq!(remaining(&open()), []);
        // A deletion that has ended is still noted.
        registry.delete_project(organization, second, NOW).unwrap();
        registry.finish_deletion(second).unwrap();
        assert!(note(&remains, &registry));
        assert_eq!(remaining(&remains), [second]);
        registry.delete_project(organization, third, NOW).unwrap();
        let both = BTreeSet::from([second, third]).into_iter().collect::<Vec<_>>();
        assert_eq!(remaining(&open()), both);
        assert!(open().of_partition(partition_of(second)).contains(&second));
        // Without the file, all deletions ever are noted.
        std::fs::write(dir.path().join(FILE_NAME), "{").unwrap();
        assert_eq!(remaining(&open()).len(), 3);
    }

    #[test]
    fn a_machine_that_ended_everything_itself_has_only_what_is_under_way() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let organization = registry.initialize(NOW).unwrap().organization_id;
        let new = || NewProject { name: "p".to_owned(), ..NewProject::default() };
        let [ended, under_way] = [(); 2].map(|()| registry.create_project(organization, new(), NOW).unwrap().id);
        for project in [ended, under_way] {
            registry.pin_calendar(&registry.policy(project).unwrap()).unwrap();
            registry.delete_project(organization, project, NOW).unwrap();
        }
        registry.finish_deletion(ended).unwrap();
        let remains = LocalRemains::open(dir.path(), &registry).unwrap();
        remains.note_under_way(&registry).unwrap();
        assert_eq!(remaining(&remains), [under_way]);
        // A restored directory may have an erasure that was lifted before it began there.
        let lifted = Erasure {
            number: 1,
            organization,
            users: Vec::new(),
            others: Vec::new(),
            emails: Vec::new(),
            ends: vec![ErasureEnd::at(9, under_way)],
            is_done: false,
            is_lifted: true,
        };
        registry.put_erasure(lifted).unwrap();
        remains.note_under_way(&registry).unwrap();
        assert_eq!(remains.erased(), BTreeSet::from([under_way]));
        assert_eq!(remaining(&LocalRemains::open(dir.path(), &registry).unwrap()), [under_way], "it is durable");
    }

    /// A node removes its copies if the control log has lost records that the file does not cover.
    #[cfg(feature = "cluster")]
    #[test]
    fn the_file_goes_on_without_deletions() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let organization = registry.initialize(NOW).unwrap().organization_id;
        let remains = LocalRemains::open(dir.path(), &registry).unwrap();
        let until = registry.applied().unwrap();
        assert!(remains.behind(&registry, until + NOTED_EVERY - 1).is_none());
        let new = || NewProject { name: "p".to_owned(), ..NewProject::default() };
        (0..NOTED_EVERY).for_each(|_| drop(registry.create_project(organization, new(), NOW).unwrap()));
        let until = until + NOTED_EVERY;
        assert!(!note(&remains, &registry));
        LocalRemains::begin_after(dir.path(), until, || panic!("it covers all records")).unwrap();
        let failed = || LocalRemains::begin_after(dir.path(), until + 1, || Err(io::ErrorKind::Other.into()));
        assert!(failed().is_err() && failed().is_err(), "it is repeated until it succeeds");
        LocalRemains::begin_after(dir.path(), until + 1, || Ok(())).unwrap();
        LocalRemains::begin_after(dir.path(), until + 1, || panic!("it is done")).unwrap();
    }

    #[test]
    fn an_erasure_is_noted_by_project_and_stays_noted_if_another_one_follows() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let organization = registry.initialize(NOW).unwrap().organization_id;
        let project = registry.projects(organization).unwrap()[0].id;
        let partition = partition_of(project);
        let erase = || {
            let (users, others, ends) = (Vec::new(), Vec::new(), vec![ErasureEnd::at(9, project)]);
            let erasure =
                Erasure { number: 0, organization, users, others, emails: Vec::new(), ends, is_done: false, is_lifted: false };
            registry.add_erasure(erasure, None).unwrap()
        };
        let remains = LocalRemains::open(dir.path(), &registry).unwrap();
        let first = erase();
        assert!(!note(&remains, &registry), "nothing is deleted");
        let noted = remains.erased_of(partition);
        assert_eq!(noted.keys().collect::<Vec<_>>(), [&project]);
        erase();
        note(&remains, &registry);
        assert_eq!(remains.remove_erased(&noted).unwrap(), [], "a later one was noted since");
        let noted = remains.erased_of(partition);
        assert_eq!(remains.remove_erased(&noted).unwrap(), [project]);
        // Neither its progress nor an opt-in restores it.
        registry.progress_erasures(organization, project, &[first.number], ErasureStage::Logged).unwrap();
        registry.lift_erasure(&first, None).unwrap();
        note(&remains, &registry);
        assert_eq!(remains.erased().len(), 0);
        assert_eq!(LocalRemains::open(dir.path(), &registry).unwrap().erased().len(), 0, "it is durable");
        remains.add_erased(&[project]).unwrap();
        assert_eq!(LocalRemains::open(dir.path(), &registry).unwrap().erased(), BTreeSet::from([project]));
    }
}
