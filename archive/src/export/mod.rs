//! Exports: the rows of events as NDJSON, CSV and Parquet, with the columns of the archive.

mod csv;
mod encoder;
mod json;
mod pinned;

pub use csv::restored;
pub use encoder::{ExportFormat, RowEncoder};
pub use json::{Nulls, json_fields};
pub use pinned::parse_row;

use crate::schema::{Column, EXPORT_COLUMNS};

/// The version of the format of rows. Each row as text has it in [`VERSION_FIELD`].
const ROW_VERSION: u32 = 1;
/// The field with the version.
pub const VERSION_FIELD: &str = "_v";

/// The columns of exports, in order.
pub fn columns() -> impl Iterator<Item = &'static Column> {
    EXPORT_COLUMNS.iter()
}
