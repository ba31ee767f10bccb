//! Audit entries about company profiles, which are files of their own.

use std::collections::BTreeMap;

use headcount_domain::ids::OrganizationId;

use super::Registry;
use super::audit_entry::{AuditTarget, Audited, Author, FieldChange};
use super::error::RegistryError;
use super::ids::CompanyProfileId;
use super::names::{AuditAction, TargetType};
use super::record::ControlRecord;

impl Registry {
    /// Records in the audit log, durably, that a company profile is about to change.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn note_profile_change(
        &self,
        organization: OrganizationId,
        id: &CompanyProfileId,
        action: AuditAction,
        changes: BTreeMap<String, FieldChange>,
        author: &Author,
    ) -> Result<(), RegistryError> {
        let target = AuditTarget { kind: TargetType::CompanyProfile, id: id.to_string() };
        let entry = Audited { action, target, changes }.by(author)?;
        self.change(Some(author), |change| {
            change.record(ControlRecord::CompanyProfileChanging { organization }, std::slice::from_ref(&entry))
        })
    }
}
