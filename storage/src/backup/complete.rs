//! A complete backup.

use std::io;
use std::path::{Path, PathBuf};

use super::copy::{Hashed, for_each_part};
use super::error::BackupError;
use super::manifest::{BackupFile, BackupManifest, MANIFEST_NAME, SUMS_NAME};
use crate::files::{self, File};

/// A backup in a directory, with its list.
#[derive(Debug)]
pub struct Backup {
    dir: PathBuf,
    manifest: BackupManifest,
}

impl Backup {
    /// Opens the backup in `dir`. Reads its list and the checksums, not its files.
    ///
    /// # Errors
    /// [`BackupError::Incomplete`] if there is no list; [`BackupError::Damaged`] if the two files
    /// don't agree; [`BackupError::OtherFormat`]; [`BackupError::Io`].
    pub fn open(dir: &Path) -> Result<Self, BackupError> {
        let read = |name: &str| files::read(&dir.join(name));
        let list = match read(MANIFEST_NAME) {
            Ok(list) => list,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BackupError::Incomplete { dir: dir.to_owned() }),
            Err(error) => return Err(BackupError::io("read", &dir.join(MANIFEST_NAME))(error)),
        };
        let sums = match read(SUMS_NAME) {
            Ok(sums) => sums,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BackupError::damaged(SUMS_NAME, "is missing")),
            Err(error) => return Err(BackupError::io("read", &dir.join(SUMS_NAME))(error)),
        };
        Ok(Self { dir: dir.to_owned(), manifest: BackupManifest::decode(&list, &sums)? })
    }

    /// The list of its files.
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Checks the size and checksum of every file.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] names the first file that changed; [`BackupError::Io`].
    pub fn check(&self) -> Result<(), BackupError> {
        self.manifest.files.iter().try_for_each(|file| self.read(file, |_| Ok(())))
    }

    /// Whether the backup has a file with this name and these contents, in its list and on disk.
    pub(super) fn holds(&self, name: &str, sha256: &str) -> Result<bool, BackupError> {
        let found = self.manifest.files.binary_search_by(|file| file.name.as_str().cmp(name));
        let Some(file) = found.ok().and_then(|at| self.manifest.files.get(at)).filter(|file| file.sha256 == sha256) else {
            return Ok(false);
        };
        match self.read(file, |_| Ok(())) {
            Err(BackupError::Damaged { .. }) => Ok(false),
            checked => checked.map(|()| true),
        }
    }

    /// Passes the contents of a file to `write` in parts, then checks that they did not change.
    pub(super) fn read(&self, file: &BackupFile, write: impl FnMut(&[u8]) -> Result<(), BackupError>) -> Result<(), BackupError> {
        let BackupFile { name, bytes, sha256 } = file;
        let path = self.path(name);
        let opened = match File::open(&path) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(BackupError::damaged(name, "is missing")),
            Err(error) => return Err(BackupError::io("open", &path)(error)),
        };
        let length = opened.len().map_err(BackupError::io("inspect", &path))?;
        if length != *bytes {
            return Err(BackupError::damaged(name, format!("has {length} bytes instead of {bytes}")));
        }
        let mut contents = Hashed::new(&opened);
        for_each_part(&mut contents, BackupError::io_of("read", name), write)?;
        if contents.sha256() != *sha256 {
            return Err(BackupError::damaged(name, "does not match its checksum"));
        }
        Ok(())
    }
}
