//! The files of an archive whose folder is a cache.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use headcount_domain::ProjectId;
use headcount_storage::files;

use crate::archive::{is_listed, paths_in};
use crate::error::ArchiveError;

/// A file of events, or a base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedFile {
    /// The project of its events.
    pub project: ProjectId,
    /// Its name in the project's folder, as in the list.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// The length in bytes.
    pub bytes: u64,
    /// When it was written or fetched, in seconds of the file system's clock.
    pub written: i64,
}

impl CachedFile {
    /// Removes the file. Readers that have it open are not affected.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn remove(&self) -> Result<(), ArchiveError> {
        files::remove_if_there(&self.path).map_err(ArchiveError::io("remove", &self.path))
    }
}

/// Returns the files in the directory of an archive, which may be missing.
///
/// # Errors
/// [`ArchiveError::Io`].
pub fn cached_files(root: &Path) -> Result<Vec<CachedFile>, ArchiveError> {
    let mut found = Vec::new();
    if !root.exists() {
        return Ok(found);
    }
    for dir in files::list(root).map_err(ArchiveError::io("list", root))? {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some(project) = name.strip_prefix("project=").and_then(|project| project.parse().ok()) else { continue };
        for path in paths_in(&dir)?.into_iter().filter(|path| is_listed(path)) {
            let Ok(name) = path.strip_prefix(&dir) else { continue };
            let name = name.to_string_lossy().into_owned();
            let (bytes, written) = match files::length_and_time(&path) {
                // A merge has just removed it.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                known => known.map_err(ArchiveError::io("inspect", &path))?,
            };
            found.push(CachedFile { project, name, path, bytes, written });
        }
    }
    Ok(found)
}
