//! The implementation of the seam on one machine: files in the data directory that only this
//! process changes.

mod copied;
mod documents;
mod items;
mod memory;
mod stores;
mod values;

pub use copied::CopiedDocuments;
pub use documents::LocalDocuments;
pub use items::{ReadItems, item_names, read_items, write_items};
pub use memory::MemoryValues;
pub use stores::{LocalStores, VALUE_SUFFIX, kind_dir};
pub use values::LocalValues;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use headcount_storage::files::{PRIVATE_FILE, create_private_dir, list, read_if_there, remove_file, sync_dir, write_atomically};

/// The state of a file that could not be written or removed.
#[derive(Debug)]
enum Unwritten {
    /// The file is unchanged.
    Unchanged(io::Error),
    /// The file may have been written or removed.
    Unknown(io::Error),
}

/// A directory of files. Each file has a key and is only ever replaced as a whole. Keys have no
/// dots.
#[derive(Debug)]
struct Files {
    dir: PathBuf,
    /// The suffix of a file's name, after the key.
    suffix: &'static str,
}

impl Files {
    /// Opens a directory, or creates it. Removes files of interrupted writes, which may name a
    /// person who is erased by now.
    fn open(dir: &Path, suffix: &'static str) -> io::Result<Self> {
        create_private_dir(dir)?;
        let files = Self { dir: dir.to_owned(), suffix };
        for (key, path) in files.list(".tmp")? {
            if !key.is_empty() {
                remove_file(&path)?;
            }
        }
        Ok(files)
    }

    /// Returns the files whose names end with the suffix and `then`, with their keys, in order.
    fn list(&self, then: &str) -> io::Result<Vec<(String, PathBuf)>> {
        let key_of = |path: &PathBuf| {
            let key = path.file_name()?.to_str()?.strip_suffix(then)?.strip_suffix(self.suffix)?;
            (!key.contains('.')).then(|| key.to_owned())
        };
        let mut found: Vec<_> = list(&self.dir)?.into_iter().filter_map(|path| Some((key_of(&path)?, path))).collect();
        found.sort();
        Ok(found)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(format!("{key}{}", self.suffix))
    }

    fn read(&self, key: &str) -> io::Result<Option<Vec<u8>>> {
        read_if_there(&self.path(key))
    }

    /// Replaces a file, or removes it, durably. A partial change is undone.
    fn put(&self, key: &str, content: Option<&[u8]>) -> Result<(), Unwritten> {
        let former = self.read(key).map_err(Unwritten::Unchanged)?;
        let Err(error) = self.try_put(key, content) else { return Ok(()) };
        match self.try_put(key, former.as_deref()) {
            Ok(()) => Err(Unwritten::Unchanged(error)),
            Err(_) => Err(Unwritten::Unknown(error)),
        }
    }

    /// Replaces a file, durably. A partial change is not undone.
    fn write(&self, key: &str, content: &[u8]) -> Result<(), Unwritten> {
        let Err(error) = self.try_put(key, Some(content)) else { return Ok(()) };
        match self.read(key) {
            Ok(there) if there.as_deref() != Some(content) => Err(Unwritten::Unchanged(error)),
            _ => Err(Unwritten::Unknown(error)),
        }
    }

    fn try_put(&self, key: &str, content: Option<&[u8]>) -> io::Result<()> {
        let path = self.path(key);
        let Some(content) = content else {
            return match remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => sync_dir(&self.dir),
            };
        };
        write_atomically(&path, content, PRIVATE_FILE)
    }
}
