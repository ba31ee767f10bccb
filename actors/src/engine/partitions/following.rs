//! Applies changes that other machines have made.

use std::sync::atomic::Ordering;

use headcount_control::RegistryError;

use super::Partitions;
use crate::feature::PropagateChange;

impl Partitions {
    /// Applies the changes of the control data by other machines up to now, with their consequences
    /// for the partitions on this machine. Returns the position of the last record.
    ///
    /// Blocking; asks the brokers.
    ///
    /// # Errors
    /// Returns a [`RegistryError`]: the control log can't be read.
    pub fn follow(&self) -> Result<u64, RegistryError> {
        self.registry().catch_up()?;
        self.follow_deletions()?;
        self.follow_erasures()?;
        let applied = self.registry().applied()?;
        // A change of this machine may have applied changes of other machines.
        if self.followed.swap(applied, Ordering::AcqRel) != applied {
            let quotas = self.ingest.quotas.replace_own(self.registry().own_quotas());
            self.ingest.apply_changes_soon(quotas, |_| true);
            self.features().iter().for_each(|feature| feature.control_changed());
        }
        Ok(applied)
    }

    /// Handles projects that other machines have deleted.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    fn follow_deletions(&self) -> Result<(), RegistryError> {
        if self.deleted.follow(self.registry())? {
            self.end_what_deleted_projects_have();
        }
        Ok(())
    }

    /// Handles changes of erasures by other machines and by this one.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(in crate::engine) fn follow_erasures(&self) -> Result<(), RegistryError> {
        // Done first: this durably marks that this machine may have data of them.
        self.follow_deletions()?;
        self.ingest.questions.erasures.follow(self.registry());
        Ok(())
    }

    /// Applies changes, at least up to a record of the control log, so that no answer has erased
    /// events. Returns whether that record is applied.
    ///
    /// # Errors
    /// Returns a [`RegistryError`].
    pub(in crate::engine) fn follow_until(&self, applied: u64) -> Result<bool, RegistryError> {
        if self.registry().applied()? < applied {
            self.follow()?;
        }
        self.follow_erasures()?;
        Ok(self.registry().applied()? >= applied)
    }

    pub(in crate::engine) fn end_what_deleted_projects_have(&self) {
        self.features().iter().for_each(|feature| feature.projects_deleted());
    }

    /// Applies the changes of a kind of documents by other nodes up to now. Returns the number of
    /// the last change. Blocking; asks the brokers.
    ///
    /// # Errors
    /// [`RegistryError::Storage`]: they can't be read, or not written here.
    pub fn follow_documents(&self, kind: &str) -> Result<u64, RegistryError> {
        self.ingest.features.of_kind(kind).map_or(Ok(0), |feature| Ok(feature.follow()?))
    }

    /// Makes each change of a kind of documents wait until `propagate` returns, which gets the
    /// number of the change, and waits until all other nodes that answer requests have applied it.
    /// Only the first call counts.
    pub fn propagate_documents_with(&self, kind: &str, propagate: PropagateChange) {
        if let Some(feature) = self.ingest.features.of_kind(kind) {
            feature.propagate_with(propagate);
        }
    }
}
