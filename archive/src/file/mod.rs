//! One file of the archive: an immutable Parquet file, with rows in the order of positions.
//!
//! Every decoded byte is covered by a checksum that is verified first. The footer has a CRC-32C of
//! each column chunk, including page headers, and of itself. Each page also has Parquet's own
//! checksum, for other programs. The list of files has a SHA-256 of the whole file.

mod buffers;
mod columns;
mod export_file;
mod footer;
mod name;
mod page;
mod reader;
mod row_group;
mod rows;
mod stream;
mod thrift;
mod writer;

pub use columns::{GroupReader, TextColumn};
pub use export_file::{ExportFile, ExportFileError};
pub use name::{FileEntry, FileName};
pub(crate) use reader::verify;
pub use reader::{ArchiveFile, Batches, Columns, RowGroup, Selection};
pub use rows::Rows;
pub(crate) use stream::StreamWriter;
pub use writer::{FileWriter, WriterOptions};
