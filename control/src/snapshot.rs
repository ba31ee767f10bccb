//! Snapshots of the control data: JSON files, written atomically.
//!
//! `snapshot-<position>.json` holds the state after all records of the control log up to and
//! including that position: `{"checksum","position","version","state"}`, in the version of the
//! log's new records ([`latest_record_version`]). The checksum is the SHA-256 of the rest. It is
//! verified before the version is read, so that damage is never mistaken for a file of a newer
//! program.

use std::fs;
use std::path::{Path, PathBuf};

use headcount_common::{ControlError, latest_record_version};
use headcount_storage::files::{File, PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest as _, Sha256};

use super::secret::hex;
use super::state::State;

#[derive(Serialize, Deserialize)]
struct SnapshotEnvelope {
    checksum: String,
    position: u64,
    version: u32,
    state: Box<RawValue>,
}

impl SnapshotEnvelope {
    fn expected_checksum(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(self.position.to_le_bytes());
        hasher.update(self.version.to_le_bytes());
        hasher.update(self.state.get().as_bytes());
        hex(&hasher.finalize().into())
    }
}

/// Returns the path of the snapshot at `position`.
pub(super) fn path(dir: &Path, position: u64) -> PathBuf {
    dir.join(format!("snapshot-{position:020}.json"))
}

/// Returns the positions of the snapshots in `dir`, newest first. Removes half-written ones.
pub(super) fn list(dir: &Path) -> Result<Vec<u64>, ControlError> {
    let failed = |error| ControlError::io("list", dir, error);
    let mut positions: Vec<u64> = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_prefix("snapshot-")) else { continue };
        if name.ends_with(".tmp") {
            fs::remove_file(entry.path()).map_err(|error| ControlError::io("remove", &entry.path(), error))?;
        } else if let Some(position) = name.strip_suffix(".json").and_then(|digits| digits.parse().ok()) {
            positions.push(position);
        }
    }
    positions.sort_unstable_by(|a, b| b.cmp(a));
    Ok(positions)
}

/// Returns the size of the snapshot at `position` in bytes.
pub(super) fn bytes(dir: &Path, position: u64) -> Result<u64, ControlError> {
    let path = path(dir, position);
    File::open(&path).and_then(|file| file.len()).map_err(|error| ControlError::io("inspect", &path, error))
}

/// Encodes the snapshot at `position` in a version of records.
pub(super) fn encode(position: u64, version: u32, state: &State) -> Result<Vec<u8>, ControlError> {
    let state = to_raw_value(&state.contents()).map_err(ControlError::Unencodable)?;
    let mut envelope = SnapshotEnvelope { checksum: String::new(), position, version, state };
    envelope.checksum = envelope.expected_checksum();
    serde_json::to_vec(&envelope).map_err(ControlError::Unencodable)
}

/// Writes the snapshot at `position`, durably. Returns its size in bytes.
pub(super) fn write(dir: &Path, position: u64, bytes: &[u8]) -> Result<u64, ControlError> {
    let path = path(dir, position);
    write_atomically(&path, bytes, PRIVATE_FILE).map_err(|error| ControlError::io("write", &path, error))?;
    Ok(bytes.len() as u64)
}

/// Reads the snapshot at `position`; `None` if it is damaged.
pub(super) fn load(dir: &Path, position: u64) -> Result<Option<State>, ControlError> {
    let path = path(dir, position);
    let bytes = fs::read(&path).map_err(|error| ControlError::io("read", &path, error))?;
    Ok(decode(dir, &bytes)?.filter(|(found, _)| *found == position).map(|(_, state)| state))
}

/// Decodes a snapshot for `dir`. Returns it with its position; `None` if it is damaged.
pub(super) fn decode(dir: &Path, bytes: &[u8]) -> Result<Option<(u64, State)>, ControlError> {
    let Ok(envelope) = serde_json::from_slice::<SnapshotEnvelope>(bytes) else { return Ok(None) };
    if envelope.checksum != envelope.expected_checksum() {
        return Ok(None);
    }
    let (position, found, supported) = (envelope.position, envelope.version, latest_record_version());
    if !(1..=supported).contains(&found) {
        return Err(ControlError::UnsupportedSnapshot { path: path(dir, position), found, supported });
    }
    // The file is intact but its contents are invalid, and an older snapshot would not help.
    let bad = |message: String| ControlError::BadRecord { position, message: format!("snapshot: {message}") };
    let contents = serde_json::from_str(envelope.state.get()).map_err(|error| bad(error.to_string()))?;
    State::from_contents(contents).map(|state| Some((position, state))).map_err(|misfit| bad(misfit.to_owned()))
}

/// Renames a damaged snapshot, so that it no longer counts as one but remains available for
/// inspection.
pub(super) fn set_aside(dir: &Path, position: u64) -> Result<(), ControlError> {
    let path = path(dir, position);
    let aside = path.with_extension("json.damaged");
    fs::rename(&path, &aside).map_err(|error| ControlError::io("set aside", &path, error))
}

/// Removes an obsolete snapshot.
pub(super) fn remove(dir: &Path, position: u64) -> Result<(), ControlError> {
    let path = path(dir, position);
    fs::remove_file(&path).map_err(|error| ControlError::io("remove", &path, error))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Encodes a snapshot file of any version with a valid checksum.
    pub(in super::super) fn envelope(position: u64, version: u32, state: &str) -> Vec<u8> {
        let state = RawValue::from_string(state.to_owned()).unwrap();
        let mut envelope = SnapshotEnvelope { checksum: String::new(), position, version, state };
        envelope.checksum = envelope.expected_checksum();
        serde_json::to_vec(&envelope).unwrap()
    }
}
