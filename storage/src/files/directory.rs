//! Directories and names.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::PRIVATE_DIR;
use super::file::File;
use super::operation::Operation;
use super::switch::run_at;

/// Makes the entries of a directory durable after files were created, renamed or removed in it.
///
/// # Errors
/// Any error of the operating system.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a directory and its parents, durably, with access for the owner only. Leaves an existing
/// directory unchanged.
///
/// # Errors
/// Any error of the operating system.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    run_at(Operation::CreateDir, dir, || DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir))?;
    sync_dir(parent_of(dir))
}

/// Like [`create_private_dir`], but also [makes an existing directory private](make_private).
///
/// # Errors
/// Any error of creating the directory.
pub fn make_private_dir(dir: &Path) -> io::Result<()> {
    create_private_dir(dir)?;
    make_private(dir);
    Ok(())
}

/// Removes all permissions of the group and of others from a file or a directory. Logs a warning if
/// the system refuses.
pub fn make_private(path: &Path) {
    let mode = || Ok::<_, io::Error>(fs::metadata(path)?.permissions().mode());
    let outcome = mode().and_then(|mode| match mode & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(mode & 0o7700)),
    });
    if let Err(error) = outcome {
        tracing::warn!(path = %path.display(), %error, "could not remove the permissions of other users");
    }
}

/// Renames a file or a directory.
///
/// # Errors
/// Any error of the operating system.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    run_at(Operation::Rename, from, || fs::rename(from, to))
}

/// Creates the hard link `to` to the file `from`.
///
/// # Errors
/// Any error of the operating system.
pub fn hard_link(from: &Path, to: &Path) -> io::Result<()> {
    run_at(Operation::Link, to, || fs::hard_link(from, to))
}

/// Removes a directory and everything in it.
///
/// # Errors
/// Any error of the operating system.
pub fn remove_dir_all(dir: &Path) -> io::Result<()> {
    run_at(Operation::Remove, dir, || fs::remove_dir_all(dir))
}

/// The paths of the entries of a directory, in no particular order.
///
/// # Errors
/// Any error of the operating system.
pub fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    run_at(Operation::List, dir, || fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect())
}

/// The directory of a path; the current one for a bare name.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("a/b");
        create_private_dir(&inner).unwrap();
        create_private_dir(&inner).unwrap();
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, PRIVATE_DIR);
    }

    #[test]
    fn what_was_open_to_others_is_made_private() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::set_permissions(&inner, Permissions::from_mode(0o755)).unwrap();
        make_private_dir(&inner).unwrap();
        assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, PRIVATE_DIR);
    }
}
