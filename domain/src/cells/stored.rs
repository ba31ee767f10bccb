//! The kinds of rows that a store holds.

use super::keys::{Key, Value};

/// Rows that are kept. A new kind is one file in `rollups/` and one line in its list.
pub trait StoredCells {
    /// Its tag on disk: unique, never reused.
    const TAG: u8;
    /// Its name in logs and in `verify`.
    const NAME: &'static str;
    /// Its version. Raise it when the same events make other rows: stores of an earlier version are rebuilt.
    const VERSION: u8 = 1;
    /// What its rows are found by.
    type Key: Key;
    /// What a row holds.
    type Value: Value;
}
