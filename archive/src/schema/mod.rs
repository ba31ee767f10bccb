//! The columns of the archive and of exports. One table has the name and type of each column, and
//! the functions that read and restore its value.

mod column;
mod decode;
mod draft;
mod parquet_type;
mod table;

pub use column::{Access, Column, Value};
pub use decode::decode;
pub(crate) use decode::decode_export;
pub use draft::{Draft, Malformed};
pub use parquet_type::{METADATA_PREFIX, message};
pub use table::{COLUMNS, DAY, EXPORT_COLUMNS, INTERACTIVE, METADATA, POSITION, SET_ASIDE, TIMESTAMP};

/// The version of the schema, which each file has.
pub const SCHEMA_VERSION: &str = "1";
