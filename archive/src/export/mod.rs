//! Exports: the rows of events as text, with the columns of the archive.

mod json;

pub use json::{Nulls, json_fields};

use crate::schema::{COLUMNS, Column};

/// The version of the format of rows, which each row of text shows as `_v`.
pub const ROW_VERSION: u32 = 1;

/// The columns of exports, in order.
pub fn columns() -> impl Iterator<Item = &'static Column> {
    COLUMNS.iter().filter(|column| !column.archive_only)
}
