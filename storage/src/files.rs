//! Small files, written whole or not at all, and directories that only their owner reads.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The mode of files that hold data: the owner reads and writes, nobody else does anything.
pub const PRIVATE_FILE: u32 = 0o600;

/// The mode of directories.
pub const PRIVATE_DIR: u32 = 0o700;

/// Replaces the file at `path` by one with these contents. After a crash there is the old one or the new one, whole;
/// once this returns, the new one.
///
/// # Errors
/// Whatever the operating system says; the old file is then untouched.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file");
    let mut name = OsString::from(path.file_name().ok_or_else(unnamed)?);
    name.push(".tmp");
    let tmp = path.with_file_name(name);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&tmp)?;
    // A left-over of an earlier attempt keeps its own mode otherwise.
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&tmp, path)?;
    sync_dir(parent_of(path))
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
    DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir)?;
    sync_dir(parent_of(dir))
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
}
