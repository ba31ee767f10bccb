//! The control data of several machines at one moment, for a backup that is a data directory of one machine.

use std::collections::BTreeSet;
use std::path::Path;

use headcount_domain::ids::{OrganizationId, ProjectId};
use headcount_storage::files::create_private_dir;

use super::control_log::LocalControlLog;
use super::error::{ControlError, RegistryError};
use super::journal::JournalOptions;
use super::model::{ErasedUntil, Erasure};
use super::state::{State, Tenant};
use super::{CONTROL_DIR, Registry};

/// The control data at one moment.
#[derive(Debug)]
pub(crate) struct ControlMoment {
    state: State,
    /// The last record that it has.
    pub(crate) applied: u64,
}

impl ControlMoment {
    /// The projects. Those that are being deleted are not among them.
    pub(crate) fn projects(&self) -> BTreeSet<ProjectId> {
        self.state.tenants.values().flat_map(|tenant| tenant.projects.keys().copied()).collect()
    }

    /// Whether there is an organization.
    pub(crate) fn has_organization(&self, organization: OrganizationId) -> bool {
        self.state.tenants.contains_key(&organization)
    }

    /// The erasures.
    pub(crate) fn erasures(&self) -> impl Iterator<Item = &Erasure> {
        self.state.erasures()
    }

    /// What of it no longer holds at a later moment, and makes events that were read meanwhile wrong.
    pub(crate) fn contradicted_by(&self, later: &Self) -> Option<String> {
        self.state.tenants.iter().find_map(|(id, tenant)| match later.state.tenants.get(id) {
            Some(later) => contradicted(tenant, later),
            None => Some(format!("{id} was removed")),
        })
    }

    /// The same, as one machine has it: without projects that are being deleted, and with erasures that are done. No event of the log that it gets is to be erased: those of erased identities do
    /// not come along, and those of identities that were opted in again stay.
    fn of_one_machine(&self) -> State {
        let mut state = self.state.clone();
        for tenant in state.tenants.values_mut() {
            tenant.deletions.clear();
            for erasure in tenant.erasures.values_mut() {
                (erasure.is_done, erasure.until) = (true, ErasedUntil::Everywhere(0));
            }
        }
        state
    }
}

fn contradicted(tenant: &Tenant, later: &Tenant) -> Option<String> {
    if let Some(project) = tenant.projects.keys().find(|project| !later.projects.contains_key(project)) {
        return Some(format!("the project {project} was deleted"));
    }
    let is_same = |erasure: &Erasure| {
        let same = |later: &Erasure| {
            let ids = later.users == erasure.users && later.others == erasure.others;
            ids && later.is_lifted == erasure.is_lifted && later.has_begun() == erasure.has_begun()
        };
        later.erasures.get(&erasure.number).is_some_and(same)
    };
    // One that was given up has erased nothing.
    let erasures = |tenant: &Tenant| tenant.erasures.values().filter(|erasure| !erasure.is_given_up()).count();
    let are_same = tenant.erasures.values().filter(|erasure| !erasure.is_given_up()).all(is_same);
    if erasures(tenant) == erasures(later) && are_same {
        return None;
    }
    Some("an identity was erased, or opted in again".to_owned())
}

impl Registry {
    /// Returns the control data with everything that others have recorded by now.
    ///
    /// # Errors
    /// [`RegistryError::Storage`] if the log can't be asked or read.
    pub(crate) fn moment(&self) -> Result<ControlMoment, RegistryError> {
        let mut change = self.begin_change()?;
        change.journal.refresh()?;
        change.catch_up()?;
        let state = change.state().clone();
        Ok(ControlMoment { state, applied: change.journal.next_position() - 1 })
    }

    /// Returns the records of a control log of one machine that lead to the state of a moment. The audit logs are those of now.
    ///
    /// # Errors
    /// As [`Self::as_records`].
    pub(crate) fn records_of(&self, moment: &ControlMoment) -> Result<Vec<Vec<u8>>, RegistryError> {
        self.records_of_state(&moment.of_one_machine())
    }

    /// Creates the control data of a data directory that has none.
    ///
    /// # Errors
    /// [`RegistryError::Storage`].
    pub(crate) fn create_from(data_dir: &Path, records: &[Vec<u8>]) -> Result<Self, RegistryError> {
        let dir = data_dir.join(CONTROL_DIR).join("log");
        create_private_dir(&dir).map_err(|error| ControlError::io("create", &dir, error))?;
        LocalControlLog::open(&dir, JournalOptions::default().segment_bytes)?.append_all(records)?;
        Self::open(data_dir)
    }
}
