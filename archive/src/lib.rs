//! Stores sealed events in Parquet files, which other programs can read directly.
//!
//! - [`row`]: an event with its position and the fields that only the archive and exports have.
//! - [`schema`]: the columns that the archive and exports share, and their decoding to rows.
//! - [`export`]: rows as text.
//! - [`metadata`]: the scalars of metadata by path, and the selection of paths that become columns.
//! - [`file`](mod@file): the name, the writer and the reader of one file.
//! - [`manifest`]: the list of a project's files. [`archive`]: a project's folder. [`catalog`]: the
//!   list of projects.
//! - [`seal`]: adds rows. [`compact`]: merges the files of a month. [`removal`]: removes rows of
//!   early days.
//! - [`source`]: files on other machines.
//! - [`base`]: the saved state of a project, from which a rebuild starts once rows were removed.
//!
//! The crate starts no threads and reads no clock. All operations on files use
//! [`headcount_storage::files`].

pub mod archive;
pub mod base;
pub mod cache;
pub mod catalog;
mod checksum;
pub mod compact;
pub mod error;
pub mod export;
pub mod file;
pub mod manifest;
pub mod metadata;
pub mod removal;
pub mod row;
pub mod schema;
pub mod seal;
pub mod source;

pub use archive::Archive;
pub use base::{BaseEntry, BaseHeader, BaseItem, BaseName, BaseReader, BaseWriter};
pub use cache::{CachedFile, cached_files};
pub use catalog::{CATALOG_NAME, Catalog};
pub use compact::{CompactOptions, merge_next, next_merge};
pub use error::{ArchiveError, Damage, Refusal};
pub use file::{
    ArchiveFile, Columns, ExportFile, ExportFileError, FileEntry, FileWriter, GroupReader, Selection, TextColumn, WriterOptions,
};
pub use manifest::{MANIFEST_NAME, Manifest};
pub use metadata::visit_scalars;
pub use removal::{OldFiles, remove_files, replace_file, rewrite_file, rewrite_rows};
pub use row::{Currencies, Row};
pub use seal::{MAX_FILE_ROWS, SealOptions, Sealer, month_of};
pub use source::{FileSource, ListedFile, Source};
