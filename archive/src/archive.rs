//! A project's folder: the files that its list names, and what lies beside them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::files;

use crate::error::{ArchiveError, Damage};
use crate::file::{ArchiveFile, FileEntry, verify};
use crate::manifest::{MANIFEST_NAME, Manifest};
use crate::row::Row;

/// The archive of one project. Its owner alone changes it; readers of the same folder open an archive of their own, and open it again when
/// a file is gone.
#[derive(Debug)]
pub struct Archive {
    dir: PathBuf,
    manifest: Manifest,
}

impl Archive {
    /// Opens the archive of `project` below `root`, and creates it where there is none.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the list of files is, or is missing beside files; [`ArchiveError::Io`].
    pub fn open(root: &Path, project: ProjectId) -> Result<Self, ArchiveError> {
        let dir = root.join(format!("project={project}"));
        if let Some(manifest) = Manifest::read(&dir, project)? {
            return Ok(Self { dir, manifest });
        }
        if dir.exists() && paths_in(&dir)?.iter().any(|path| path.extension().is_some_and(|extension| extension == "parquet")) {
            return Err(ArchiveError::damaged(MANIFEST_NAME, Damage::Missing));
        }
        let create = || {
            files::create_private_dir(root)?;
            files::create_private_dir(&dir)?;
            // An earlier attempt may have left folders whose names are not durable.
            root.parent().map_or(Ok(()), files::sync_dir)?;
            files::sync_dir(root)
        };
        create().map_err(ArchiveError::io("create", &dir))?;
        // Before the first file, so that files without a list are a sign of damage.
        let manifest = Manifest::empty(project);
        manifest.write(&dir)?;
        Ok(Self { dir, manifest })
    }

    /// The project's folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The list of files.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Replaces the list of files. The files that it names must be durable.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]: the former list may be in force or this one, and opening the archive again shows which.
    pub(crate) fn publish(&mut self, sealed_until: Position, files: Vec<FileEntry>) -> Result<(), ArchiveError> {
        let manifest = Manifest::new(self.manifest.project(), sealed_until, files).map_err(ArchiveError::Encode)?;
        manifest.write(&self.dir)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Opens a file of the list.
    ///
    /// # Errors
    /// As [`ArchiveFile::open`].
    pub fn file(&self, entry: &FileEntry) -> Result<ArchiveFile, ArchiveError> {
        ArchiveFile::open(&self.dir, self.manifest.project(), entry)
    }

    /// Calls `visit` with every row from the position `from` on, in order, until it fails.
    ///
    /// # Errors
    /// Those of [`ArchiveFile::open`] and of `visit`.
    pub fn for_each_row<E: From<ArchiveError>>(
        &self,
        from: Position,
        mut visit: impl FnMut(Row) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in self.manifest.files().iter().filter(|entry| entry.name.last >= from) {
            self.file(entry)?.rows(from).try_for_each(|row| visit(row?))?;
        }
        Ok(())
    }

    /// Compares every file to the list: its length and footer, or, if `whole`, its SHA-256 too. Returns the files that are damaged.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn damaged_files(&self, whole: bool) -> Result<Vec<ArchiveError>, ArchiveError> {
        let mut damaged = Vec::new();
        for entry in self.manifest.files() {
            let check = if whole { verify(&self.dir, self.manifest.project(), entry) } else { self.file(entry).map(drop) };
            match check {
                Err(error) if error.is_damage() => damaged.push(error),
                other => other?,
            }
        }
        Ok(damaged)
    }

    /// What lies in the folder and the list does not name: files that were merged, and what attempts that failed left.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn left_overs(&self) -> Result<Vec<PathBuf>, ArchiveError> {
        let listed = self.manifest.files().iter().map(|entry| self.dir.join(entry.name.to_string()));
        let listed: BTreeSet<PathBuf> = listed.chain([self.dir.join(MANIFEST_NAME)]).collect();
        let mut left = paths_in(&self.dir)?;
        left.retain(|path| !listed.contains(path));
        Ok(left)
    }

    /// Removes the left-overs. Readers that have one open read on.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]: some may be left.
    pub fn remove_left_overs(&self) -> Result<(), ArchiveError> {
        for path in self.left_overs()? {
            match files::remove_file(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(ArchiveError::io("remove", &path)(error)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The archive's files in a project's folder and its months, in order; not what belongs to nobody.
fn paths_in(dir: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let list = |dir: &Path| files::list(dir).map_err(ArchiveError::io("list", dir));
    let mut paths = Vec::new();
    for path in list(dir)? {
        let is_month = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("month="));
        if is_month && path.is_dir() { paths.extend(list(&path)?) } else { paths.push(path) }
    }
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        [MANIFEST_NAME, ".parquet", ".tmp"].iter().any(|end| name.ends_with(end))
    };
    paths.retain(is_ours);
    paths.sort();
    Ok(paths)
}
