//! Collects the rows of a row group by column until they are encoded. Absent values take no space.

use headcount_domain::intake::fields::MetadataPath;

use crate::metadata::{PathCounts, visit_scalars};
use crate::row::Row;
use crate::schema::{Access, Column, METADATA};

/// The values of a column that exist.
#[derive(Debug)]
pub(super) struct Sparse<T> {
    /// The numbers of the rows, in order.
    pub(super) rows: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), values: Vec::new() }
    }
}

impl<T> Sparse<T> {
    fn push(&mut self, row: u32, value: Option<T>) -> usize {
        let Some(value) = value else { return 0 };
        self.rows.push(row);
        self.values.push(value);
        size_of::<T>() + size_of::<u32>()
    }
}

/// The texts of a column that exist, concatenated.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The numbers of the rows, in order, and the end of each text.
    pub(super) ends: Sparse<u32>,
    pub(super) bytes: Vec<u8>,
}

impl Texts {
    fn push(&mut self, row: u32, text: Option<&str>) -> usize {
        let Some(text) = text else { return 0 };
        self.bytes.extend_from_slice(text.as_bytes());
        // A row group has only a few megabytes, so the length fits.
        self.ends.push(row, u32::try_from(self.bytes.len()).ok()) + text.len()
    }

    /// The texts in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let starts = std::iter::once(&0).chain(&self.ends.values);
        let ranges = self.ends.rows.iter().zip(starts.zip(&self.ends.values));
        ranges.map(|(row, (start, end))| (*row, &self.bytes[*start as usize..*end as usize]))
    }
}

/// The values of one column.
#[derive(Debug)]
pub(super) enum Buffer {
    Int64(Sparse<i64>),
    Int32(Sparse<i32>),
    Boolean(Sparse<bool>),
    Fixed16(Sparse<[u8; 16]>),
    Texts(Texts),
}

impl Buffer {
    fn of(access: Access) -> Self {
        match access {
            Access::Integer(..) | Access::Timestamp(..) => Self::Int64(Sparse::default()),
            Access::Date(..) => Self::Int32(Sparse::default()),
            Access::Boolean(..) => Self::Boolean(Sparse::default()),
            Access::Decimal(..) | Access::Bytes16(..) => Self::Fixed16(Sparse::default()),
            Access::Text(..) => Self::Texts(Texts::default()),
        }
    }

    /// Adds the value of `row`. Returns its size in bytes.
    fn push(&mut self, access: Access, number: u32, row: &Row) -> usize {
        match (self, access) {
            (Self::Int64(values), Access::Integer(get, _)) => values.push(number, Some(get(row))),
            (Self::Int64(values), Access::Timestamp(get, _)) => values.push(number, Some(get(row).0)),
            (Self::Int32(values), Access::Date(get, _)) => values.push(number, Some(get(row).0)),
            (Self::Boolean(values), Access::Boolean(get, _)) => values.push(number, get(row)),
            (Self::Fixed16(values), Access::Decimal(get, _)) => {
                values.push(number, get(row).map(|amount| amount.0.to_be_bytes()))
            }
            (Self::Fixed16(values), Access::Bytes16(get, _)) => values.push(number, get(row).map(u128::to_be_bytes)),
            (Self::Texts(texts), Access::Text(get, _)) => texts.push(number, get(row)),
            // `of` creates no other pair of column and value.
            _ => 0,
        }
    }
}

/// The rows of one row group.
#[derive(Debug)]
pub(super) struct Buffers {
    table: &'static [Column],
    columns: Vec<Buffer>,
    rows: u32,
    /// An upper bound of the bytes of all values, including values of paths.
    pub(super) bytes: usize,
}

impl Buffers {
    pub(super) fn new(table: &'static [Column]) -> Self {
        Self { table, columns: table.iter().map(|column| Buffer::of(column.access)).collect(), rows: 0, bytes: 0 }
    }

    pub(super) fn push(&mut self, row: &Row) {
        for (buffer, column) in self.columns.iter_mut().zip(self.table) {
            self.bytes += buffer.push(column.access, self.rows, row);
        }
        // The columns of paths repeat parts of the metadata.
        self.bytes += row.event.details.metadata.as_ref().map_or(0, |metadata| metadata.len());
        self.rows += 1;
    }

    pub(super) fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Counts the paths of the rows.
    pub(super) fn path_counts(&self) -> PathCounts {
        let mut counts = PathCounts::default();
        self.metadata().for_each(|(_, json)| counts.add(json));
        counts
    }

    fn metadata(&self) -> impl Iterator<Item = (u32, &str)> {
        let buffer = self.table.iter().zip(&self.columns).find(|(column, _)| column.name == METADATA);
        let texts = buffer.and_then(|(_, buffer)| if let Buffer::Texts(texts) = buffer { Some(texts) } else { None });
        texts.into_iter().flat_map(Texts::iter).filter_map(|(row, json)| Some((row, std::str::from_utf8(json).ok()?)))
    }

    /// Returns the columns in file order: those of the table, then those of `paths`.
    pub(super) fn into_columns(mut self, paths: &[MetadataPath]) -> Vec<Buffer> {
        let numbers: std::collections::HashMap<&str, usize> =
            paths.iter().enumerate().map(|(number, path)| (path.as_str(), number)).collect();
        let mut found: Vec<Texts> = paths.iter().map(|_| Texts::default()).collect();
        if !paths.is_empty() {
            for (row, json) in self.metadata() {
                visit_scalars(json, |path, text| {
                    if let Some(number) = numbers.get(path) {
                        found[*number].push(row, Some(&text));
                    }
                });
            }
        }
        self.columns.extend(found.into_iter().map(Buffer::Texts));
        self.columns
    }
}
