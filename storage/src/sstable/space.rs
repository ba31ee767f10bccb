//! The place of a set's tables, and their layout.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::block::Encoding;
use super::error::{Result, TableError};
use crate::files::{self, CachedFile, Dir, OpenFiles};

const EXTENSION: &str = "sst";

/// The layout of a set's tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) encoding: Encoding,
    /// A block ends when its pairs reach this size in bytes. A larger value gets its own block.
    pub(crate) block_bytes: usize,
    /// Whether to compress blocks with lz4 if that makes them smaller.
    pub(crate) compressed: bool,
    /// A table is merged with the newer ones if it has at most this percentage of their size. A
    /// larger percentage gives fewer tables, but rewrites pairs more often.
    pub(crate) merge_percent: u64,
    /// The hash of a key that the filter stores.
    pub(crate) hash: fn(&[u8]) -> u128,
}

/// The place and the identity of a set's tables.
#[derive(Debug, Clone)]
pub(crate) struct TableSpace {
    pub(crate) dir: Arc<Dir>,
    /// Bounds the number of open files.
    pub(crate) open_files: Arc<OpenFiles>,
    pub(crate) layout: Layout,
    /// The id in every footer, which distinguishes the set from other sets.
    pub(crate) owner: u128,
    /// The beginning of the file names, unique to the set in its directory.
    pub(crate) stem: String,
    /// The beginning of all keys.
    pub(crate) key_prefix: Vec<u8>,
}

impl TableSpace {
    /// A name of the set for log lines: the beginning of the paths of its tables.
    pub(super) fn describe(&self) -> String {
        self.dir.path.join(&self.stem).display().to_string()
    }

    fn file_name(&self, id: u64) -> String {
        Self::name_of(&self.stem, id)
    }

    /// The name of the file of a table, after the stem of its set.
    pub(super) fn name_of(stem: &str, id: u64) -> String {
        format!("{stem}{id:016x}.{EXTENSION}")
    }

    /// The path of a table.
    pub(crate) fn path_of(&self, id: u64) -> PathBuf {
        self.dir.path.join(self.file_name(id))
    }

    pub(super) fn file(&self, id: u64) -> CachedFile {
        CachedFile::new(&self.dir, self.file_name(id), &self.open_files)
    }
}

/// The tables in a directory, and the lengths of their files.
pub(crate) fn table_files(dir: &Path) -> Result<BTreeMap<PathBuf, u64>> {
    let list = || -> io::Result<BTreeMap<PathBuf, u64>> {
        let mut found = BTreeMap::new();
        for path in files::list(dir)? {
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                // A merge may have removed a replaced table in the meantime.
                let len = path.metadata().map_or(0, |about| about.len());
                found.insert(path, len);
            }
        }
        Ok(found)
    };
    list().map_err(TableError::io("list its tables"))
}

/// Removes the tables in a directory that are not in a manifest.
pub(crate) fn remove_unnamed(dir: &Path, named: &BTreeSet<PathBuf>) -> Result<()> {
    for path in table_files(dir)?.into_keys().filter(|path| !named.contains(path)) {
        files::remove_file(&path).map_err(TableError::io("remove a leftover table"))?;
    }
    Ok(())
}
