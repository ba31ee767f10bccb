//! Removes what a node of a cluster has of events if it was away for so long that the control log
//! no longer has all deletions and erasures since. Brokers and the bucket have all events.

use std::path::Path;

use headcount_control::{Registry, RegistryError};
use headcount_storage::{aside, files};

use super::derived::derived_dirs;
use crate::local_remains::LocalRemains;

/// What has events, except for the directories of derived data.
const COPIES: [&str; 3] = ["archive", "imports", "dead-letters.ndjson"];

/// Removes the copies in `dir` if the log lacks deletions and erasures that are not noted there.
/// Nothing uses the copies yet.
///
/// # Errors
/// Returns a [`RegistryError`].
pub(super) fn remove_outdated_copies(dir: &Path, registry: &Registry) -> Result<(), RegistryError> {
    let last_removed = registry.log_begins()? - 1;
    LocalRemains::begin_after(dir, last_removed, || {
        tracing::info!(last_removed, "this node is new, or was away: it removes its copies of events, if there are any");
        let derived = derived_dirs(dir);
        derived.iter().try_for_each(|path| aside::remove_old(path, 0))?;
        for path in COPIES.iter().map(|name| dir.join(name)).chain(derived) {
            if path.is_dir() { files::remove_dir_all(&path) } else { files::remove_if_there(&path) }?;
        }
        Ok(())
    })
}
