//! The directories of recomputed states.

use std::io;
use std::path::{Path, PathBuf};

use headcount_domain::{Fault, ProjectId};
use headcount_storage::files::{create_private_dir, list, remove_dir_all};

/// The directory of a verification, and the prefix of the directories of projects that are folded
/// again.
const VERIFY: &str = "verify-tmp";
const FOLD: &str = "fold-tmp";

/// A temporary directory. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Its path.
    pub(crate) dir: PathBuf,
}

impl Scratch {
    /// Creates the directory of a verification in `data_dir`. Only one exists at a time.
    pub(crate) fn for_verification(data_dir: &Path) -> Result<Self, Fault> {
        Self::create(data_dir, VERIFY)
    }

    /// Creates the directory of a project's fold in `data_dir`. Only one exists for each project;
    /// projects of several partitions may be folded at once.
    pub(crate) fn for_fold(data_dir: &Path, project: ProjectId) -> Result<Self, Fault> {
        Self::create(data_dir, &format!("{FOLD}.{project}"))
    }

    fn create(data_dir: &Path, name: &str) -> Result<Self, Fault> {
        let dir = data_dir.join(name);
        let created = remove(data_dir, name).and_then(|()| create_private_dir(&dir));
        created.map_err(|error| Fault::io(format!("{} could not be created: {error}", dir.display())))?;
        Ok(Self { dir })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove_dir_all(&self.dir) {
            // The next one of its kind or the next start removes it.
            tracing::warn!(path = %self.dir.display(), %error, "what was recomputed is left");
        }
    }
}

/// Removes directories that an ended process has left.
pub(crate) fn remove_scratch(data_dir: &Path) -> io::Result<()> {
    remove(data_dir, VERIFY)?;
    let is_fold = |path: &&PathBuf| path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(FOLD));
    list(data_dir)?.iter().filter(is_fold).try_for_each(|path| remove_dir_all(path))
}

fn remove(data_dir: &Path, name: &str) -> io::Result<()> {
    let dir = data_dir.join(name);
    if dir.exists() { remove_dir_all(&dir) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_that_are_folded_at_once_leave_each_other_alone() {
        let dir = tempfile::tempdir().unwrap();
        let [one, other] = [1, 2].map(|project| Scratch::for_fold(dir.path(), ProjectId(project)).unwrap());
        std::fs::write(one.dir.join("table"), "1").unwrap();
        drop(other);
        let again = Scratch::for_fold(dir.path(), ProjectId(2)).unwrap();
        assert!(one.dir.join("table").exists() && again.dir.exists());
        // A kill leaves them like this.
        std::mem::forget(again);
        std::mem::forget(one);
        std::fs::write(dir.path().join("FORMAT"), "").unwrap();
        remove_scratch(dir.path()).unwrap();
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["FORMAT"]);
    }
}
