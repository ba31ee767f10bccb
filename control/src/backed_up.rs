//! The control data of a cluster at one moment, for a backup that becomes the data directory of one
//! machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use headcount_common::{ControlError, LocalControlLog};
use headcount_domain::{OrganizationId, Position, ProjectId};
use headcount_storage::files::create_private_dir;

use super::journal::JournalOptions;
use super::state::{State, Tenant};
use super::{CONTROL_DIR, Erasure, ErasureEnd, ErasureStage, Registry, Result};

/// The control data of a cluster at one moment.
#[derive(Debug)]
pub struct ControlMoment {
    state: State,
    /// The position of the last record that the data reflect.
    pub applied: u64,
}

impl ControlMoment {
    /// The projects, without those in deletion.
    pub fn projects(&self) -> BTreeSet<ProjectId> {
        self.state.tenants.values().flat_map(|tenant| tenant.projects.keys().copied()).collect()
    }

    /// Whether an organization exists.
    pub fn has_organization(&self, organization: OrganizationId) -> bool {
        self.state.tenants.contains_key(&organization)
    }

    /// The erasures, including finished ones.
    pub fn erasures(&self) -> impl Iterator<Item = &Erasure> {
        self.state.erasures()
    }

    /// Returns the state for one machine whose log ends at an earlier moment.
    fn for_log(&self, log: &BackedUpLog<'_>) -> State {
        let mut state = self.state.clone();
        for (id, tenant) in &mut state.tenants {
            let former = log.moment.state.tenants.get(id);
            tenant.deletions = former.map(|former| deleted_since(former, tenant, log.projects)).unwrap_or_default();
            // The ids to erase are unknown, and no client got the answer that they are erased.
            tenant.erasures.retain(|_, erasure| !erasure.only_suppresses());
            for (number, erasure) in &mut tenant.erasures {
                log.fit(erasure, former.and_then(|former| former.erasures.get(number)));
            }
        }
        state
    }
}

/// The wanted projects that an organization had at the former moment, and has no longer.
fn deleted_since(former: &Tenant, now: &Tenant, wanted: &BTreeSet<ProjectId>) -> BTreeSet<ProjectId> {
    let is_deleted = |project: &&ProjectId| wanted.contains(project) && !now.projects.contains_key(project);
    former.projects.keys().filter(is_deleted).copied().collect()
}

/// The log of a backup, to which control data of a later moment are fitted.
///
/// The log has no events of identities whose erasure had begun at its moment, except events after
/// an opt-in. Such erasures are done. Erasures that began later are not done, and erase all events
/// of their identities in the log. The same goes for deletions of projects. Files that were copied
/// unchanged may have any identity, unless the published files were already without it at the
/// moment.
#[derive(Debug)]
pub struct BackedUpLog<'b> {
    /// The control data at the moment before which all events of the log were recorded.
    pub moment: &'b ControlMoment,
    /// The projects whose events the log has.
    pub projects: &'b BTreeSet<ProjectId>,
    /// The last position of the log.
    pub last: Position,
    /// The projects whose files were copied instead, after the moment. Each has the position up to
    /// which the files have its events, before all positions of the log.
    pub copied: &'b BTreeMap<ProjectId, Position>,
}

impl BackedUpLog<'_> {
    /// Fits an erasure to the log and the copied files. `former` is its value at the moment.
    fn fit(&self, erasure: &mut Erasure, former: Option<&Erasure>) {
        let former = former.filter(|former| former.has_begun());
        let until_in = |project| match self.copied.get(&project) {
            Some(_) if former.is_some_and(|former| former.stage_in(project) > ErasureStage::Begun) => 0,
            // Later events have other positions on the machine.
            Some(copied_until) => erasure.until_in(project).min(*copied_until),
            None if former.is_some() => 0,
            None => self.last,
        };
        let end = |project| {
            let until = until_in(project);
            ErasureEnd { project, until, stage: if until == 0 { ErasureStage::Gone } else { ErasureStage::Begun } }
        };
        erasure.ends = erasure.projects().map(end).collect();
        // Without projects, no identity had the ids, or they are not even suppressed any more.
        erasure.is_done = erasure.ends.iter().all(|end| end.stage == ErasureStage::Gone);
    }
}

impl Registry {
    /// Returns the current control data, including the records of other writers.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] if the log can't be read.
    pub fn moment(&self) -> Result<ControlMoment> {
        let mut change = self.begin_change()?;
        change.journal.refresh()?;
        change.catch_up()?;
        let state = change.state().clone();
        Ok(ControlMoment { state, applied: change.journal.next_position() - 1 })
    }

    /// Returns the records of a control log that lead to the state of a moment, for one machine
    /// whose log ends at an earlier moment. The audit logs are the current ones.
    ///
    /// # Errors
    /// Returns the same errors as [`Self::as_records`].
    pub fn records_for(&self, moment: &ControlMoment, log: &BackedUpLog<'_>) -> Result<Vec<Vec<u8>>> {
        self.records_of_state(&moment.for_log(log))
    }

    /// Creates control data in a data directory that has none.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn create_from(data_dir: &Path, records: &[Vec<u8>]) -> Result<Self> {
        let dir = data_dir.join(CONTROL_DIR).join("log");
        create_private_dir(&dir).map_err(|error| ControlError::io("create", &dir, error))?;
        LocalControlLog::open(&dir, JournalOptions::default().segment_bytes)?.append_all(records)?;
        Self::open(data_dir)
    }
}
