//! Writes a backup, file by file.

use std::io::Read;

use super::error::BackupError;
use super::manifest::{BackupFile, BackupManifest, BackupProject};

/// The target of a backup.
pub trait BackupTarget {
    /// Writes a file. Returns the SHA-256 of its contents in hexadecimal.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] if `contents` are not `bytes` bytes; the errors of reading and
    /// writing.
    fn file(&mut self, name: &str, bytes: u64, contents: &mut dyn Read) -> Result<String, BackupError>;

    /// Writes the checksums and then the list. When this returns, the backup is complete.
    ///
    /// # Errors
    /// Write errors. The backup is then not complete.
    fn finish(&mut self, list: &[u8], sums: &[u8]) -> Result<(), BackupError>;
}

/// Writes a backup to a target.
#[derive(Debug)]
pub struct BackupWriter<'t, T> {
    target: &'t mut T,
    manifest: BackupManifest,
}

impl<'t, T: BackupTarget> BackupWriter<'t, T> {
    /// Begins a backup. `manifest` is the list without files.
    pub fn new(target: &'t mut T, manifest: BackupManifest) -> Self {
        Self { target, manifest }
    }

    /// Sets the projects and their last positions, if they were not known at the beginning.
    pub fn set_projects(&mut self, projects: Vec<BackupProject>) {
        self.manifest.projects = projects;
    }

    /// Adds a file of `bytes` bytes. Returns its SHA-256.
    ///
    /// # Errors
    /// Same as [`BackupTarget::file`].
    pub fn add(&mut self, name: &str, bytes: u64, mut contents: impl Read) -> Result<String, BackupError> {
        let sha256 = self.target.file(name, bytes, &mut contents)?;
        self.manifest.files.push(BackupFile { name: name.to_owned(), bytes, sha256: sha256.clone() });
        Ok(sha256)
    }

    /// Completes the backup.
    ///
    /// # Errors
    /// Same as [`BackupTarget::finish`].
    pub fn finish(mut self) -> Result<BackupManifest, BackupError> {
        self.manifest.files.sort_by(|one, other| one.name.cmp(&other.name));
        let (list, sums) = self.manifest.encode()?;
        self.target.finish(&list, &sums)?;
        Ok(self.manifest)
    }
}
