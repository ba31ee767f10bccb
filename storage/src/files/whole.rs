//! Small files that are read, replaced and removed as a whole.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::PRIVATE_FILE;
use super::directory::{parent_of, rename, sync_dir};
use super::file::File;
use super::operation::Operation;
use super::switch::run_at;

/// Replaces the file at `path` by a file with these contents. When this returns, the new file is
/// durable. After a crash either the old or the new file exists, complete.
///
/// # Errors
/// Any error of the operating system. Then either the old or the new file exists, complete; a crash
/// may still change which one.
pub fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let unnamed = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name");
    let mut name = OsString::from(path.file_name().ok_or_else(unnamed)?);
    name.push(".tmp");
    let tmp = path.with_file_name(name);
    let file = File::create(&tmp)?;
    // A leftover file of an earlier attempt may have another mode.
    let write = || file.set_mode(mode).and_then(|()| file.write_all_at(bytes, 0)).and_then(|()| file.sync_all());
    if let Err(error) = write().and_then(|()| rename(&tmp, path)) {
        // On a full disk, other files need the space.
        let _ = remove_file(&tmp);
        return Err(error);
    }
    sync_dir(parent_of(path))
}

/// Writes a few megabytes to `dir` and removes them. On a full disk, sled may panic although its
/// database is intact.
///
/// # Errors
/// Any error of the operating system.
pub(crate) fn probe_space(dir: &Path) -> io::Result<()> {
    /// More than sled writes while it opens.
    const PROBE_BYTES: usize = 4 << 20;
    let probe = dir.join("PROBE");
    write_atomically(&probe, &vec![0; PROBE_BYTES], PRIVATE_FILE)?;
    remove_file(&probe)
}

/// Removes a file.
///
/// # Errors
/// Any error of the operating system.
pub fn remove_file(path: &Path) -> io::Result<()> {
    run_at(Operation::Remove, path, || fs::remove_file(path))
}

/// Removes a file if it exists.
///
/// # Errors
/// Any error of the operating system except [`io::ErrorKind::NotFound`].
pub fn remove_if_there(path: &Path) -> io::Result<()> {
    match remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads a file.
///
/// # Errors
/// Any error of the operating system.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    (&File::open(path)?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a file, if it exists.
///
/// # Errors
/// Any error of the operating system except [`io::ErrorKind::NotFound`].
pub fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Returns the length of a file in bytes, and its modification time in seconds of the file system's
/// clock.
///
/// # Errors
/// Any error of the operating system.
pub fn length_and_time(path: &Path) -> io::Result<(u64, i64)> {
    run_at(Operation::Read, path, || fs::metadata(path)).map(|about| (about.len(), about.mtime()))
}

/// Reads a text file.
pub(crate) fn read_to_string(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Writes a small file that need not survive a crash.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all_at(bytes, 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
}
