//! Reads single columns of a row group for questions.
//!
//! Texts are read as codes of the distinct values, as the file stores them, so a question evaluates
//! each value only once.

use std::ops::{ControlFlow, RangeInclusive};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int32Type, Int64Type, TimestampMillisecondType};
use arrow_array::{Array, ArrayRef, StringArray};
use headcount_domain::{Amount, Day, Instant, Position};
use parquet::basic::Encoding;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;

use super::reader::ArchiveFile;
use crate::error::ArchiveError;
use crate::row::Row;
use crate::schema::{DAY, POSITION, SET_ASIDE, TIMESTAMP};

/// A row group of an open file. Columns are read and verified on demand.
#[derive(Debug, Clone, Copy)]
pub struct GroupReader<'f> {
    file: &'f ArchiveFile,
    group: usize,
}

/// A column of texts: a code for each row, and the value of each code. Equal values may have
/// several codes.
#[derive(Debug)]
pub struct TextColumn {
    codes: Vec<u32>,
    /// `None` if no row has a value.
    values: Option<StringArray>,
}

impl TextColumn {
    /// Creates a column of `rows` rows without values.
    pub fn empty(rows: usize) -> Self {
        Self { codes: vec![0; rows], values: None }
    }

    /// The codes of the rows. [`TextColumn::null`] stands for a missing value.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The code of rows without a value; all others are smaller.
    pub fn null(&self) -> u32 {
        self.values.as_ref().map_or(0, |values| u32::try_from(values.len()).unwrap_or(u32::MAX))
    }

    /// The value of a code.
    pub fn value(&self, code: u32) -> Option<&str> {
        let values = self.values.as_ref()?;
        let at = code as usize;
        (at < values.len() && values.is_valid(at)).then(|| values.value(at))
    }
}

impl ArchiveFile {
    /// Returns the row groups, in order.
    pub fn groups(&self) -> impl Iterator<Item = GroupReader<'_>> {
        (0..self.row_groups().len()).map(|group| GroupReader { file: self, group })
    }
}

