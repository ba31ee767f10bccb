//! Locks a data directory for one process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::{PRIVATE_FILE, create_private_dir};

/// The file that is locked.
pub(crate) const LOCK_NAME: &str = "LOCK";

/// The reason why a data directory could not be locked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LockError {
    /// Another process has locked it.
    #[error("the data directory {} is in use by another process", dir.display())]
    InUse {
        /// The directory.
        dir: PathBuf,
    },
    /// The operating system returned an error.
    #[error("the data directory {} could not be locked: {source}", dir.display())]
    Io {
        /// The directory.
        dir: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// A lock on a data directory, until it is dropped. When the process ends, the kernel releases it
/// in any case.
#[derive(Debug)]
pub struct DirLock {
    _file: File,
}

impl DirLock {
    /// Locks the directory; creates it with mode 0700 if it does not exist.
    ///
    /// # Errors
    /// [`LockError::InUse`], without waiting, if another process or another part of this one has
    /// locked it.
    pub fn acquire(dir: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { dir: dir.to_owned(), source };
        create_private_dir(dir).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(PRIVATE_FILE);
        let file = options.open(dir.join(LOCK_NAME)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(LockError::InUse { dir: dir.to_owned() }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder() {
        let dir = tempfile::tempdir().unwrap();
        let held = DirLock::acquire(dir.path()).unwrap();
        let refused = DirLock::acquire(dir.path()).unwrap_err();
        assert!(refused.to_string().ends_with("is in use by another process"), "{refused}");
        drop(held);
        DirLock::acquire(dir.path()).unwrap();
    }
}
