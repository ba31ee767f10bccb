//! Stores sealed events in Parquet files, which other programs can read directly.
//!
//! - [`row`]: an event with its position and the fields that only the archive and exports have.
//! - [`schema`]: the table of columns that the archive and exports share, and decoding of columns to rows.
//! - [`export`]: rows as text.
//! - [`metadata`]: the scalars of metadata by path, and the selection of paths that become columns.
//! - [`file`](mod@file): the name, the writer and the reader of one file.
//! - [`manifest`]: the list of a project's files. [`archive`]: a project's folder. [`catalog`]: the list of projects.
//! - [`seal`]: adds rows. [`compact`]: merges the files of a month. [`removal`]: removes rows of early days.
//! - [`source`]: files that are not on this machine.
//! - [`base`]: the saved state of a project, which a rebuild starts from once rows were removed.
//!
//! The crate starts no thread and reads no clock. All operations on files pass through [`headcount_storage::files`].

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
