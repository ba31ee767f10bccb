//! Small values in files of this machine.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use headcount_storage::files::remove_file;
use parking_lot::Mutex;

use super::{Files, Unwritten};
use crate::documents::DocumentsError;
use crate::values::SharedValues;

/// The maximum size of a value in bytes. A value is written as a whole, at most once a second.
const MAX_BYTES: usize = 1 << 20;
/// The maximum size of a value of all partitions. It is written at most every ten seconds.
const MAX_BYTES_OF_PARTITIONS: usize = 16 << 20;

/// Values in a directory. A value that belongs to a document has a file beside it.
#[derive(Debug)]
pub struct LocalValues {
    files: Files,
    max_bytes: usize,
    /// The revisions of the values written since the start. All other values have revision 1.
    revisions: Mutex<BTreeMap<String, u64>>,
}

impl LocalValues {
    /// Opens the values in the files `KEY.SUFFIX` of a directory. Removes values without a
    /// document, which an interrupted removal has left. A document that was set aside keeps its
    /// value.
    ///
    /// # Errors
    /// The directory can't be read or written.
    pub fn open(dir: &Path, suffix: &'static str) -> io::Result<Self> {
        let files = Files::open(dir, suffix)?;
        for (key, path) in files.list("")? {
            let is_there = |end: &str| dir.join(format!("{key}{end}")).try_exists();
            if !is_there(".json")? && !is_there(".json.damaged")? {
                remove_file(&path)?;
            }
        }
        Ok(Self { files, max_bytes: MAX_BYTES, revisions: Mutex::default() })
    }

    /// Opens values of all partitions, which belong to no documents.
    ///
    /// # Errors
    /// The directory can't be read or written.
    pub fn of_partitions(dir: &Path) -> io::Result<Self> {
        // With this suffix, each value is the document that it belongs to.
        Ok(Self { max_bytes: MAX_BYTES_OF_PARTITIONS, ..Self::open(dir, ".json")? })
    }
}

fn unavailable(error: io::Error) -> DocumentsError {
    DocumentsError::Unavailable(error.to_string())
}

impl SharedValues for LocalValues {
    fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, DocumentsError> {
        let revisions = self.revisions.lock();
        let value = self.files.read(key).map_err(unavailable)?;
        Ok(value.filter(|value| !value.is_empty()).map(|value| (value, revisions.get(key).copied().unwrap_or(1))))
    }

    fn write(&self, key: &str, value: &[u8], revision: u64) -> Result<u64, DocumentsError> {
        let mut revisions = self.revisions.lock();
        let current = match revisions.get(key) {
            Some(revision) => *revision,
            None => u64::from(self.files.read(key).map_err(unavailable)?.is_some()),
        };
        if current != revision {
            return Err(DocumentsError::Conflict);
        }
        match self.files.write(key, value) {
            Err(Unwritten::Unchanged(error)) => return Err(unavailable(error)),
            Err(Unwritten::Unknown(error)) => return Err(DocumentsError::Undecided(error.to_string())),
            Ok(()) => {}
        }
        revisions.insert(key.to_owned(), revision + 1);
        Ok(revision + 1)
    }

    fn remove(&self, key: &str) -> Result<(), DocumentsError> {
        let mut revisions = self.revisions.lock();
        self.files.put(key, None).map_err(|(Unwritten::Unchanged(error) | Unwritten::Unknown(error))| unavailable(error))?;
        revisions.remove(key);
        Ok(())
    }

    fn keys(&self, prefix: &str) -> Result<Vec<String>, DocumentsError> {
        let files = self.files.list("").map_err(unavailable)?;
        Ok(files.iter().filter_map(|(key, _)| key.strip_prefix(prefix)).map(str::to_owned).collect())
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }
}
