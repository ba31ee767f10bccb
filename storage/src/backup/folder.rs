//! A backup that is written to a directory.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::complete::Backup;
use super::copy::{Hashed, for_each_part};
use super::error::BackupError;
use super::manifest::{self, MANIFEST_NAME, SUMS_NAME};
use super::target::BackupTarget;
use crate::files::{self, File, PRIVATE_FILE, create_private_dir, sync_dir, write_atomically};

/// The target directory of a backup. If it is dropped before the backup is complete, it removes its
/// files.
#[derive(Debug)]
pub struct BackupFolder {
    dir: PathBuf,
    previous: Option<Backup>,
    /// How many bytes of the backup are links to the previous one.
    pub linked_bytes: u64,
    /// The directories with new files.
    dirs: BTreeSet<PathBuf>,
    /// The new entries directly in `dir`.
    entries: BTreeSet<PathBuf>,
    is_complete: bool,
}

impl BackupFolder {
    /// Begins a backup in `dir`, which must be empty or missing. Files with the same contents in
    /// `previous` become hard links to them, if the file system supports that.
    ///
    /// # Errors
    /// [`BackupError::NotEmpty`] and [`BackupError::Io`].
    pub fn create(dir: &Path, previous: Option<Backup>) -> Result<Self, BackupError> {
        create_private_dir(dir).map_err(BackupError::io("create", dir))?;
        if !files::list(dir).map_err(BackupError::io("list", dir))?.is_empty() {
            return Err(BackupError::NotEmpty { dir: dir.to_owned() });
        }
        let dirs = BTreeSet::from([dir.to_owned()]);
        Ok(Self { dir: dir.to_owned(), previous, linked_bytes: 0, dirs, entries: BTreeSet::new(), is_complete: false })
    }

    /// Creates the directories of the file `name`, and returns its path.
    fn path(&mut self, name: &str) -> Result<PathBuf, BackupError> {
        let path = self.dir.join(name);
        self.entries.insert(self.dir.join(name.split('/').next().unwrap_or(name)));
        let mut missing: Vec<&Path> = path.ancestors().skip(1).take_while(|dir| !self.dirs.contains(*dir)).collect();
        while let Some(dir) = missing.pop() {
            create_private_dir(dir).map_err(BackupError::io("create", dir))?;
            self.dirs.insert(dir.to_owned());
        }
        Ok(path)
    }

    /// Replaces a file by a link to the same file of the previous backup, if that has it unchanged.
    fn link(&mut self, name: &str, path: &Path, sha256: &str) -> Result<bool, BackupError> {
        let Some(previous) = &self.previous else { return Ok(false) };
        if !previous.holds(name, sha256)? {
            return Ok(false);
        }
        let (from, link) = (previous.path(name), self.dir.join("LINK"));
        self.entries.insert(link.clone());
        match files::hard_link(&from, &link) {
            Ok(()) => {}
            Err(error) if cannot_link(&error) => return Ok(false),
            Err(error) => return Err(BackupError::io("link", path)(error)),
        }
        files::rename(&link, path).map_err(BackupError::io("rename", &link))?;
        Ok(true)
    }

    /// Removes the written files, the list first. Logs errors: without a list the rest is not a
    /// backup.
    fn discard(&self) {
        let remove = |path: &Path| match path.symlink_metadata() {
            Ok(about) if about.is_dir() => files::remove_dir_all(path),
            Ok(_) => files::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        };
        // A list that was being written has another name.
        let lists = [MANIFEST_NAME, "manifest.json.tmp", SUMS_NAME, "SHA256SUMS.tmp"].map(|name| self.dir.join(name));
        for path in lists.iter().chain(&self.entries) {
            if let Err(error) = remove(path) {
                tracing::warn!(path = %path.display(), %error, "could not remove a part of a failed backup");
            }
        }
    }
}

/// Whether links are impossible here, as opposed to a failure.
fn cannot_link(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let impossible = [Errno::XDEV, Errno::PERM, Errno::MLINK, Errno::OPNOTSUPP, Errno::NOSYS];
    Errno::from_io_error(error).is_some_and(|errno| impossible.contains(&errno))
}

impl BackupTarget for BackupFolder {
    fn file(&mut self, name: &str, bytes: u64, contents: &mut dyn Read) -> Result<String, BackupError> {
        if !manifest::is_allowed(name) {
            return Err(BackupError::damaged(name, "is not a file of a backup"));
        }
        let path = self.path(name)?;
        if path.exists() {
            return Err(BackupError::damaged(name, "comes twice"));
        }
        let file = File::create(&path).map_err(BackupError::io("create", &path))?;
        let (mut hashed, mut offset) = (Hashed::new(contents), 0);
        for_each_part((&mut hashed).take(bytes + 1), BackupError::io_of("read", name), |part| {
            file.write_all_at(part, offset).map_err(BackupError::io("write", &path))?;
            offset += part.len() as u64;
            Ok(())
        })?;
        if hashed.bytes != bytes {
            return Err(BackupError::damaged(name, format!("does not have {bytes} bytes")));
        }
        let sha256 = hashed.sha256();
        if self.link(name, &path, &sha256)? {
            self.linked_bytes += bytes;
        } else {
            file.sync_all().map_err(BackupError::io("sync", &path))?;
        }
        Ok(sha256)
    }

    fn finish(&mut self, list: &[u8], sums: &[u8]) -> Result<(), BackupError> {
        for dir in &self.dirs {
            sync_dir(dir).map_err(BackupError::io("sync", dir))?;
        }
        for (name, bytes) in [(SUMS_NAME, sums), (MANIFEST_NAME, list)] {
            let path = self.dir.join(name);
            write_atomically(&path, bytes, PRIVATE_FILE).map_err(BackupError::io("write", &path))?;
        }
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for BackupFolder {
    fn drop(&mut self) {
        if !self.is_complete {
            self.discard();
        }
    }
}
