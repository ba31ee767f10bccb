//! Collects the files of a data directory.

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use headcount_archive::{ArchiveError, Damage, MANIFEST_NAME, Manifest};
use headcount_common::local::{item_names, kind_dir};
use headcount_domain::ProjectId;
use headcount_storage::backup::{BackupError, BackupTarget, BackupWriter};
use headcount_storage::files::{File, create_private_dir, hard_link, list, remove_dir_all};
use headcount_storage::log::LogFile;

use super::error::BackupFailure;
use super::staging::Staging;
use crate::intake_counts::MARK;

const ARCHIVE_DIR: &str = "archive";
/// The number of attempts to read a project's list while its files are being merged.
const ATTEMPTS: usize = 16;

/// A file of a backup.
#[derive(Debug)]
pub(super) struct CollectedFile {
    /// Its path in the data directory.
    pub(super) name: String,
    /// Where it can be read.
    pub(super) path: PathBuf,
    /// The length of the part that belongs to the backup.
    pub(super) bytes: u64,
    /// Its SHA-256, if a list of the data directory has it.
    pub(super) sha256: Option<String>,
}

impl CollectedFile {
    /// Writes it to a backup.
    ///
    /// # Errors
    /// The errors of reading and writing; [`BackupError::Damaged`] if it differs from its list.
    pub(super) fn add_to<T: BackupTarget>(&self, writer: &mut BackupWriter<'_, T>) -> Result<(), BackupError> {
        let Self { name, path, bytes, sha256 } = self;
        let file = File::open(path).map_err(|source| BackupError::Io { doing: "open", path: path.clone(), source })?;
        let written = writer.add(name, *bytes, (&file).take(*bytes))?;
        if sha256.as_ref().is_some_and(|expected| *expected != written) {
            let reason = "in the data directory does not match the archive's list".to_owned();
            return Err(BackupError::Damaged { name: name.clone(), reason });
        }
        Ok(())
    }
}

/// Collects files, in place or under second names.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    data_dir: &'a Path,
    staging: Option<&'a Staging>,
    dirs: BTreeSet<PathBuf>,
    /// The files so far.
    pub(super) files: Vec<CollectedFile>,
}

impl<'a> Collector<'a> {
    /// Collects files of `data_dir`: in place without `staging`, for a directory that no process
    /// changes.
    pub(super) fn new(data_dir: &'a Path, staging: Option<&'a Staging>) -> Self {
        Self { data_dir, staging, dirs: BTreeSet::new(), files: Vec::new() }
    }

    /// Returns the path at which the file `name` is read, after creating its directory.
    fn place(&mut self, name: &str) -> Result<PathBuf, BackupFailure> {
        let Some(staging) = self.staging else { return Ok(self.data_dir.join(name)) };
        let path = staging.dir.join(name);
        if let Some(parent) = path.parent()
            && self.dirs.insert(parent.to_owned())
        {
            create_private_dir(parent).map_err(BackupFailure::io("create", parent))?;
        }
        Ok(path)
    }

    fn push(&mut self, name: &str, path: PathBuf, bytes: Option<u64>, sha256: Option<String>) -> Result<(), BackupFailure> {
        let length = || File::open(&path).and_then(|file| file.len()).map_err(BackupFailure::io("inspect", &path));
        let bytes = bytes.map_or_else(length, Ok)?;
        self.files.push(CollectedFile { name: name.to_owned(), path, bytes, sha256 });
        Ok(())
    }

    /// Takes a file that is only ever replaced as a whole, or whose first `bytes` never change.
    /// Returns `false` if it doesn't exist.
    pub(super) fn take(&mut self, name: &str, bytes: Option<u64>, sha256: Option<String>) -> Result<bool, BackupFailure> {
        let (from, path) = (self.data_dir.join(name), self.place(name)?);
        let found = if self.staging.is_some() { link(&from, &path) } else { from.metadata().map(drop) };
        match found {
            Ok(()) => self.push(name, path, bytes, sha256).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(BackupFailure::io("link", &from)(error)),
        }
    }

    /// Takes the documents and values of a kind, as they were last written, without the mark of a
    /// process.
    pub(super) fn take_documents(&mut self, kind: &str) -> Result<(), BackupFailure> {
        let dir = kind_dir(self.data_dir, kind);
        let names = item_names(&dir).map_err(BackupFailure::io("list", &dir))?;
        for name in names.iter().filter(|name| name.strip_suffix(".json") != Some(MARK)) {
            self.take(&self.name_of(&dir.join(name)), None, None)?;
        }
        Ok(())
    }

