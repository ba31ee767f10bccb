//! Copies of data directories, as a kill would leave them.

use std::path::Path;
use std::{fs, io};

/// How often a copy begins anew.
const TRIES: usize = 50;

/// Copies a directory. Files that an engine removes meanwhile, such as merged tables, make it begin
/// anew.
pub(crate) fn copy(from: &Path, to: &Path) {
    for _ in 1..TRIES {
        match copy_once(from, to) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => fs::remove_dir_all(to).unwrap(),
            copied => return copied.unwrap(),
        }
    }
    copy_once(from, to).unwrap();
}

fn copy_once(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, target) = (entry.as_ref().unwrap().path(), to.join(entry?.file_name()));
        if path.is_dir() {
            copy_once(&path, &target)?;
        } else {
            let _bytes = fs::copy(path, target)?;
        }
    }
    Ok(())
}
