//! Reads whole tables, to find damage before a query does.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::error::{Result, TableError};
use super::reader::{Table, TableCursor};
use crate::pace::{self, Pace};
use crate::parallel::check_each;
use parking_lot::Mutex;

/// Tables that have not been read since they were opened. A merge reads and checks its tables.
#[derive(Debug)]
pub struct UncheckedTables(Vec<Weak<Table>>);

/// Receives the pairs of tables.
pub type PairVisitor<'v> = dyn FnMut(&str, &[u8], Option<&[u8]>) -> ControlFlow<()> + 'v;

/// A damaged table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedTable {
    /// The name of its file, without the directory.
    pub file: String,
    /// The damage.
    pub what: String,
}

impl UncheckedTables {
    /// All of `tables`.
    pub(crate) fn of(tables: &[Arc<Table>]) -> Self {
        Self(tables.iter().map(Arc::downgrade).collect())
    }

    /// Checks tables until `deadline`, on all processors, and returns the unchecked ones. Without a
    /// deadline it checks all.
    pub(crate) fn check_until(tables: &[Arc<Table>], deadline: Option<Instant>) -> Result<Self> {
        let left = Mutex::new(Vec::new());
        check_each(tables, TableError::damaged, |table| {
            if !table.verify(&mut pace::until(deadline))? {
                left.lock().push(Arc::downgrade(table));
            }
            Ok(())
        })?;
        Ok(Self(left.into_inner()))
    }

    /// Whether all tables were checked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads and checks the tables, unless `pace` stops it.
    ///
    /// # Errors
    /// [`TableError::Damaged`] if something is missing or changed, [`TableError::Io`].
    pub fn check(&self, pace: &mut Pace<'_>) -> Result<()> {
        for table in self.0.iter().filter_map(Weak::upgrade) {
            if !table.verify(pace)? {
                break;
            }
        }
        Ok(())
    }

    /// Passes every pair of every table to `visit`, until it breaks: the file's name, the key and
    /// the value. This includes pairs that later tables replace; a removed key has no value.
    ///
    /// # Errors
    /// [`TableError::Damaged`] and [`TableError::Io`].
    pub fn visit_pairs(&self, visit: &mut PairVisitor<'_>) -> Result<()> {
        for table in self.0.iter().filter_map(Weak::upgrade) {
            let Some(mut cursor) = TableCursor::seek(&table, &[])? else { continue };
            loop {
                if visit(table.name(), cursor.key(), cursor.value()).is_break() {
                    return Ok(());
                }
                if !cursor.advance()? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads and checks all tables, unless `pace` stops it, and returns the damaged ones.
    ///
    /// # Errors
    /// [`TableError::Io`].
    pub fn damaged(&self, pace: &mut Pace<'_>) -> Result<Vec<DamagedTable>> {
        let mut damaged = Vec::new();
        for table in self.0.iter().filter_map(Weak::upgrade) {
            match table.verify(pace) {
                Ok(true) => {}
                Ok(false) => break,
                Err(TableError::Damaged { what }) => damaged.push(DamagedTable { file: table.name().to_owned(), what }),
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }
}
