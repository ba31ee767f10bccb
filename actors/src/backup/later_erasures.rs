//! Restores a backup, with the later erasures of the data directory that the backup was made from.
//!
//! The restored directory has the same events up to the last position of the backup, so the keyed
//! hashes of an erasure match the same people in both. The erasures keep their numbers, since
//! privacy requests refer to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use headcount_common::checked_json;
use headcount_common::local::{item_names, kind_dir};
use headcount_control::{Erasure, ErasureEnd, Registry};
use headcount_domain::{OrganizationId, Position, ProjectId};
use headcount_storage::backup::{Backup, restore_with};
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, read, write_atomically};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use serde::Deserialize;

use super::error::RestoreFailure;

const KEY_NAME: &str = "keys/hash.key";
/// The kind of documents that refer to erasures: privacy requests.
const REQUESTS: &str = "privacy";

/// The field of a privacy request that a restore needs.
#[derive(Deserialize)]
struct OfOrganization {
    organization: OrganizationId,
}

/// The erasures and requests taken into a restored data directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TakenErasures {
    /// The number of erasures that the backup lacks.
    pub erasures: u64,
    /// The number of erasures of the backup that were lifted since: events of these people are
    /// recorded again.
    pub opt_ins: u64,
    /// The number of privacy requests.
    pub requests: u64,
}

/// A data directory with later erasures. It stays locked.
#[derive(Debug)]
pub(super) struct LaterErasures {
    dir: PathBuf,
    registry: Registry,
    _lock: DirLock,
}

impl LaterErasures {
    /// Opens a data directory that no process has open.
    pub(super) fn open(dir: &Path) -> Result<Self, RestoreFailure> {
        for missing in ["FORMAT", KEY_NAME] {
            if !dir.join(missing).exists() {
                return Err(RestoreFailure::NoDirectory { dir: dir.to_owned(), missing });
            }
        }
        let lock = DirLock::acquire(dir)?;
        Format::open(dir)?;
        Ok(Self { dir: dir.to_owned(), registry: Registry::open(dir)?, _lock: lock })
    }

    /// Checks that the hash key equals the one in the file `theirs`. With another key the erasures
    /// would match no person.
    pub(super) fn check_key(&self, theirs: &Path) -> Result<(), RestoreFailure> {
        let own = self.dir.join(KEY_NAME);
        let key = |path: &Path| read(path).map_err(RestoreFailure::io("read", path));
        if key(&own)? == key(theirs)? { Ok(()) } else { Err(RestoreFailure::OtherKey { dir: self.dir.clone() }) }
    }

    /// Takes everything into a restored directory whose events end at `last`, durably.
    pub(super) fn take_into(&self, restored: &Path, last: Position) -> Result<TakenErasures, RestoreFailure> {
        let registry = Registry::open(restored)?;
        let organizations = self.organizations(&registry)?;
        let mut taken = TakenErasures::default();
        let known = registry.erasures().into_iter().filter(|known| !known.only_suppresses());
        let known: BTreeMap<_, _> = known.map(|known| ((known.organization, known.number), known)).collect();
        for later in self.registry.erasures() {
            // An attempt that has not begun, or was given up, erases nothing.
            if !organizations.contains(&later.organization) || later.only_suppresses() || later.ids() == 0 {
                continue;
            }
            match known.get(&(later.organization, later.number)) {
                None => {
                    registry.put_erasure(fitted(&registry, later, last)?)?;
                    taken.erasures += 1;
                }
                Some(known) if !is_same(known, &later) => {
                    let what = format!("erasure {}", known.number);
                    return Err(RestoreFailure::Diverged { organization: known.organization, what });
                }
                Some(known) if later.is_lifted && !known.is_lifted => {
                    registry.lift_erasure(known, None)?;
                    taken.opt_ins += 1;
                }
                Some(_) => {}
            }
        }
        taken.requests = self.take_requests(restored, &organizations)?;
        Ok(taken)
    }

    /// Returns the organizations of a restored directory that this directory has, too. An
    /// organization deleted since keeps no erasures.
    fn organizations(&self, restored: &Registry) -> Result<BTreeSet<OrganizationId>, RestoreFailure> {
        let own: BTreeMap<_, _> = self.registry.organizations().into_iter().map(|own| (own.id, own.created_at)).collect();
        let mut both = BTreeSet::new();
        for theirs in restored.organizations() {
            match own.get(&theirs.id) {
                Some(created_at) if *created_at != theirs.created_at => {
                    let what = "the time of its creation".to_owned();
                    return Err(RestoreFailure::Diverged { organization: theirs.id, what });
                }
                Some(_) => drop(both.insert(theirs.id)),
                None => {}
            }
        }
        Ok(both)
    }

