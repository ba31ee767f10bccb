//! Operations on the erasures of identities.

use super::error::RegistryError;
use super::model::Erasure;
use super::record::ControlRecord;
use super::{ORGANIZATION_NOT_FOUND, Registry};

impl Registry {
    /// Records an erasure, durably, and returns it with its number.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`] if there is no such organization; [`RegistryError::Storage`].
    pub(crate) fn add_erasure(&self, erasure: Erasure) -> Result<Erasure, RegistryError> {
        let mut change = self.change()?;
        let last = {
            let state = change.state();
            let tenant = state.tenants.get(&erasure.organization).ok_or(ORGANIZATION_NOT_FOUND)?;
            tenant.erasures.last_key_value().map_or(0, |(number, _)| *number)
        };
        let erasure = Erasure { number: last + 1, ..erasure };
        change.commit_unaudited(ControlRecord::IdentityErased(erasure.clone()))?;
        Ok(erasure)
    }

    /// Records that nothing is left of an erased identity.
    ///
    /// # Errors
    /// [`RegistryError::Storage`].
    pub(crate) fn finish_erasure(&self, erasure: &Erasure) -> Result<(), RegistryError> {
        self.change_erasure(erasure, |erasure| erasure.is_done = true)
    }

    /// Records that events with the ids of an erased identity are recorded again.
    ///
    /// # Errors
    /// [`RegistryError::Storage`].
    pub(crate) fn lift_erasure(&self, erasure: &Erasure) -> Result<(), RegistryError> {
        self.change_erasure(erasure, |erasure| erasure.is_lifted = true)
    }

    /// Changes an erasure as it is now. Does nothing if its organization is gone.
    fn change_erasure(&self, erasure: &Erasure, change_it: impl FnOnce(&mut Erasure)) -> Result<(), RegistryError> {
        let mut change = self.change()?;
        let current = {
            let state = change.state();
            let tenant = state.tenants.get(&erasure.organization);
            tenant.and_then(|tenant| tenant.erasures.get(&erasure.number).cloned())
        };
        let Some(mut current) = current else { return Ok(()) };
        change_it(&mut current);
        change.commit_unaudited(ControlRecord::IdentityErased(current))
    }

    /// All erasures.
    pub(crate) fn erasures(&self) -> Vec<Erasure> {
        self.state().erasures().cloned().collect()
    }
}
