use std::sync::Arc;

use super::error::ExternalIdsError;
use super::memtable::{Memtable, first_position};
use crate::sstable::{TableList, UncheckedTables};

/// The contents of an index at one moment, except for its active memtable, for readers on other threads. It is cheap to create. The tables
/// stay readable while it lives.
#[derive(Debug, Clone)]
pub struct ExternalIdsView {
    pub(super) frozen: Option<Arc<Memtable>>,
    pub(super) tables: TableList,
}

impl ExternalIdsView {
    /// The first position with this fingerprint, if any was known outside the active memtable.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`], [`ExternalIdsError::Io`].
    pub fn get(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        first_position(self.frozen.as_deref(), &self.tables, fingerprint)
    }

    /// Returns the tables, none of them checked. They stay while the view lives.
    #[must_use]
    pub fn unchecked_tables(&self) -> UncheckedTables {
        UncheckedTables::of(&self.tables)
    }
}
