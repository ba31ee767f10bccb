//! Sets damaged directories aside, with the reason, and removes them later.
//!
//! Data that is derived from the log (the store, the index of external ids) is never removed when
//! it is found damaged. Its directory is renamed to `<name>.damaged-N` and gets a file with the
//! reason. Callers call [`remove_old`] after a successful start.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::{self, PRIVATE_FILE, parent_of, sync_dir, write_atomically};

/// The file with the reason, in a directory that was set aside. A directory without it is never
/// removed.
const REASON: &str = "REASON";

/// Renames `dir` to `<dir>.damaged-N`, adds the reason, and returns the new path. Nothing in it may
/// be open.
///
/// # Errors
/// Returns the error of the operating system; the directory is then still in its place.
pub fn move_aside(dir: &Path, reason: &str) -> io::Result<PathBuf> {
    write_atomically(&dir.join(REASON), format!("{reason}\n").as_bytes(), PRIVATE_FILE)?;
    let next = numbers(dir)?.last().map_or(1, |last| last + 1);
    let moved_to = numbered(dir, next)?;
    files::rename(dir, &moved_to)?;
    sync_dir(parent_of(dir))?;
    Ok(moved_to)
}

/// Removes directories that were set aside from `dir`, except the last `kept` and those without a
/// reason.
///
/// # Errors
/// Returns the error of the operating system.
pub fn remove_old(dir: &Path, kept: usize) -> io::Result<()> {
    for number in numbers(dir)?.iter().rev().skip(kept) {
        let path = numbered(dir, *number)?;
        if path.join(REASON).exists() {
            files::remove_dir_all(&path)?;
        }
    }
    Ok(())
}

fn numbered(dir: &Path, number: u64) -> io::Result<PathBuf> {
    Ok(parent_of(dir).join(format!("{}{number}", prefix(dir)?)))
}

fn prefix(dir: &Path) -> io::Result<String> {
    let name = dir.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the directory has no name"))?;
    Ok(format!("{name}.damaged-"))
}

/// The numbers in use, in order.
fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let prefix = prefix(dir)?;
    let mut taken = Vec::new();
    for path in files::list(parent_of(dir))? {
        let name = path.file_name().and_then(|name| name.to_str());
        taken.extend(name.and_then(|name| name.strip_prefix(&prefix)).and_then(|number| number.parse::<u64>().ok()));
    }
    taken.sort_unstable();
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn old_directories_are_removed_only_with_a_reason() {
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("store");
        for round in 1..=4 {
            fs::create_dir(&dir).unwrap();
            let moved_to = move_aside(&dir, &format!("round {round}")).unwrap();
            assert_eq!(moved_to, place.path().join(format!("store.damaged-{round}")));
            assert_eq!(fs::read_to_string(moved_to.join("REASON")).unwrap(), format!("round {round}\n"));
        }
        assert_eq!(numbers(&dir).unwrap(), [1, 2, 3, 4]);
        // From another program, or an older version.
        fs::remove_file(place.path().join("store.damaged-1/REASON")).unwrap();
        remove_old(&dir, 2).unwrap();
        assert_eq!(numbers(&dir).unwrap(), [1, 3, 4]);
    }
}
