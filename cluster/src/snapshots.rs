//! The list of snapshots of the control data that nodes share, so that old records can be removed.
//!
//! The stream `HC_CTL_SNAP` has the parts of snapshots, as messages that follow each other like
//! those of the control log. A key of the bucket lists the last two snapshots. A snapshot is listed
//! only when all of its parts have been read back, so it counts whole or not at all.

use headcount_common::ControlError;
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;

use crate::cells::KvCells;
use crate::log::Link;
use crate::record::BUCKET;

const KEY: &str = "control_snapshots";
/// The version of the key's value, and of the parts.
const VERSION: u32 = 1;
/// The number of snapshots that are kept.
pub(crate) const KEPT: usize = 2;

/// The snapshots that nodes share: the value of the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedSnapshots {
    pub(crate) version: u32,
    /// Whether a node has begun to write another snapshot.
    pub(crate) is_writing: bool,
    /// The newest one first.
    pub(crate) kept: Vec<SharedSnapshot>,
}

/// A snapshot in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SharedSnapshot {
    /// The last record that it reflects.
    pub(crate) control: Link,
    /// The sequence of its first part.
    pub(crate) first: u64,
    /// Its last part.
    pub(crate) end: Link,
    /// Its size.
    pub(crate) bytes: u64,
}

/// The field that every version of the program can read.
#[derive(Deserialize)]
struct VersionedList {
    version: u32,
}

impl SharedSnapshots {
    fn of_bytes(bytes: &[u8]) -> Result<Self, ControlError> {
        let unreadable = |error: serde_json::Error| ControlError::Documents(format!("the key `{KEY}` of `{BUCKET}`: {error}"));
        let VersionedList { version: found } = serde_json::from_slice(bytes).map_err(unreadable)?;
        if found != VERSION {
            return Err(ControlError::UnsupportedSnapshot { path: KEY.into(), found, supported: VERSION });
        }
        serde_json::from_slice(bytes).map_err(unreadable)
    }

    /// Reads the key. Returns its value and its revision, or 0 if the key doesn't exist.
    pub(crate) fn read(runtime: &Handle, cells: &KvCells) -> Result<(Self, u64), ControlError> {
        let read = runtime.block_on(cells.read(KEY)).map_err(|error| ControlError::Documents(error.to_string()))?;
        match read {
            Some(cell) => Ok((Self::of_bytes(&cell.value)?, cell.revision)),
            None => Ok((Self { version: VERSION, is_writing: false, kept: Vec::new() }, 0)),
        }
    }

    /// Writes the key if it still has this revision. Returns the new revision; `None` if it has
    /// another one.
    pub(crate) fn write(&self, runtime: &Handle, cells: &KvCells, revision: u64) -> Result<Option<u64>, ControlError> {
        let text = serde_json::to_string(self).map_err(ControlError::Unencodable)?;
        runtime.block_on(cells.change(KEY, text, revision)).map_err(|error| ControlError::Documents(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Chain;

    /// Nodes of other program versions read this text.
    #[test]
    fn the_text_is_fixed() {
        let [control, end] = [(7, u128::MAX), (9, 1)].map(|(sequence, chain)| Link { sequence, chain: Chain(chain) });
        let kept = vec![SharedSnapshot { control, first: 8, end, bytes: 100 }];
        let shared = SharedSnapshots { version: 1, is_writing: false, kept };
        let text = r#"{"version":1,"is_writing":false,"kept":[{"control":{"sequence":7,"chain":340282366920938463463374607431768211455},"first":8,"end":{"sequence":9,"chain":1},"bytes":100}]}"#;
        assert_eq!(serde_json::to_string(&shared).unwrap(), text);
        assert_eq!(SharedSnapshots::of_bytes(text.as_bytes()).unwrap(), shared);
        let later = SharedSnapshots::of_bytes(br#"{"version":2,"kept":7}"#).unwrap_err();
        assert!(matches!(later, ControlError::UnsupportedSnapshot { found: 2, supported: 1, .. }), "{later}");
    }
}
