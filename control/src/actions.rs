//! Operations on the ledger of Actions.

use headcount_domain::OrganizationId;

use super::{ActionsPage, ActionsQuery, Registry, RegistryError, Result};

impl Registry {
    /// Returns entries of the ledger of an organization, newest first, and its balance at the same
    /// moment.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`]; [`RegistryError::Invalid`] `starting_after` if that
    /// entry doesn't exist.
    pub fn actions(&self, organization: OrganizationId, query: &ActionsQuery) -> Result<ActionsPage> {
        let tenant = self.tenant(organization)?;
        let mut entries = tenant.actions.iter().rev();
        if let Some(id) = &query.starting_after
            && !entries.any(|entry| entry.id == *id)
        {
            return Err(RegistryError::invalid("starting_after", "must be the id of an entry of the ledger"));
        }
        let shown = entries.by_ref().take(query.limit).cloned().collect();
        let truncated = entries.next().is_some();
        Ok(ActionsPage { entries: shown, truncated, balance: tenant.organization.actions_balance })
    }
}
