//! A copy of documents in files of this machine, so that reading one needs no request.

use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_storage::files::remove_dir_all;

use super::{Files, Unwritten};
use crate::control_error::ControlError;
use crate::documents::{DocumentChange, DocumentVisitor, Documents, DocumentsError};

/// A copy of documents in files of this machine.
#[derive(Debug)]
pub struct CopiedDocuments {
    original: Arc<dyn Documents>,
    files: Files,
}

impl CopiedDocuments {
    /// Creates a copy in `dir`. The directory is emptied, and filled by following the documents.
    ///
    /// # Errors
    /// The directory can't be emptied.
    pub fn new(original: Arc<dyn Documents>, dir: &Path) -> io::Result<Self> {
        if dir.try_exists()? {
            remove_dir_all(dir)?;
        }
        Ok(Self { original, files: Files::open(dir, ".json")? })
    }

    fn failed(&self, doing: &'static str, source: io::Error) -> ControlError {
        ControlError::io(doing, &self.files.dir, source)
    }
}

impl Documents for CopiedDocuments {
    fn follow(&self, visit: &mut DocumentVisitor<'_>) -> Result<u64, ControlError> {
        self.original.follow(&mut |change| {
            let written = self.files.put(change.key, change.content);
            written.map_err(|(Unwritten::Unchanged(error) | Unwritten::Unknown(error))| self.failed("write", error))?;
            visit(change)
        })
    }

    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, ControlError> {
        self.files.read(key).map_err(|error| self.failed("read", error))
    }

    fn put(&self, expected: u64, change: DocumentChange<'_>) -> Result<(), DocumentsError> {
        self.original.put(expected, change)
    }

    fn prove(&self, expected: u64, by: &str) -> Result<(), DocumentsError> {
        self.original.prove(expected, by)
    }
}
