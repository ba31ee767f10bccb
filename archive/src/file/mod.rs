//! One file of the archive: a Parquet file whose rows have rising positions, which never changes once it is written.
//!
//! Every byte is covered by a checksum that is checked before anything is made of it: each page has Parquet's own, for other programs;
//! each column chunk has a CRC-32C in the footer, headers of pages included; and the footer has one of itself. The list of files adds a
//! SHA-256 of the whole.

mod buffers;
mod chunk;
mod footer;
mod name;
mod page;
mod reader;
mod row_group;
mod rows;
mod writer;

pub use name::{FileEntry, FileName};
pub(crate) use reader::verify;
pub use reader::{ArchiveFile, Batches, Columns, RowGroup, Selection};
pub use rows::Rows;
pub use writer::{FileWriter, WriterOptions};
