//! The archive of one project: a folder of files and the list of them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use headcount_domain::{Day, Position, ProjectId};
use headcount_storage::files;

use crate::base::{BASE_PREFIX, BaseEntry, BaseReader, verify_base};
use crate::error::{ArchiveError, Damage};
use crate::file::{ArchiveFile, FileEntry, verify};
use crate::manifest::{MANIFEST_NAME, Manifest};
use crate::row::Row;
use crate::source::{ListedFile, Source, fetch_missing};

/// The number of attempts to fetch a file that disappears before it is open. This happens if a
/// cache is far too small and evicts it.
const MAX_FETCHES: usize = 4;

/// The archive of one project. Only its owner changes it. A reader opens the folder itself, and
/// opens it again if a file is missing because a merge replaced it.
#[derive(Debug)]
pub struct Archive {
    dir: PathBuf,
    manifest: Manifest,
    source: Source,
}

impl Archive {
    /// Opens the archive of `project` in the directory `root`; creates it if it does not exist.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the list is damaged, or missing although there are files;
    /// [`ArchiveError::Io`].
    pub fn open(root: &Path, project: ProjectId) -> Result<Self, ArchiveError> {
        let dir = root.join(format!("project={project}"));
        if let Some(manifest) = Manifest::read(&dir, project)? {
            return Ok(Self { dir, manifest, source: None });
        }
        if dir.exists() && paths_in(&dir)?.iter().any(|path| is_listed(path)) {
            return Err(ArchiveError::damaged(MANIFEST_NAME, Damage::Missing));
        }
        let parent = root.parent().filter(|parent| !parent.as_os_str().is_empty());
        let create = || {
            files::create_private_dir(root)?;
            files::create_private_dir(&dir)?;
            // A failed attempt may have created folders with names that are not durable.
            files::sync_dir(parent.unwrap_or(Path::new(".")))?;
            files::sync_dir(root)
        };
        create().map_err(ArchiveError::io("create", &dir))?;
        // The list is written before the first file, so that files without a list mean damage.
        let manifest = Manifest::empty(project);
        manifest.write(&dir)?;
        Ok(Self { dir, manifest, source: None })
    }

    /// Opens the archive of a project that has sealed events.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the list is damaged or missing, and [`ArchiveError::Io`].
    pub fn existing(root: &Path, project: ProjectId) -> Result<Self, ArchiveError> {
        let dir = root.join(format!("project={project}"));
        match Manifest::read(&dir, project)? {
            Some(manifest) => Ok(Self { dir, manifest, source: None }),
            None => Err(ArchiveError::damaged(MANIFEST_NAME, Damage::Missing)),
        }
    }

    /// Fetches listed files that are missing in the folder from `source`.
    #[must_use]
    pub fn with_source(self, source: Source) -> Self {
        Self { source, ..self }
    }

    /// Removes the archive of a deleted project, if there is one. May be repeated.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]; some files may remain.
    pub fn remove(root: &Path, project: ProjectId) -> Result<(), ArchiveError> {
        let (dir, renamed) = (root.join(format!("project={project}")), root.join(format!("deleted={project}")));
        let if_there = |outcome: std::io::Result<()>| match outcome {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        };
        let remove = || {
            if !root.exists() {
                return Ok(());
            }
            if_there(files::remove_dir_all(&renamed))?;
            // Rename first, so that no reader finds a folder with a part of its files.
            if_there(files::rename(&dir, &renamed))?;
            if_there(files::remove_dir_all(&renamed))?;
            files::sync_dir(root)
        };
        remove().map_err(ArchiveError::io("remove", &dir))
    }

    /// The project's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The list of files.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Replaces the list of files, and keeps the floors. The new files must be durable.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The folder then has either the old or the new list.
    pub(crate) fn publish(&mut self, sealed_until: Position, files: Vec<FileEntry>) -> Result<(), ArchiveError> {
        self.replace_list(self.manifest.with_files(sealed_until, files).map_err(ArchiveError::Encode)?)
    }

    /// Replaces the lists of files and floors. The new files must be durable.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The folder then has either the old or the new list.
    pub(crate) fn publish_with(
        &mut self,
        sealed_until: Position,
        files: Vec<FileEntry>,
        floors: Vec<(Position, Day)>,
    ) -> Result<(), ArchiveError> {
        let manifest = self.manifest.with_files(sealed_until, files).and_then(|manifest| manifest.with_floors(floors));
        self.replace_list(manifest.map_err(ArchiveError::Encode)?)
    }

    /// Adds a base to the list. Its file must be durable. Rows up to its position may be removed
    /// afterwards.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The folder then has either the old or the new list.
    pub fn set_base(&mut self, base: BaseEntry) -> Result<(), ArchiveError> {
        self.replace_list(self.manifest.with_base(base))
    }

    fn replace_list(&mut self, manifest: Manifest) -> Result<(), ArchiveError> {
        manifest.write(&self.dir)?;
        self.manifest = manifest;
        Ok(())
    }

    /// Opens the base, if there is one.
    ///
    /// # Errors
    /// Same as [`BaseReader::open`].
    pub fn base(&self) -> Result<Option<BaseReader>, ArchiveError> {
        let project = self.manifest.project();
        let open = |base: &BaseEntry| self.fetched(&ListedFile::from(base), || BaseReader::open(&self.dir, project, base));
        self.manifest.base().map(open).transpose()
    }

