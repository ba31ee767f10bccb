//! Sorted tables: pairs of bytes in key order, in immutable files. Written in bulk, read one key at
//! a time.
//!
//! A [`Table`] is one file: compressed blocks of pairs, an index of the blocks, a Bloom filter, and
//! a checksum for each part. A [`TableSet`] is a list of tables; the newest table with a key wins.
//! Writers append tables to the set, and tables of similar size are [merged](merge). The
//! [`Manifest`] of a set names its tables, and the owner stores it: the store commits it with each
//! checkpoint, the index of external ids writes it to a file. Files that no manifest names are
//! removed at the next start.
//!
//! A lookup asks the filters, newest table first, and reads one block of one table. Looking up an
//! absent key costs no read.

mod block;
mod copied;
mod error;
mod filter;
mod footer;
mod index;
mod key;
mod merge;
mod merger;
mod reader;
mod set;
mod space;
mod verify;
mod writer;

pub(crate) use block::Encoding;
pub(crate) use copied::open_copies;
pub use copied::{TableFile, TableFileReader};
pub use error::TableError;
pub(crate) use merge::MergeCursor;
pub(crate) use merger::Merger;
pub(crate) use reader::Table;
pub(crate) use set::{Manifest, Proposal, TableList, TableSet, newest};
pub(crate) use space::{Layout, TableSpace, remove_unnamed, table_files};
pub use verify::{DamagedTable, PairVisitor, UncheckedTables};
pub(crate) use writer::TableWriter;
