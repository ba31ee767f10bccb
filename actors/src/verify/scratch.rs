//! The directory for what is recomputed.

use std::io;
use std::path::{Path, PathBuf};

use headcount_domain::fault::Fault;
use headcount_storage::files::{create_private_dir, remove_dir_all};

const NAME: &str = "verify-tmp";

/// The directory, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// Creates it in `data_dir`. There is one at a time.
    pub(super) fn create(data_dir: &Path) -> Result<Self, Fault> {
        let dir = data_dir.join(NAME);
        let created = remove_scratch(data_dir).and_then(|()| create_private_dir(&dir));
        created.map_err(|error| Fault::io(format!("{} could not be created: {error}", dir.display())))?;
        Ok(Self { dir })
    }

    /// Its path.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_dir_all(&self.dir) {
            // The next verification or the next start removes it.
            tracing::warn!(path = %self.dir.display(), %error, "what a verification recomputed is left");
        }
    }
}

/// Removes what a verification left that was cut short by the end of the process.
pub(crate) fn remove_scratch(data_dir: &Path) -> io::Result<()> {
    let dir = data_dir.join(NAME);
    if dir.exists() { remove_dir_all(&dir) } else { Ok(()) }
}
