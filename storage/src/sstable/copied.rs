//! Tables as files to copy elsewhere, and reading of the copies.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::error::{Result, TableError};
use super::reader::Table;
use super::set::TableList;
use super::space::{Layout, TableSpace};
use crate::files::{Dir, OpenFiles};

/// The file of a table, which never changes. It stays readable while this lives, even after a merge
/// of the table.
#[derive(Debug, Clone)]
pub struct TableFile {
    table: Arc<Table>,
}

impl TableFile {
    /// The files of some tables, in their order.
    pub(crate) fn of(tables: &TableList) -> Vec<Self> {
        tables.iter().map(|table| Self { table: Arc::clone(table) }).collect()
    }

    /// Its number, which is unique in its set within one process.
    pub fn id(&self) -> u64 {
        self.table.id()
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.table.file_len()
    }

    /// The name of a copy.
    pub fn copy_name(id: u64) -> String {
        TableSpace::name_of("", id)
    }

    /// Reads the file from its beginning.
    pub fn reader(&self) -> TableFileReader<'_> {
        TableFileReader { table: &self.table, at: 0 }
    }
}

/// Reads the file of a table.
#[derive(Debug)]
pub struct TableFileReader<'t> {
    table: &'t Table,
    at: u64,
}

impl Read for TableFileReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.table.file_len() - self.at).unwrap_or(usize::MAX);
        let wanted = bytes.len().min(left);
        self.table.read_bytes(&mut bytes[..wanted], self.at)?;
        self.at += wanted as u64;
        Ok(wanted)
    }
}

/// Opens copies of tables in a directory, in the order of their numbers in `ids`. `owner`, `layout`
/// and `key_prefix` belong to their set.
pub(crate) fn open_copies(dir: &Path, (owner, layout, key_prefix): (u128, Layout, Vec<u8>), ids: &[u64]) -> Result<TableList> {
    let held = Arc::new(Dir::open(dir).map_err(TableError::io("open a directory"))?);
    let space = TableSpace { dir: held, open_files: OpenFiles::of_process(), layout, owner, stem: String::new(), key_prefix };
    let tables = ids.iter().map(|id| Table::open(&space, *id).map(Arc::new)).collect::<Result<_, _>>()?;
    Ok(Arc::new(tables))
}
