//! Operations on the audit log.

use headcount_domain::{Instant, OrganizationId};

use super::{AuditPage, AuditQuery, Registry, RegistryError, Result};

impl Registry {
    /// Sets the time by which the age of entries is measured.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`] after an interrupted change.
    pub fn note_time(&self, known: Instant) -> Result<()> {
        self.begin_change()?.journal.note_time(known);
        Ok(())
    }

    /// Returns entries of an organization's audit log, newest first. Reads files, so async code
    /// must call it on a thread that may block.
    ///
    /// # Errors
    /// Returns [`RegistryError::NotFound`] if the organization doesn't exist;
    /// [`RegistryError::Invalid`] `starting_after` if that entry doesn't exist;
    /// [`RegistryError::Storage`].
    pub fn audit_log(&self, organization: OrganizationId, query: &AuditQuery, now: Instant) -> Result<AuditPage> {
        self.change(None, |change| {
            drop(self.tenant(organization)?);
            let page = change.journal.audit_page(organization, query, now)?;
            page.ok_or_else(|| RegistryError::invalid("starting_after", "must be the id of an entry of the audit log"))
        })
    }
}
