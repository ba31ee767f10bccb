//! Copies of data directories, equal to the state after a kill.

use std::path::Path;
use std::{fs, io};

/// The number of attempts of a copy.
const TRIES: usize = 50;

/// Copies a directory. If an engine removes files meanwhile, such as merged tables, it starts
/// again.
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
