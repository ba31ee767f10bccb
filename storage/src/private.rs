//! Makes a data directory private to its owner.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::files::{PRIVATE_DIR, PRIVATE_FILE};
use crate::format::FILE_NAME;

/// The result of [`narrow`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Narrowed {
    /// The number of files and directories whose permissions of other users were removed.
    pub narrowed: u64,
    /// The number of those that stay open to others because they belong to another user.
    pub failed: u64,
}

/// Removes all permissions of the group and of others from a data directory and everything in it.
/// Does not follow links. Leaves a directory unchanged if it is neither a data directory nor empty.
/// A missing directory is not an error.
///
/// # Errors
/// The directory can't be read.
pub fn narrow(dir: &Path) -> io::Result<Narrowed> {
    let mut narrowed = Narrowed::default();
    match fs::read_dir(dir) {
        Ok(mut entries) => {
            let is_foreign = |entry: io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() != "LOCK");
            if !dir.join(FILE_NAME).exists() && entries.any(is_foreign) {
                return Ok(narrowed);
            }
        }
        // Opening it reports that.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(narrowed),
        Err(error) => return Err(error),
    }
    // `dir` itself may be a link.
    let dir = dir.canonicalize()?;
    narrow_tree(&dir, &mut narrowed)?;
    Ok(narrowed)
}

fn narrow_tree(path: &Path, narrowed: &mut Narrowed) -> io::Result<()> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        // A running server removes files.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if metadata.is_symlink() {
        return Ok(());
    }
    let mode = metadata.permissions().mode() & 0o7777;
    let allowed = if metadata.is_dir() { PRIVATE_DIR } else { PRIVATE_FILE };
    if mode & 0o077 != 0 {
        match fs::set_permissions(path, fs::Permissions::from_mode(mode & allowed)) {
            Ok(()) => narrowed.narrowed += 1,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => narrowed.failed += 1,
        }
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            narrow_tree(&entry?.path(), narrowed)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn make(path: &Path, mode: u32) {
        if mode & 0o100 != 0 {
            fs::create_dir(path).unwrap();
        } else {
            fs::write(path, "x").unwrap();
        }
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_data_directory_and_everything_in_it_becomes_private() {
        let outer = tempfile::tempdir().unwrap();
        let outside = outer.path().join("outside");
        make(&outside, 0o644);
        let dir = outer.path().join("data");
        for (name, mode) in [("", 0o755), ("FORMAT", 0o644), ("keys", 0o755), ("keys/hash.key", 0o640), ("log", 0o700)] {
            make(&dir.join(name), mode);
        }
        make(&dir.join("log/1.seg"), 0o600);
        std::os::unix::fs::symlink(&outside, dir.join("link")).unwrap();
        assert_eq!(narrow(&dir).unwrap(), Narrowed { narrowed: 4, failed: 0 });
        for (name, expected) in
            [("", 0o700), ("FORMAT", 0o600), ("keys", 0o700), ("keys/hash.key", 0o600), ("log", 0o700), ("log/1.seg", 0o600)]
        {
            assert_eq!(mode(&dir.join(name)), expected, "{name}");
        }
        assert_eq!(mode(&outside), 0o644);
        assert_eq!(narrow(&dir).unwrap(), Narrowed::default());
    }

    #[test]
    fn what_is_no_data_directory_stays_as_it_is() {
        let outer = tempfile::tempdir().unwrap();
        let (empty, other) = (outer.path().join("empty"), outer.path().join("other"));
        make(&empty, 0o755);
        make(&other, 0o755);
        make(&other.join("thesis.txt"), 0o644);
        assert_eq!(narrow(&empty).unwrap().narrowed, 1);
        assert_eq!(mode(&empty), 0o700);
        assert_eq!(narrow(&other).unwrap(), Narrowed::default());
        assert_eq!((mode(&other), mode(&other.join("thesis.txt"))), (0o755, 0o644));
        assert_eq!(narrow(&outer.path().join("none")).unwrap(), Narrowed::default());
    }
}
