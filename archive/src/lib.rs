//! The archive: events of the past, sealed into Parquet files that other programs read as they are.
//!
//! - [`row`]: one event with what the archive records beside it.
//! - [`schema`]: the columns, as one table that the archive and exports share, and the way back from columns to rows.
//! - [`metadata`]: the scalars of an event's metadata by path, and which paths become columns of a file.
//! - [`file`](mod@file): one file: its name, its writer, its reader.
//! - [`manifest`]: the list of a project's files. [`archive`]: a project's folder: files and their list.
//! - [`seal`]: adds rows to a folder. [`compact`]: merges the files of a month.
//!
//! Nothing here starts a thread or reads a clock. Every operation on files goes through [`headcount_storage::files`].

pub mod archive;
pub mod compact;
pub mod error;
pub mod file;
pub mod manifest;
pub mod metadata;
pub mod row;
pub mod schema;
pub mod seal;
