//! Which deleted projects one of several machines may still have something of.
//!
//! The control log says which projects are deleted, and when nothing of them is left where all machines reach it. What one machine has on its own disk, nobody else
//! knows: a checkpoint, tables, and fetched files of a partition that another one owns now. So each machine keeps a small file: up to which record of the control log it
//! has taken notice of deletions, and of which of those projects it may have something. A machine that was away goes on where it stopped.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use headcount_domain::ids::ProjectId;
use headcount_storage::files::{self, PRIVATE_FILE};
use serde::{Deserialize, Serialize};

use crate::checked_json;
use crate::partitions::partition_of;
use crate::registry::{ControlError, Registry, RegistryError};

const FILE_NAME: &str = "deletions.json";
const VERSION: u8 = 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct LocalRemains {
    path: PathBuf,
    noted: NotedDeletions,
    /// How many deletions the registry had applied since the start when it was looked at last.
    seen: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct NotedDeletions {
    /// The record of the control log up to which deletions are noted.
    until: u64,
    /// Projects of which something may be here.
    projects: BTreeSet<ProjectId>,
}

impl LocalRemains {
    /// Opens the file of a data directory, and notes the deletions that it does not have. Without the file, or if it is damaged, that is all there ever were.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub(crate) fn open(dir: &Path, registry: &Registry) -> Result<Self, RegistryError> {
        let path = dir.join(FILE_NAME);
        let bytes = files::read_if_there(&path).map_err(|error| failed("read", &path, error))?;
        let noted = bytes.and_then(|bytes| checked_json::decode(VERSION, &bytes)).unwrap_or_default();
        let mut remains = Self { path, noted, seen: registry.deletions_applied() };
        remains.read(registry)?;
        Ok(remains)
    }

    /// Notes deletions that were applied since the last time, durably. Returns whether there are any.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub(crate) fn note(&mut self, registry: &Registry) -> Result<bool, RegistryError> {
        let seen = registry.deletions_applied();
        if seen == self.seen {
            return Ok(false);
        }
        self.read(registry)?;
        self.seen = seen;
        Ok(true)
    }

    fn read(&mut self, registry: &Registry) -> Result<(), RegistryError> {
        let (deleted, until) = registry.deleted_after(self.noted.until)?;
        let mut noted = NotedDeletions { until, ..self.noted.clone() };
        noted.projects.extend(deleted);
        self.write(noted).map_err(|error| failed("write", &self.path, error))
    }

    /// Replaces the file first: what is noted in memory is on disk.
    fn write(&mut self, noted: NotedDeletions) -> io::Result<()> {
        files::write_atomically(&self.path, &checked_json::encode(VERSION, &noted)?, PRIVATE_FILE)?;
        self.noted = noted;
        Ok(())
    }

    /// The projects of which something may be here.
    pub(crate) fn projects(&self) -> impl Iterator<Item = ProjectId> {
        self.noted.projects.iter().copied()
    }

    /// Those of a partition.
    pub(crate) fn of_partition(&self, partition: u16) -> BTreeSet<ProjectId> {
        self.projects().filter(|project| partition_of(*project) == partition).collect()
    }

    /// Records that something of some projects may be here.
    pub(crate) fn add(&mut self, projects: &BTreeSet<ProjectId>) -> io::Result<()> {
        if projects.is_subset(&self.noted.projects) {
            return Ok(());
        }
        let all = self.noted.projects.union(projects).copied().collect();
        self.write(NotedDeletions { projects: all, ..self.noted.clone() })
    }

    /// Records that nothing of some projects is here.
    pub(crate) fn remove(&mut self, projects: &BTreeSet<ProjectId>) -> io::Result<()> {
        if self.noted.projects.is_disjoint(projects) {
            return Ok(());
        }
        let left = self.noted.projects.difference(projects).copied().collect();
        self.write(NotedDeletions { projects: left, ..self.noted.clone() })
    }
}

fn failed(doing: &'static str, path: &Path, source: io::Error) -> RegistryError {
    ControlError::Io { doing, path: path.to_owned(), source }.into()
}

#[cfg(test)]
mod tests {
    use headcount_domain::time::Instant;

    use super::*;
    use crate::registry::NewProject;

    const NOW: Instant = Instant(1_700_000_000_000);

    fn remaining(remains: &LocalRemains) -> Vec<ProjectId> {
        remains.projects().collect()
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
        let mut remains = open();
        assert_eq!(remaining(&remains), [first]);
        assert!(!remains.note(&registry).unwrap());
        remains.remove(&BTreeSet::from([first])).unwrap();
        assert_eq!(remaining(&open()), []);
        // One whose deletion has ended is noted all the same.
        registry.delete_project(organization, second, NOW).unwrap();
        registry.finish_deletion(second).unwrap();
        assert!(remains.note(&registry).unwrap());
        assert_eq!(remaining(&remains), [second]);
        registry.delete_project(organization, third, NOW).unwrap();
        let both = BTreeSet::from([second, third]).into_iter().collect::<Vec<_>>();
        assert_eq!(remaining(&open()), both);
        assert!(open().of_partition(partition_of(second)).contains(&second));
        // Without the file, all that ever were are.
        std::fs::write(dir.path().join(FILE_NAME), "{").unwrap();
        assert_eq!(remaining(&open()).len(), 3);
    }
}
