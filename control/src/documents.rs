//! Changes of documents, with their entries in the audit log. The documents themselves are not in
//! the control log.

use std::collections::BTreeMap;

use headcount_common::{ControlError, DocumentItem, DocumentSet};
use headcount_domain::OrganizationId;

use super::audit_entry::Audited;
use super::record::ControlRecord;
use super::{AuditAction, AuditTarget, Author, FieldChange, Registry, RegistryError, Result, TargetType};

/// A change of a document.
pub struct PlannedChange<T: DocumentItem> {
    /// The id of the document.
    pub id: T::Id,
    /// The organization that owns it.
    pub organization: OrganizationId,
    /// The new value; `None` to remove it.
    pub item: Option<T>,
    /// The action for the audit log, if the change has an entry.
    pub action: Option<AuditAction>,
    /// The fields that differ.
    pub changes: BTreeMap<String, FieldChange>,
}

/// Checks that there may be one more than `count` of these documents.
///
/// # Errors
/// [`RegistryError::Conflict`] `limit_reached`.
pub fn check_room(count: usize, most: usize, what: &str) -> Result<()> {
    match count < most {
        true => Ok(()),
        false => Err(RegistryError::conflict("limit_reached", format!("there are {most} {what}; there can be no more"))),
    }
}

impl Registry {
    /// Makes the change that `plan` returns for the documents that `follow` has read, with `put`,
    /// and notes it in the audit log before. `None` means no change. If another node's change comes
    /// first, `plan` is called again.
    ///
    /// # Errors
    /// The errors of the functions, and [`RegistryError::Storage`].
    pub fn change_document<T: DocumentItem>(
        &self,
        (documents, kind): (&DocumentSet<T>, TargetType),
        author: &Author,
        follow: impl Fn() -> Result<u64, ControlError>,
        plan: impl Fn() -> Result<Option<PlannedChange<T>>>,
        put: impl Fn(u64, &T::Id, Option<&T>) -> Result<bool>,
    ) -> Result<Option<T>> {
        let mut noted = None;
        let attempt = |expected| {
            let Some(PlannedChange { id, organization, item, action, changes }) = plan()? else {
                // Another node may have made the change just now, and wait for other nodes.
                documents.propagate(expected);
                return Ok(Some(None));
            };
            if let Some(action) = action.filter(|_| noted.as_ref() != Some(&changes)) {
                let target = AuditTarget { kind, id: id.to_string() };
                self.note_document_change(organization, target, action, changes.clone(), author)?;
                noted = Some(changes);
            }
            Ok(put(expected, &id, item.as_ref())?.then_some(item))
        };
        DocumentSet::<T>::attempt(follow, attempt)
    }

    /// Records in the audit log, durably, that a document is about to change.
    ///
    /// # Errors
    /// Returns [`RegistryError::Storage`].
    pub fn note_document_change(
        &self,
        organization: OrganizationId,
        target: AuditTarget,
        action: AuditAction,
        changes: BTreeMap<String, FieldChange>,
        author: &Author,
    ) -> Result<()> {
        let entry = Audited { action, target, changes }.by(author)?;
        let record = || ControlRecord::DocumentChanging { organization };
        self.change(Some(author), |change| change.record(record(), std::slice::from_ref(&entry)))
    }
}
