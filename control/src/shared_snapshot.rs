//! Snapshots that the machines of a cluster share.

use headcount_common::ControlError;

use super::{Registry, Result, snapshot};

impl Registry {
    /// Passes the pieces of a snapshot up to the last applied record to `take`. Changes go on
    /// meanwhile. Returns the position of that record. No piece has a line break.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`](super::RegistryError::Storage), and the errors of `take`.
    pub fn write_shared_snapshot(&self, take: &mut dyn FnMut(&[u8]) -> Result<(), ControlError>) -> Result<u64> {
        let (position, version, state) = {
            let change = self.begin_change()?;
            let state = change.state().clone();
            (change.journal.next_position() - 1, change.journal.log().record_version(), state)
        };
        take(&snapshot::encode(position, version, &state)?)?;
        for organization in state.tenants.keys() {
            let pieces = self.begin_change()?.journal.audit_pieces(*organization, position)?;
            pieces.iter().try_for_each(|piece| take(piece))?;
        }
        Ok(position)
    }

    /// The position of the oldest record that the control log has.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`](super::RegistryError::Storage) after an interrupted
    /// change.
    pub fn log_begins(&self) -> Result<u64> {
        Ok(self.begin_change()?.journal.log().first_position())
    }
}
