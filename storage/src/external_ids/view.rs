use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use super::error::ExternalIdsError;
use super::memtable::{Memtable, decode_entry, first_position};
use crate::sstable::{MergeCursor, TableList, UncheckedTables};

/// The contents of an index at one moment, without its active memtable, for readers on other
/// threads. It is cheap to create. Its tables stay readable while it lives.
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

    /// Visits the fingerprints that begin with `prefix`, each once with its first position, in any
    /// order.
    ///
    /// # Errors
    /// The errors of `visit`; [`ExternalIdsError::Damaged`] and [`ExternalIdsError::Io`].
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
            let (fingerprint, position) = decode_entry(pairs.key(), pairs.value())?;
            // The memtable has smaller positions.
            if frozen.is_none_or(|frozen| !frozen.contains_key(&fingerprint)) {
                visit(fingerprint, position)?;
            }
        }
        Ok(())
    }

    /// Returns all fingerprints with their first positions, in order.
    ///
    /// # Errors
    /// Same as [`ExternalIdsView::get`].
    pub fn entries(&self) -> Result<ExternalIdEntries<'_>, ExternalIdsError> {
        let mut unwritten: Vec<(u128, u64)> = self
            .frozen
            .iter()
            .flat_map(|frozen| frozen.iter())
            .map(|(fingerprint, position)| (*fingerprint, *position))
            .collect();
        unwritten.sort_unstable();
        let mut entries = ExternalIdEntries {
            unwritten: unwritten.into_iter().peekable(),
            tables: MergeCursor::seek(&self.tables, &[])?,
            next: None,
        };
        entries.advance()?;
        Ok(entries)
    }

    /// Returns all tables, unchecked. They exist while the view lives.
    pub fn unchecked_tables(&self) -> UncheckedTables {
        UncheckedTables::of(&self.tables)
    }
}

/// The fingerprints of a view, in order.
pub struct ExternalIdEntries<'v> {
    unwritten: Peekable<IntoIter<(u128, u64)>>,
    tables: MergeCursor<'v>,
    /// The next entry of the tables.
    next: Option<(u128, u64)>,
}

impl ExternalIdEntries<'_> {
    fn advance(&mut self) -> Result<(), ExternalIdsError> {
        self.next = match self.tables.advance()? {
            true => Some(decode_entry(self.tables.key(), self.tables.value())?),
            false => None,
        };
        Ok(())
    }

    /// The next fingerprint, with its first position.
    ///
    /// # Errors
    /// Same as [`ExternalIdsView::get`].
    #[expect(clippy::should_implement_trait, reason = "it can fail")]
    pub fn next(&mut self) -> Result<Option<(u128, u64)>, ExternalIdsError> {
        let unwritten = self.unwritten.peek().copied();
        let Some(written) = self.next.filter(|written| unwritten.is_none_or(|unwritten| written.0 <= unwritten.0)) else {
            return Ok(self.unwritten.next());
        };
        self.advance()?;
        // If a fingerprint is in both, the frozen memtable has the smaller position.
        match unwritten.filter(|unwritten| unwritten.0 == written.0) {
            Some(_) => Ok(self.unwritten.next()),
            None => Ok(Some(written)),
        }
    }
}
