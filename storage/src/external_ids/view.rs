use std::sync::Arc;

use super::error::ExternalIdsError;
use super::memtable::{Memtable, decode_position, first_position};
use crate::sstable::{MergeCursor, TableList, UncheckedTables};

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

    /// Visits the fingerprints that begin with `prefix`, each once with its first position, in no order.
    ///
    /// # Errors
    /// Those of `visit`; [`ExternalIdsError::Damaged`] and [`ExternalIdsError::Io`] as such.
    pub fn for_each<E: From<ExternalIdsError>>(
        &self,
        prefix: &[u8],
        mut visit: impl FnMut(u128, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        let frozen = self.frozen.as_deref();
        let recent = frozen.into_iter().flatten().filter(|(fingerprint, _)| fingerprint.to_be_bytes().starts_with(prefix));
        for (fingerprint, position) in recent {
            visit(*fingerprint, *position)?;
        }
        let mut pairs = MergeCursor::seek(&self.tables, prefix).map_err(ExternalIdsError::from)?;
        while pairs.advance().map_err(ExternalIdsError::from)? && pairs.key().starts_with(prefix) {
            let (Ok(key), Some(value)) = (pairs.key().try_into(), pairs.value()) else {
                return Err(ExternalIdsError::damaged("a fingerprint is too short, or has no position").into());
            };
            let (fingerprint, position) = (u128::from_be_bytes(key), decode_position(value)?);
            // The memtable has smaller positions.
            if frozen.is_none_or(|frozen| !frozen.contains_key(&fingerprint)) {
                visit(fingerprint, position)?;
            }
        }
        Ok(())
    }

    /// Returns the tables, none of them checked. They stay while the view lives.
    #[must_use]
    pub fn unchecked_tables(&self) -> UncheckedTables {
        UncheckedTables::of(&self.tables)
    }
}
