//! The number of each partition's last checkpoint, in a file beside sled.
//!
//! sled 0.34 may lose the end of a damaged file without an error. Partitions are then intact, but
//! at earlier checkpoints, which no digest detects. The file is written after each commit and never
//! synced: after a power cut it may be missing or older, and then detects less.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::error::StoreError;
use super::state::States;
use crate::{codec, files};

const FILE: &str = "SEALS";
const VERSION: u8 = 1;

/// Records the durable checkpoints.
pub(in crate::store) fn write_seals(dir: &Path, states: &States) {
    let numbers: BTreeMap<u16, u64> = states.iter().map(|(partition, state)| (partition.number(), state.checkpoint())).collect();
    if let Ok(bytes) = codec::encode(VERSION, &numbers) {
        // The previous file detects a little less.
        let _ = files::write(&dir.join(FILE), &bytes);
    }
}

/// Compares the states in sled with the recorded checkpoints.
///
/// # Errors
/// [`StoreError::Damaged`] if sled lost a checkpoint; [`StoreError::Io`].
pub(in crate::store) fn check_seals(dir: &Path, states: &States) -> Result<(), StoreError> {
    let bytes = files::read_if_there(&dir.join(FILE)).map_err(StoreError::io("read the numbers of its checkpoints"))?;
    let Some(bytes) = bytes else { return Ok(()) };
    // Truncated, by a crash while it was written.
    let Ok(sealed) = codec::decode::<BTreeMap<u16, u64>>(VERSION, &bytes) else { return Ok(()) };
    let mut found: BTreeMap<u16, u64> = BTreeMap::new();
    found.extend(states.iter().map(|(partition, state)| (partition.number(), state.checkpoint())));
    for (partition, sealed) in sealed {
        let found = found.get(&partition).copied().unwrap_or_default();
        if found < sealed {
            let what = format!("sled has checkpoint {found} of partition {partition}, but {sealed} was committed");
            return Err(StoreError::damaged(what));
        }
    }
    Ok(())
}
