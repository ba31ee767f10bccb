//! The directory with the second names of the files in a backup.

use std::io;
use std::path::{Path, PathBuf};

use headcount_storage::files::{create_private_dir, remove_dir_all};

use super::error::BackupFailure;

const STAGING_NAME: &str = "backup.tmp";

/// The directory. It is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Staging {
    /// Its path.
    pub(super) dir: PathBuf,
}

impl Staging {
    /// Creates it in `data_dir`. Only one exists at a time.
    pub(super) fn create(data_dir: &Path) -> Result<Self, BackupFailure> {
        let dir = data_dir.join(STAGING_NAME);
        remove_left_over(data_dir).map_err(BackupFailure::io("remove", &dir))?;
        create_private_dir(&dir).map_err(BackupFailure::io("create", &dir))?;
        Ok(Self { dir })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove_dir_all(&self.dir) {
            // The next backup or the next start removes it.
            tracing::warn!(path = %self.dir.display(), %error, "what a backup needed is left, and keeps files from being freed");
        }
    }
}

/// Removes the directory of a backup that the end of the process interrupted.
pub(crate) fn remove_left_over(data_dir: &Path) -> io::Result<()> {
    let dir = data_dir.join(STAGING_NAME);
    if dir.exists() { remove_dir_all(&dir) } else { Ok(()) }
}