impl GroupReader<'_> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.file.row_groups()[self.group].rows).unwrap_or(usize::MAX)
    }

    /// The first and the last position.
    pub fn positions(&self) -> RangeInclusive<Position> {
        self.file.row_groups()[self.group].positions.clone()
    }

    /// The earliest and the latest day.
    pub fn days(&self) -> RangeInclusive<Day> {
        self.file.row_groups()[self.group].days.clone()
    }

    /// The earliest and the latest time, if the footer has them.
    pub fn times(&self) -> Option<RangeInclusive<Instant>> {
        let (_, chunk) = self.file.column(self.group, TIMESTAMP)?;
        let Some(Statistics::Int64(times)) = chunk.statistics() else { return None };
        Some(Instant(*times.min_opt()?)..=Instant(*times.max_opt()?))
    }

    /// Reads the rows with these ascending numbers.
    ///
    /// # Errors
    /// Same as [`GroupReader::texts`].
    pub fn rows_at(&self, numbers: &[u32]) -> Result<Vec<Row>, ArchiveError> {
        let rows = self.file.rows_at(self.group, numbers)?;
        if rows.len() == numbers.len() { Ok(rows) } else { Err(self.file.contradiction("a row group has other rows")) }
    }

    /// Passes the rows with these ascending numbers to `visit`, until it breaks. Only a few of them
    /// are in memory.
    ///
    /// # Errors
    /// Same as [`GroupReader::texts`].
    pub fn visit_rows_at(&self, numbers: &[u32], visit: &mut dyn FnMut(Row) -> ControlFlow<()>) -> Result<(), ArchiveError> {
        match self.file.visit_rows_at(self.group, numbers, visit)? {
            ControlFlow::Continue(passed) if passed != numbers.len() => {
                Err(self.file.contradiction("a row group has other rows"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the file has this column. If a metadata path has no column, the metadata must be
    /// read instead.
    pub fn has_column(&self, name: &str) -> bool {
        self.file.has_column(name)
    }

    /// Reads a column of texts.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::Io`].
    pub fn texts(&self, name: &str) -> Result<TextColumn, ArchiveError> {
        let (column, chunk) = self.chunk(name)?;
        let rows = self.rows();
        if chunk.statistics().and_then(Statistics::null_count_opt) == Some(rows as u64) {
            return Ok(TextColumn::empty(rows));
        }
        let is_coded = chunk.page_encoding_stats_mask().is_some_and(|mask| mask.is_only(Encoding::RLE_DICTIONARY));
        let array = self.file.read_column(self.group, column, is_coded)?;
        if array.len() != rows {
            return Err(self.wrong(name));
        }
        if !is_coded {
            let values = array.as_string_opt::<i32>().ok_or_else(|| self.wrong(name))?;
            let null = u32::try_from(rows).unwrap_or(u32::MAX);
            let codes = (0..null).map(|row| if values.is_valid(row as usize) { row } else { null }).collect();
            return Ok(TextColumn { codes, values: Some(values.clone()) });
        }
        let coded = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| self.wrong(name))?;
        let values = coded.values().as_string_opt::<i32>().ok_or_else(|| self.wrong(name))?;
        let null = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let keys = coded.keys();
        let codes: Vec<u32> = match keys.nulls() {
            None => keys.values().iter().map(|code| code.cast_unsigned()).collect(),
            Some(valid) => keys
                .values()
                .iter()
                .zip(valid.iter())
                .map(|(code, valid)| if valid { code.cast_unsigned() } else { null })
                .collect(),
        };
        if codes.iter().any(|code| *code > null) {
            return Err(self.wrong(name));
        }
        Ok(TextColumn { codes, values: Some(values.clone()) })
    }

    /// Reads a column of 16 bytes.
    ///
    /// # Errors
    /// As [`GroupReader::texts`].
    pub fn bytes16(&self, name: &str) -> Result<Vec<Option<u128>>, ArchiveError> {
        let (column, chunk) = self.chunk(name)?;
        if chunk.statistics().and_then(Statistics::null_count_opt) == Some(self.rows() as u64) {
            return Ok(vec![None; self.rows()]);
        }
        let array = self.read(name, column)?;
        let values = array.as_fixed_size_binary_opt().ok_or_else(|| self.wrong(name))?;
        let value =
            |row: usize| values.is_valid(row).then(|| values.value(row).try_into().map(u128::from_be_bytes).ok()).flatten();
        Ok((0..values.len()).map(value).collect())
    }

    /// Reads a column of decimals; `None` if no row has a value.
    ///
    /// # Errors
    /// As [`GroupReader::texts`].
    pub fn decimals(&self, name: &str) -> Result<Option<Vec<Option<Amount>>>, ArchiveError> {
        let (column, chunk) = self.chunk(name)?;
        if chunk.statistics().and_then(Statistics::null_count_opt) == Some(self.rows() as u64) {
            return Ok(None);
        }
        let array = self.read(name, column)?;
        let values = array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| self.wrong(name))?;
        Ok(Some(values.iter().map(|value| value.map(Amount::from_micros)).collect()))
    }

    /// Reads which rows have true in a column; empty if no row has a value.
    ///
    /// # Errors
    /// Same as [`GroupReader::texts`].
    pub fn booleans(&self, name: &str) -> Result<Vec<bool>, ArchiveError> {
        let (column, chunk) = self.chunk(name)?;
        if chunk.statistics().and_then(Statistics::null_count_opt) == Some(self.rows() as u64) {
            return Ok(vec![false; self.rows()]);
        }
        let array = self.read(name, column)?;
        let values = array.as_boolean_opt().ok_or_else(|| self.wrong(name))?;
        Ok(values.iter().map(|value| value == Some(true)).collect())
    }

    /// Reads the positions.
    ///
    /// # Errors
    /// As [`GroupReader::texts`].
    pub fn read_positions(&self) -> Result<Vec<Position>, ArchiveError> {
        let array = self.read(POSITION, self.chunk(POSITION)?.0)?;
        let values = array.as_primitive_opt::<Int64Type>().ok_or_else(|| self.wrong(POSITION))?;
        Ok(values.values().iter().map(|position| position.cast_unsigned()).collect())
    }

    /// Reads the times of the events, in milliseconds since 1970.
    ///
    /// # Errors
    /// As [`GroupReader::texts`].
    pub fn read_times(&self) -> Result<Vec<i64>, ArchiveError> {
        let array = self.read(TIMESTAMP, self.chunk(TIMESTAMP)?.0)?;
        let values = array.as_primitive_opt::<TimestampMillisecondType>().ok_or_else(|| self.wrong(TIMESTAMP))?;
        Ok(values.values().to_vec())
    }

    /// Reads the days of the events.
    ///
    /// # Errors
    /// As [`GroupReader::texts`].
    pub fn read_days(&self) -> Result<Vec<Day>, ArchiveError> {
        let array = self.read(DAY, self.chunk(DAY)?.0)?;
        let values = array.as_primitive_opt::<Date32Type>().ok_or_else(|| self.wrong(DAY))?;
        Ok(values.values().iter().copied().map(Day).collect())
    }

    /// Reads which events are set aside; `None` if none are.
    ///
    /// # Errors
    /// Same as [`GroupReader::texts`].
    pub fn read_set_aside(&self) -> Result<Option<Vec<bool>>, ArchiveError> {
        let (column, chunk) = self.chunk(SET_ASIDE)?;
        if matches!(chunk.statistics(), Some(Statistics::Boolean(values)) if values.max_opt() == Some(&false)) {
            return Ok(None);
        }
        let array = self.read(SET_ASIDE, column)?;
        let values = array.as_boolean_opt().ok_or_else(|| self.wrong(SET_ASIDE))?;
        Ok(Some((0..values.len()).map(|row| values.value(row)).collect()))
    }

    /// Reads a column that is not text.
    fn read(&self, name: &str, column: usize) -> Result<ArrayRef, ArchiveError> {
        let array = self.file.read_column(self.group, column, false)?;
        if array.len() == self.rows() { Ok(array) } else { Err(self.wrong(name)) }
    }

    fn chunk(&self, name: &str) -> Result<(usize, &ColumnChunkMetaData), ArchiveError> {
        self.file.column(self.group, name).ok_or_else(|| self.file.contradiction(format!("there is no column {name}")))
    }

    fn wrong(&self, name: &str) -> ArchiveError {
        self.file.contradiction(format!("column {name} has other rows or another type"))
    }
}
