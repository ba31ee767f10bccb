//! The kinds of rows that a store holds, with their tags and versions.

use super::keys::{Key, Value};

/// A kind of stored rows. A new one is a file in `rollups/` (sums) or `indexes/`, and a line in the list of `rollups/mod.rs`.
pub trait StoredCells {
    /// Its tag on disk: unique, never reused.
    const TAG: u8;
    /// Its name in logs and in `verify`.
    const NAME: &'static str;
    /// Its version. Raise it when the same events produce other rows: stores of an earlier version are rebuilt.
    const VERSION: u8 = 1;
    /// The key of a row.
    type Key: Key;
    /// The value of a row.
    type Value: Value;
}
