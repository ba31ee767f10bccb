//! What every store promises.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use super::error::StoreError;
use crate::keyspace::{PartitionId, Room, room_of};

/// The longest key: 1 KiB.
pub const MAX_KEY_BYTES: usize = 1 << 10;

/// The largest value: 64 MiB.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// The largest value in a space that lies in sled (a position, a meta, a part of a rollup): 7 KiB. sled writes up to 16 pairs as one page,
/// and a page of more than 128 KiB to a file that it never syncs.
pub const MAX_PAIR_BYTES: usize = 7 << 10;

/// An ordered map that is changed by checkpoints.
pub trait Store: Send + Sync + 'static {
    /// The committed value of `key`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`], [`StoreError::Key`].
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits every committed pair whose key begins with `prefix`, in the order of the keys, until `visit` breaks.
    /// The prefix names at least the partition (two bytes). One scan sees one state of its partition, whatever commits meanwhile.
    ///
    /// # Errors
    /// As [`Store::get`].
    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// Opens the next checkpoint of `partition`. It owns what it needs, so it may move to another thread.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another one is open; otherwise as [`Store::recover`], which it calls first.
    fn begin(&self, partition: PartitionId) -> Result<Box<dyn OpenCheckpoint>, StoreError>;

    /// Decides whether a failed commit of `partition` counts: from here on reads show it wholly or not at all, also after a crash. Does
    /// nothing if no commit failed.
    ///
    /// After an error of [`begin`](Store::begin), [`put`](OpenCheckpoint::put) or [`commit`](OpenCheckpoint::commit) a caller may
    /// begin again with the same changes: to set the same values twice is to set them once.
    ///
    /// # Errors
    /// [`StoreError::Io`] while the disk refuses: it may be tried again, and nothing is lost meanwhile.
    /// [`StoreError::Damaged`]; [`StoreError::Busy`] while a checkpoint of the partition is open.
    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        let _no_commit_fails = partition;
        Ok(())
    }

    /// Merges the sorted files of `partition` to one, as far as there are such files, so that they have nothing of former values and of deleted keys. The
    /// next commit of the partition removes the former files. Takes as long as reading and writing the partition; checkpoints go on meanwhile.
    /// Returns `false` if `stop` was set.
    ///
    /// # Errors
    /// As [`Store::purge`].
    fn merge_all(&self, partition: PartitionId, stop: &AtomicBool) -> Result<bool, StoreError> {
        let _no_files = (partition, stop);
        Ok(true)
    }

    /// Rewrites the sorted files of `partition` without the pairs under `prefixes`, as far as there are such files. Nobody may write pairs
    /// under them any more. The next commit of the partition removes the former files, and may delete what is left under the prefixes. Takes as long
    /// as reading and writing the partition; checkpoints go on meanwhile. Returns `false` if `stop` was set.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::Damaged`]. It may be repeated.
    fn purge(&self, partition: PartitionId, prefixes: &[Vec<u8>], stop: &AtomicBool) -> Result<bool, StoreError> {
        let _no_files = (partition, prefixes, stop);
        Ok(true)
    }
}

/// The function that a scan calls with each key and value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Changes to one partition, invisible until committed. Dropped without [`commit`](OpenCheckpoint::commit), they are discarded.
pub trait OpenCheckpoint: Send + 'static {
    /// Sets the value of a key. The last change of a key within the checkpoint counts.
    ///
    /// # Errors
    /// [`StoreError::Key`], [`StoreError::TooLarge`], [`StoreError::Io`], [`StoreError::Damaged`]. After one of the
    /// latter two this checkpoint can't be committed any more ([`StoreError::Stopped`]); another one can begin.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// As [`OpenCheckpoint::put`].
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError>;

    /// Makes all changes durable, then visible.
    ///
    /// # Errors
    /// After an error the checkpoint counts wholly or not at all: [`Store::recover`] or [`Store::begin`] decides it, or the next open.
    fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// Refuses keys that are outside `partition` or too long.
pub(super) fn check_key(partition: PartitionId, key: &[u8]) -> Result<(), StoreError> {
    if PartitionId::of_key(key) != Some(partition) {
        return Err(StoreError::Key { reason: format!("it does not begin with the two bytes of partition {partition}") });
    }
    if key.len() > MAX_KEY_BYTES {
        return Err(StoreError::Key { reason: format!("it has {} bytes, more than {MAX_KEY_BYTES}", key.len()) });
    }
    Ok(())
}

/// Refuses values that are too large for the space of their key.
pub(super) fn check_value(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    let most = match room_of(key) {
        Room::Sled => MAX_PAIR_BYTES,
        Room::Tables => MAX_VALUE_BYTES,
    };
    if value.len() > most { Err(StoreError::TooLarge { len: value.len() }) } else { Ok(()) }
}

/// The partition that a key to read or a prefix to scan names.
pub(super) fn partition_of(key: &[u8]) -> Result<PartitionId, StoreError> {
    PartitionId::of_key(key).ok_or_else(|| StoreError::Key { reason: "it is shorter than the two bytes of a partition".into() })
}