    fn take_requests(&self, restored: &Path, organizations: &BTreeSet<OrganizationId>) -> Result<u64, RestoreFailure> {
        let (from, to) = (kind_dir(&self.dir, REQUESTS), kind_dir(restored, REQUESTS));
        create_private_dir(&to).map_err(RestoreFailure::io("write", &to))?;
        let mut taken = 0;
        for name in item_names(&from).map_err(RestoreFailure::io("read", &from))? {
            let bytes = read(&from.join(&name)).map_err(RestoreFailure::io("read", &from))?;
            match checked_json::decode::<OfOrganization>(1, &bytes) {
                Some(request) if organizations.contains(&request.organization) => {
                    write_atomically(&to.join(&name), &bytes, PRIVATE_FILE).map_err(RestoreFailure::io("write", &to))?;
                    taken += 1;
                }
                Some(_) => {}
                None => tracing::error!(path = %from.display(), name, "the damaged file of a privacy request is left out"),
            }
        }
        Ok(taken)
    }
}

/// Whether an erasure of a backup equals a later one of its data directory. Erasures from another
/// directory lack the ids of deleted projects.
fn is_same(known: &Erasure, later: &Erasure) -> bool {
    let is_known = known.others.iter().all(|other| later.others.contains(other));
    is_known && known.users == later.users && known.emails == later.emails
}

/// Returns an erasure as the restored directory needs it: unfinished, and covering all of its
/// events, since it began after the backup. It applies to all projects, even if some had lost the
/// identity before: the first start builds every state again in any case.
fn fitted(registry: &Registry, later: Erasure, last: Position) -> Result<Erasure, RestoreFailure> {
    let theirs: BTreeSet<ProjectId> = registry.projects(later.organization)?.iter().map(|project| project.id).collect();
    let others = later.others.iter().filter(|(project, _)| theirs.contains(project)).copied().collect();
    let ends: Vec<ErasureEnd> = theirs.into_iter().map(|project| ErasureEnd::at(last, project)).collect();
    Ok(Erasure { is_done: ends.is_empty(), others, ends, ..later })
}

/// Restores `backup` into `data_dir`, which must be empty or not exist.
///
/// `erasures_from` is the current data directory that the backup was made from. Its erasures,
/// opt-ins and privacy requests are taken into the restored one before that becomes a data
/// directory. The first start finishes the erasures before it answers. Returns what was taken.
///
/// # Errors
/// See [`RestoreFailure`].
pub fn restore(backup: &Backup, data_dir: &Path, erasures_from: Option<&Path>) -> Result<Option<TakenErasures>, RestoreFailure> {
    let Some(from) = erasures_from else {
        headcount_storage::backup::restore(backup, data_dir)?;
        return Ok(None);
    };
    let later = LaterErasures::open(from)?;
    later.check_key(&backup.path("keys/hash.key"))?;
    restore_with(backup, data_dir, |dir| later.take_into(dir, backup.manifest().last_position())).map(Some)
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Instant, RecordKey};

    use super::*;

    #[test]
    fn an_erasure_that_a_backup_lacks_erases_all_events_of_the_backup() {
        let dir = tempfile::tempdir().unwrap();
        let registry = Registry::open(dir.path()).unwrap();
        let organization = registry.initialize(Instant(1_700_000_000_000)).unwrap().organization_id;
        // One case is a server restored from a backup of a cluster, the other a server with fewer
        // events.
        let project = registry.projects(organization).unwrap()[0].id;
        for ends in [Vec::new(), vec![ErasureEnd::at(950, project)]] {
            let (users, others) = (vec![RecordKey(7)], Vec::new());
            let later =
                Erasure { number: 3, organization, users, others, emails: Vec::new(), ends, is_done: true, is_lifted: false };
            let fitted = fitted(&registry, later, 1_000).unwrap();
            assert_eq!((fitted.ends, fitted.is_done), (vec![ErasureEnd::at(1_000, project)], false));
        }
    }
}
