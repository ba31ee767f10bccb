//! The one place where the storage and the archive touch files: open files, small files written whole or not at all, and directories
//! that only their owner reads.
//!
//! Everything goes through here (but for what sled does itself), so that a test can make any operation fail: see
//! `switch`, which exists in tests and with the feature `fault-injection` only.

mod cache;
mod file;
mod operation;
#[cfg(any(test, feature = "fault-injection"))]
pub mod switch;
#[cfg(not(any(test, feature = "fault-injection")))]
#[path = "no_switch.rs"]
mod switch;

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) use cache::{CachedFile, Dir, OpenFiles};
pub use file::File;
pub use operation::Operation;
pub(crate) use switch::run_at;

/// The mode of files that hold data: the owner reads and writes, nobody else does anything.
pub const PRIVATE_FILE: u32 = 0o600;

/// The mode of directories.
pub const PRIVATE_DIR: u32 = 0o700;

/// Replaces the file at `path` by one with these contents. After a crash there is the old one or the new one, whole;
/// once this returns, the new one.
///
/// # Errors
/// Whatever the operating system says. There is then the old file or the new one, whole; which of them may change once
/// more at a crash.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let mut name = OsString::from(path.file_name().ok_or_else(unnamed)?);
    name.push(".tmp");
    let tmp = path.with_file_name(name);
    let file = File::create(&tmp)?;
    // Also where an earlier attempt left a file with another mode.
    let write = || file.set_mode(mode).and_then(|()| file.write_all_at(bytes, 0)).and_then(|()| file.sync_all());
    if let Err(error) = write().and_then(|()| rename(&tmp, path)) {
        // On a full disk the half of it would take the room that others need.
        let _ = remove_file(&tmp);
        return Err(error);
    }
    sync_dir(parent_of(path))
}

/// Writes a few megabytes to `dir` and removes them again: on a full disk sled may panic over a database that is sound.
///
/// # Errors
/// Whatever the operating system says.
pub(crate) fn probe_space(dir: &Path) -> io::Result<()> {
    /// More than sled writes while it opens.
    const PROBE_BYTES: usize = 4 << 20;
    let probe = dir.join("PROBE");
    write_atomically(&probe, &vec![0; PROBE_BYTES], PRIVATE_FILE)?;
    remove_file(&probe)
}

/// Makes the names in a directory durable: what was created, renamed or removed in it.
///
/// # Errors
/// Whatever the operating system says.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Creates a directory (and those above it) that only its owner may enter, durably. One that exists is left as it is.
///
/// # Errors
/// Whatever the operating system says.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    run_at(Operation::CreateDir, dir, || DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir))?;
    sync_dir(parent_of(dir))
}

/// As [`create_private_dir`]; a directory that exists is [made private](make_private).
///
/// # Errors
/// Whatever the operating system says when the directory is created.
pub fn make_private_dir(dir: &Path) -> io::Result<()> {
    create_private_dir(dir)?;
    make_private(dir);
    Ok(())
}

/// Takes away what group and others may do with a file or a directory. Where the system refuses, a warning says so.
pub fn make_private(path: &Path) {
    let mode = || Ok::<_, io::Error>(fs::metadata(path)?.permissions().mode());
    let outcome = mode().and_then(|mode| match mode & 0o077 {
        0 => Ok(()),
        _ => fs::set_permissions(path, Permissions::from_mode(mode & 0o7700)),
    });
    if let Err(error) = outcome {
        tracing::warn!(path = %path.display(), %error, "could not keep other users from reading this");
    }
}

/// Renames a file or a directory.
///
/// # Errors
/// Whatever the operating system says.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    run_at(Operation::Rename, from, || fs::rename(from, to))
}

/// Removes a file.
///
/// # Errors
/// Whatever the operating system says.
pub fn remove_file(path: &Path) -> io::Result<()> {
    run_at(Operation::Remove, path, || fs::remove_file(path))
}

/// Removes a file, if it is there.
pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Removes a directory and all that is in it.
pub(crate) fn remove_dir_all(dir: &Path) -> io::Result<()> {
    run_at(Operation::Remove, dir, || fs::remove_dir_all(dir))
}

/// The paths of what a directory holds, in no order.
///
/// # Errors
/// Whatever the operating system says.
pub fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    run_at(Operation::List, dir, || fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.path())).collect())
}

/// The contents of a file.
///
/// # Errors
/// Whatever the operating system says.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&File::open(path)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The contents of a file that holds text.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a small file that need not survive a crash.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all_at(bytes, 0)
}

/// The directory that a path lies in; the current one for a bare name.
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
    fn a_file_is_replaced_whole_with_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        write_atomically(&path, b"one, and long", PRIVATE_FILE).unwrap();
        write_atomically(&path, b"two", PRIVATE_FILE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_FILE);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_left_over_of_an_earlier_attempt_does_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(dir.path().join("file.tmp"), "something much longer than what comes").unwrap();
        write_atomically(&path, b"new", PRIVATE_FILE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, PRIVATE_FILE);
    }

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