    /// Takes the current contents of a file that other processes may write. Does nothing if it
    /// doesn't exist.
    pub(super) fn copy(&mut self, name: &str) -> Result<(), BackupFailure> {
        let (from, path) = (self.data_dir.join(name), self.place(name)?);
        let source = match File::open(&from) {
            Ok(source) => source,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(BackupFailure::io("open", &from)(error)),
        };
        if self.staging.is_some() {
            let copy = File::create(&path).map_err(BackupFailure::io("create", &path))?;
            io::copy(&mut &source, &mut &copy).map_err(BackupFailure::io("copy", &from))?;
        }
        self.push(name, path, None, None)
    }

    /// Takes the files of a log.
    pub(super) fn take_log(&mut self, files: &[LogFile]) -> Result<(), BackupFailure> {
        for LogFile { path, bytes } in files {
            let name = self.name_of(path);
            if !self.take(&name, Some(*bytes), None)? {
                return Err(BackupFailure::io("link", path)(io::ErrorKind::NotFound.into()));
            }
        }
        Ok(())
    }

    /// Takes the complete import journals.
    pub(super) fn copy_imports(&mut self) -> Result<(), BackupFailure> {
        for path in self.list("imports")? {
            if path.extension().is_some_and(|extension| extension == "ndjson") {
                self.copy(&self.name_of(&path))?;
            }
        }
        Ok(())
    }

    /// Takes the archive: first the list of all projects, then each project's list and its files.
    pub(super) fn take_archive(&mut self) -> Result<(), BackupFailure> {
        let (folders, lists): (Vec<_>, Vec<_>) = self.list(ARCHIVE_DIR)?.into_iter().partition(|path| path.is_dir());
        for path in lists.iter().filter(|path| path.extension().is_none_or(|extension| extension != "tmp")) {
            self.take(&self.name_of(path), None, None)?;
        }
        for folder in folders {
            let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if let Some(project) = name.strip_prefix("project=").and_then(|id| id.parse().ok()) {
                self.take_project(&format!("{ARCHIVE_DIR}/{name}"), project)?;
            }
        }
        Ok(())
    }

    fn take_project(&mut self, folder: &str, project: ProjectId) -> Result<(), BackupFailure> {
        let before = self.files.len();
        for _ in 0..ATTEMPTS {
            if self.try_project(folder, project)? {
                return Ok(());
            }
            // A file of the list was merged.
            self.files.truncate(before);
            if let Some(staging) = self.staging {
                let staged = staging.dir.join(folder);
                remove_dir_all(&staged).map_err(BackupFailure::io("remove", &staged))?;
                self.dirs.retain(|dir| !dir.starts_with(&staged));
            }
        }
        let path = self.data_dir.join(folder).join(MANIFEST_NAME);
        Err(BackupFailure::io("link what is named in", &path)(io::ErrorKind::NotFound.into()))
    }

    /// Returns `false` if a file of the list does not exist.
    fn try_project(&mut self, folder: &str, project: ProjectId) -> Result<bool, BackupFailure> {
        if !self.take(&format!("{folder}/{MANIFEST_NAME}"), None, None)? {
            return Ok(true);
        }
        // Reads the list that was taken, since the original may have been replaced.
        let taken = self.staging.map_or(self.data_dir, |staging| &staging.dir).join(folder);
        let manifest = Manifest::read(&taken, project)?;
        let base = manifest.iter().filter_map(Manifest::base).map(|base| (base.name(), base.bytes, &base.sha256));
        let files = manifest.iter().flat_map(Manifest::files).map(|file| (file.name.to_string(), file.bytes, &file.sha256));
        for (file, bytes, sha256) in base.chain(files) {
            if !self.take(&format!("{folder}/{file}"), Some(bytes), Some(sha256.clone()))? {
                return match self.staging {
                    Some(_) => Ok(false),
                    None => Err(ArchiveError::Damaged { file, reason: Damage::Missing }.into()),
                };
            }
        }
        Ok(true)
    }

    /// Returns the name in a backup of a file of the data directory.
    pub(super) fn name_of(&self, path: &Path) -> String {
        path.strip_prefix(self.data_dir).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The entries of a directory in order; none if it does not exist.
    fn list(&self, name: &str) -> Result<Vec<PathBuf>, BackupFailure> {
        let dir = self.data_dir.join(name);
        match list(&dir) {
            Ok(mut entries) => {
                entries.sort();
                Ok(entries)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(BackupFailure::io("list", &dir)(error)),
        }
    }
}

/// Links a file that may be replaced meanwhile: the kernel then reports that the former one does
/// not exist.
fn link(from: &Path, to: &Path) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match hard_link(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && from.exists() => {}
            linked => return linked,
        }
    }
    Err(io::Error::other("it is replaced again and again"))
}
