//! The kinds of stored rows, with their tags and versions.

use std::fmt;

use super::keys::{Key, Value};

/// Where a store keeps rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// Beside each other: few rows, none of which is keyed by a person. Old versions of pages stay
    /// on the disk.
    Sled,
    /// In sorted tables: rows that are as many as entities, or keyed by one.
    Tables,
}

/// A kind of stored rows. `rollup!` declares one of sums; other kinds implement this, and have a
/// line in the list in `rollups/mod.rs` too.
pub trait StoredCells {
    /// The tag on disk: unique, never reused.
    const TAG: u8;
    /// The name in logs and in `verify`.
    const NAME: &'static str;
    /// The room in the store.
    const ROOM: Room;
    /// The version. Raise it when the same events produce other rows; stores of an earlier version
    /// are then rebuilt.
    const VERSION: u8 = 1;
    /// The key of a row.
    type Key: Key;
    /// The value of a row.
    type Value: Value;

    /// What a store knows of these rows.
    const STORED: StoredRows =
        StoredRows { tag: Self::TAG, name: Self::NAME, room: Self::ROOM, version: Self::VERSION, key_bytes: Self::Key::BYTES };
}

/// What a store knows of a kind of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredRows {
    /// The tag on disk.
    pub tag: u8,
    /// The name.
    pub name: &'static str,
    /// The room in the store.
    pub room: Room,
    /// The version.
    pub version: u8,
    /// The length of a key.
    key_bytes: usize,
}

impl fmt::Display for StoredRows {
    /// The line in the list of stored types.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, name, version, key_bytes, .. } = self;
        write!(f, "rows {tag} {name} version {version}, keys of {key_bytes} bytes")
    }
}
