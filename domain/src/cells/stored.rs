//! The kinds of stored rows, with their tags and versions.

use super::keys::{Key, Value};

/// A kind of stored rows. To add one, add a file in `rollups/` (sums) or `indexes/`, and a line to
/// the list in `rollups/mod.rs`.
pub trait StoredCells {
    /// The tag on disk: unique, never reused.
    const TAG: u8;
    /// The name in logs and in `verify`.
    const NAME: &'static str;
    /// The version. Raise it when the same events produce other rows; stores of an earlier version
    /// are then rebuilt.
    const VERSION: u8 = 1;
    /// The key of a row.
    type Key: Key;
    /// The value of a row.
    type Value: Value;
}
