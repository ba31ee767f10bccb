//! Files of an archive that are on other machines.

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_domain::ProjectId;

use crate::base::BaseEntry;
use crate::error::{ArchiveError, Damage};
use crate::file::FileEntry;

/// A file in a project's list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedFile {
    /// Its name, in the project's folder.
    pub name: String,
    /// The length in bytes.
    pub bytes: u64,
    /// The SHA-256 of the contents, in hexadecimal.
    pub sha256: String,
}

impl From<&FileEntry> for ListedFile {
    fn from(entry: &FileEntry) -> Self {
        Self { name: entry.name.to_string(), bytes: entry.bytes, sha256: entry.sha256.clone() }
    }
}

impl From<&BaseEntry> for ListedFile {
    fn from(entry: &BaseEntry) -> Self {
        Self { name: entry.name(), bytes: entry.bytes, sha256: entry.sha256.clone() }
    }
}

/// Provides the files of an archive whose folder is a cache. Blocking.
pub trait FileSource: Debug + Send + Sync {
    /// Writes a listed file of a project to the path `to`, whose folder may be missing. Writes all
    /// of it or nothing.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if the file does not exist, [`io::ErrorKind::InvalidData`] if
    /// its contents differ from the list, and others.
    fn fetch(&self, project: ProjectId, file: &ListedFile, to: &Path) -> io::Result<()>;
}

/// The source of missing files; `None` if the folder has all files.
pub type Source = Option<Arc<dyn FileSource>>;

/// Fetches a file that is missing in the project's folder `dir`, if there is a source.
pub(crate) fn fetch_missing(source: &Source, project: ProjectId, dir: &Path, file: &ListedFile) -> Result<(), ArchiveError> {
    let path = dir.join(&file.name);
    let Some(source) = source.as_ref().filter(|_| !path.exists()) else { return Ok(()) };
    source.fetch(project, file, &path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ArchiveError::damaged(&file.name, Damage::Missing),
        io::ErrorKind::InvalidData => ArchiveError::damaged(&file.name, Damage::Hash),
        _ => ArchiveError::io("fetch", &path)(error),
    })
}
