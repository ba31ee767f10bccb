//! Restores a backup, without the people who were erased after it was made.

use std::path::Path;

use headcount_storage::backup::{Backup, restore_with};

use super::error::RestoreFailure;
use super::later_erasures::{LaterErasures, TakenErasures};

/// Restores `backup` into `data_dir`, which must be empty or not exist.
///
/// `erasures_from` is the current data directory that the backup was made from. Its erasures,
/// opt-ins and privacy requests are taken into the restored one before that becomes a data
/// directory. The first start finishes the erasures before it answers. Returns what was taken.
///
/// # Errors
/// See [`RestoreFailure`].
pub fn restore(backup: &Backup, data_dir: &Path, erasures_from: Option<&Path>) -> Result<Option<TakenErasures>, RestoreFailure> {
    let Some(from) = erasures_from else {
        headcount_storage::backup::restore(backup, data_dir)?;
        return Ok(None);
    };
    let later = LaterErasures::open(from)?;
    later.check_key(&backup.path("keys/hash.key"))?;
    restore_with(backup, data_dir, |dir| later.take_into(dir, backup.manifest().last_position())).map(Some)
}
