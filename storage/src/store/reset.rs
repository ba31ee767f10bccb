//! Starting over when a store is damaged: the directory is moved aside, and the caller rebuilds from the log.

use std::path::{Path, PathBuf};

use super::StoreError;
use crate::files::{self, PRIVATE_FILE, parent_of, sync_dir, write_atomically};

/// How many damaged stores are kept for an inquiry.
const KEPT: usize = 2;

/// More than sled writes while it opens.
const PROBE_BYTES: usize = 4 << 20;

/// In what state a store was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// As it was left.
    Clean,
    /// There was none; it is new and empty.
    Created,
    /// It was damaged; a new and empty one has taken its place.
    Reset {
        /// What was found.
        reason: String,
        /// Where the damaged one lies now.
        moved_to: PathBuf,
    },
}

/// Opens the store in `dir`; a damaged one is moved to `<dir>.damaged-N` (the last two are kept) and an empty one begun.
/// `open` also says whether the store is new.
pub(super) fn open_or_reset<T>(
    dir: &Path,
    open: impl Fn(&Path) -> Result<(T, bool), StoreError>,
) -> Result<(T, Opened), StoreError> {
    match open(dir) {
        Ok((store, true)) => Ok((store, Opened::Created)),
        Ok((store, false)) => Ok((store, Opened::Clean)),
        Err(StoreError::Damaged { what: reason }) => {
            probe_space(dir)?;
            let moved_to = move_aside(dir)?;
            let (store, _new) = open(dir)?;
            Ok((store, Opened::Reset { reason, moved_to }))
        }
        Err(error) => Err(error),
    }
}

/// On a full disk sled may panic over a store that is sound. So before one is given up, there must be room to write.
pub(super) fn probe_space(dir: &Path) -> Result<(), StoreError> {
    let probe = dir.join("PROBE");
    write_atomically(&probe, &vec![0; PROBE_BYTES], PRIVATE_FILE)
        .and_then(|()| files::remove_file(&probe))
        .map_err(StoreError::io("write to its disk"))
}

/// Moves whatever is in `dir` aside, as a damaged store.
pub(super) fn move_aside(dir: &Path) -> Result<PathBuf, StoreError> {
    let refused = || StoreError::Io { action: "name the damaged store".into(), source: std::io::ErrorKind::InvalidInput.into() };
    let parent = parent_of(dir);
    let prefix = format!("{}.damaged-", dir.file_name().and_then(|name| name.to_str()).ok_or_else(refused)?);
    let mut earlier = Vec::new();
    for path in files::list(parent).map_err(StoreError::io("list damaged stores"))? {
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_prefix(&prefix))
            .and_then(|number| number.parse::<u64>().ok());
        earlier.extend(number);
    }
    earlier.sort_unstable();
    let next = earlier.last().map_or(1, |last| last + 1);
    let moved_to = parent.join(format!("{prefix}{next}"));
    files::rename(dir, &moved_to).map_err(StoreError::io("move the damaged store aside"))?;
    sync_dir(parent).map_err(StoreError::io("sync a directory"))?;
    for number in earlier.iter().rev().skip(KEPT - 1) {
        files::remove_dir_all(&parent.join(format!("{prefix}{number}")))
            .map_err(StoreError::io("remove an old damaged store"))?;
    }
    Ok(moved_to)
}