    /// Opens a listed file.
    ///
    /// # Errors
    /// Same as [`ArchiveFile::open`].
    pub fn file(&self, entry: &FileEntry) -> Result<ArchiveFile, ArchiveError> {
        self.fetched(&ListedFile::from(entry), || ArchiveFile::open(&self.dir, self.manifest.project(), entry))
    }

    /// Opens a file, and fetches it first if it is not in the folder. It may disappear again before
    /// it is open.
    fn fetched<T>(&self, file: &ListedFile, open: impl Fn() -> Result<T, ArchiveError>) -> Result<T, ArchiveError> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            fetch_missing(&self.source, self.manifest.project(), &self.dir, file)?;
            match open() {
                Err(error) if self.is_to_be_fetched(&error) && attempts < MAX_FETCHES => {}
                opened => return opened,
            }
        }
    }

    /// Whether an error means a missing file that can be fetched.
    fn is_to_be_fetched(&self, error: &ArchiveError) -> bool {
        self.source.is_some() && matches!(error, ArchiveError::Damaged { reason: Damage::Missing, .. })
    }

    /// Calls `visit` with each row from the position `from` on, in order. Stops at the first error.
    ///
    /// # Errors
    /// The errors of [`ArchiveFile::open`] and of `visit`.
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

    /// Checks the length and the footer of each file and of the base, and with `whole` their
    /// SHA-256. Returns an error for each damaged file. Skips files that are not fetched yet.
    ///
    /// # Errors
    /// [`ArchiveError::Io`].
    pub fn damaged_files(&self, whole: bool) -> Result<Vec<ArchiveError>, ArchiveError> {
        let project = self.manifest.project();
        let is_here = |name: &str| self.source.is_none() || self.dir.join(name).exists();
        let base = self.manifest.base().filter(|base| is_here(&base.name()));
        let base = base.map(|base| verify_base(&self.dir, project, base, whole));
        let check = |entry: &FileEntry| if whole { verify(&self.dir, project, entry) } else { self.file(entry).map(drop) };
        let mut damaged = Vec::new();
        let files = self.manifest.files().iter().filter(|entry| is_here(&entry.name.to_string()));
        for outcome in base.into_iter().chain(files.map(check)) {
            match outcome {
                // It has left the folder in the meantime.
                Err(error) if self.is_to_be_fetched(&error) => {}
                Err(error) if error.is_damage() => damaged.push(error),
                other => other?,
            }
        }
        Ok(damaged)
    }

    /// The files that no list names: sources of merges, and leftovers of failed attempts.
    ///
    /// If a new list could not be made durable, it may be in the folder while this archive has the
    /// old one. So files in either list don't count.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] if the list in the folder is damaged; [`ArchiveError::Io`].
    pub fn left_overs(&self) -> Result<Vec<PathBuf>, ArchiveError> {
        let stored = Manifest::read(&self.dir, self.manifest.project())?;
        let lists = [Some(&self.manifest), stored.as_ref()];
        let listed = lists.into_iter().flatten().flat_map(Manifest::files).map(|entry| self.dir.join(entry.name.to_string()));
        let bases = lists.into_iter().flatten().filter_map(Manifest::base).map(|base| self.dir.join(base.name()));
        let listed: BTreeSet<PathBuf> = listed.chain(bases).chain([self.dir.join(MANIFEST_NAME)]).collect();
        let mut left = paths_in(&self.dir)?;
        left.retain(|path| !listed.contains(path));
        Ok(left)
    }

    /// Removes the files that [`Archive::left_overs`] lists. Readers with an open file can still
    /// read it.
    ///
    /// # Errors
    /// Same as [`Archive::left_overs`]; some files may remain.
    pub fn remove_left_overs(&self) -> Result<(), ArchiveError> {
        let left = self.left_overs()?;
        if !left.is_empty() {
            // Sync first, so that a power cut can't bring an old list back once its files are gone.
            files::sync_dir(&self.dir).map_err(ArchiveError::io("sync", &self.dir))?;
        }
        for path in left {
            files::remove_if_there(&path).map_err(ArchiveError::io("remove", &path))?;
        }
        Ok(())
    }
}

/// Whether a file in a project's folder belongs in the list.
pub(crate) fn is_listed(path: &Path) -> bool {
    let is_base = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BASE_PREFIX));
    is_base || path.extension().is_some_and(|extension| extension == "parquet")
}

/// The paths of lists, Parquet files, bases and temporary files in a project's folder and in its
/// months, in order.
pub(crate) fn paths_in(dir: &Path) -> Result<Vec<PathBuf>, ArchiveError> {
    let list = |dir: &Path| files::list(dir).map_err(ArchiveError::io("list", dir));
    let mut paths = Vec::new();
    for path in list(dir)? {
        let is_month = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("month="));
        if is_month && path.is_dir() { paths.extend(list(&path)?) } else { paths.push(path) }
    }
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        [MANIFEST_NAME, ".parquet", ".tmp"].iter().any(|end| name.ends_with(end)) || name.starts_with(BASE_PREFIX)
    };
    paths.retain(is_ours);
    paths.sort();
    Ok(paths)
}
