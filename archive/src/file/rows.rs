//! Iterates over the rows of a file.

use std::ops::{ControlFlow, RangeInclusive};

use headcount_domain::{Day, Position};

use super::reader::{ArchiveFile, Batches, Columns, Selection};
use crate::error::ArchiveError;
use crate::row::Row;
use crate::schema::decode;

/// An iterator over the rows of a file from a position on. It ends after an error.
#[derive(Debug)]
pub struct Rows<'f> {
    file: &'f ArchiveFile,
    batches: Batches<'f>,
    batch: std::vec::IntoIter<Row>,
    from: Position,
    last: Option<Position>,
    has_failed: bool,
}

impl ArchiveFile {
    /// Returns the rows from the position `from` on.
    pub fn rows(&self, from: Position) -> Rows<'_> {
        self.rows_of_groups(from, Day(i32::MIN)..=Day(i32::MAX))
    }

    /// Returns the rows from the position `from` on, in the row groups with rows on one of these
    /// days.
    pub fn rows_of_groups(&self, from: Position, days: RangeInclusive<Day>) -> Rows<'_> {
        let selection = Selection { columns: Columns::Row, positions: from..=Position::MAX, days };
        let batch = Vec::new().into_iter();
        Rows { file: self, batches: self.batches(&selection), batch, from, last: None, has_failed: false }
    }
}

impl ArchiveFile {
    /// Reads the rows of a row group with these ascending numbers.
    pub(super) fn rows_at(&self, group: usize, numbers: &[u32]) -> Result<Vec<Row>, ArchiveError> {
        let mut rows = Vec::with_capacity(numbers.len());
        let _all = self.visit_rows_at(group, numbers, &mut |row| {
            rows.push(row);
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    /// Passes the rows of a row group with these ascending numbers to `visit`, until it breaks.
    /// Returns the number of passed rows.
    pub(super) fn visit_rows_at(
        &self,
        group: usize,
        numbers: &[u32],
        visit: &mut dyn FnMut(Row) -> ControlFlow<()>,
    ) -> Result<ControlFlow<(), usize>, ArchiveError> {
        let mut passed = 0;
        for batch in self.batches_at(group, numbers)? {
            let batch = batch.map_err(|error| self.contradiction(error))?;
            for row in decode(&batch, self.project()).map_err(|error| self.contradiction(error))? {
                passed += 1;
                if visit(row).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(passed))
    }
}

impl Rows<'_> {
    fn next_row(&mut self) -> Result<Option<Row>, ArchiveError> {
        loop {
            for row in self.batch.by_ref() {
                if self.last.is_some_and(|last| last >= row.position) {
                    return Err(self.file.contradiction("its positions don't rise"));
                }
                self.last = Some(row.position);
                if row.position >= self.from {
                    return Ok(Some(row));
                }
            }
            let Some(batch) = self.batches.next().transpose()? else { return Ok(None) };
            self.batch = decode(&batch, self.file.project()).map_err(|error| self.file.contradiction(error))?.into_iter();
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, ArchiveError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let row = self.next_row().transpose();
        self.has_failed = matches!(row, Some(Err(_)));
        row
    }
}
