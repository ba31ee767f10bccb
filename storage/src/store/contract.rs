//! The contract of every store.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use super::error::StoreError;
use crate::keyspace::{PartitionId, Room, room_of};

/// The maximum size of a key: 1 KiB.
pub const MAX_KEY_BYTES: usize = 1 << 10;

/// The maximum size of a value: 64 MiB.
pub const MAX_VALUE_BYTES: usize = 64 << 20;

/// The maximum size of a value in sled (a position, a meta, a part of a rollup): 7 KiB. sled writes
/// up to 16 pairs as one page, and a page of more than 128 KiB to a file that it never syncs.
pub const MAX_PAIR_BYTES: usize = 7 << 10;

/// An ordered map that checkpoints change.
pub trait Store: Send + Sync + 'static {
    /// The committed value of `key`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`], [`StoreError::Key`].
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// Visits every committed pair whose key begins with `prefix`, in key order, until `visit`
    /// breaks. The prefix contains at least the partition (two bytes). A scan sees one state of its
    /// partition, even during commits.
    ///
    /// # Errors
    /// Same as [`Store::get`].
    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError>;

    /// Opens the next checkpoint of `partition`. It owns its data, so it may move to another
    /// thread.
    ///
    /// # Errors
    /// [`StoreError::Busy`] while another one is open; otherwise the errors of [`Store::recover`],
    /// which it calls first.
    fn begin(&self, partition: PartitionId) -> Result<Box<dyn OpenCheckpoint>, StoreError>;

    /// Decides whether a failed commit of `partition` counts. From then on reads show all or
    /// nothing of it, even after a crash. Does nothing if no commit failed.
    ///
    /// After an error of [`begin`](Store::begin), [`put`](OpenCheckpoint::put) or
    /// [`commit`](OpenCheckpoint::commit), a caller may begin again with the same changes, since
    /// setting a value twice has the same result.
    ///
    /// # Errors
    /// [`StoreError::Io`] while the disk fails: it may be repeated, and loses nothing.
    /// [`StoreError::Damaged`]; [`StoreError::Busy`] while a checkpoint of the partition is open.
    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        let _no_commit_fails = partition;
        Ok(())
    }

    /// Merges the sorted files of `partition`, if it has any, which removes old values and deleted
    /// keys. The next commit of the partition removes the old files. It takes as long as reading
    /// and writing the partition; checkpoints continue meanwhile. Returns `false` if `stop` was
    /// set.
    ///
    /// # Errors
    /// Same as [`Store::purge`].
    fn merge_all(&self, partition: PartitionId, stop: &AtomicBool) -> Result<bool, StoreError> {
        let _no_files = (partition, stop);
        Ok(true)
    }

    /// Rewrites the sorted files of `partition` without the pairs under `prefixes`, if it has any.
    /// No pairs may be written under them any more. The next commit of the partition removes the
    /// old files, and may delete the rest under the prefixes. It takes as long as reading and
    /// writing the partition; checkpoints continue meanwhile. Returns `false` if `stop` was set.
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

/// Changes to one partition, invisible until committed. Dropping it without
/// [`commit`](OpenCheckpoint::commit) discards them.
pub trait OpenCheckpoint: Send + 'static {
    /// Sets the value of a key. The last change of a key within the checkpoint counts.
    ///
    /// # Errors
    /// [`StoreError::Key`], [`StoreError::TooLarge`], [`StoreError::Io`], [`StoreError::Damaged`].
    /// After one of the latter two, this checkpoint can't be committed any more
    /// ([`StoreError::Stopped`]); another one can begin.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError>;

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// Same as [`OpenCheckpoint::put`].
    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError>;

    /// Makes all changes durable, then visible.
    ///
    /// # Errors
    /// After an error all or none of the checkpoint counts: [`Store::recover`], [`Store::begin`] or
    /// the next open decides.
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

/// The partition of a key to read or a prefix to scan.
pub(super) fn partition_of(key: &[u8]) -> Result<PartitionId, StoreError> {
    PartitionId::of_key(key).ok_or_else(|| StoreError::Key { reason: "it is shorter than the two bytes of a partition".into() })
}
