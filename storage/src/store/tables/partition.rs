//! The tables of one partition.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::super::error::StoreError;
use crate::keyspace::PartitionId;
use crate::sstable::{TableList, TableSet};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The tables of one partition.
pub(in crate::store) struct PartitionTables {
    pub(super) id: PartitionId,
    pub(super) set: Arc<TableSet>,
    /// Read-locked by a scan of more than the tables, write-locked while a commit changes both.
    whole: RwLock<()>,
}

impl PartitionTables {
    pub(super) fn new(id: PartitionId, set: TableSet) -> Self {
        Self { id, set: Arc::new(set), whole: RwLock::default() }
    }

    /// The current tables.
    pub(in crate::store) fn tables(&self) -> TableList {
        self.set.tables()
    }

    /// Rewrites the tables without the keys under `prefixes`. See [`TableSet::purge`].
    pub(in crate::store) fn purge(&self, prefixes: &[Vec<u8>], stop: &AtomicBool) -> Result<bool, StoreError> {
        Ok(self.set.purge(prefixes, stop)?)
    }

    /// Merges all tables.
    pub(in crate::store) fn merge_all(&self, stop: &AtomicBool) -> Result<bool, StoreError> {
        Ok(self.set.merge_all(stop)?)
    }

    /// Returns the damage that a merge found, once.
    pub(in crate::store) fn damage(&self) -> Result<(), StoreError> {
        self.set.take_damage().map_or(Ok(()), |damage| Err(damage.into()))
    }

    /// Keeps commits of the partition invisible until the guard is dropped.
    pub(in crate::store) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.whole.read()
    }

    /// Blocks scans of more than the tables until the guard is dropped.
    pub(in crate::store) fn change(&self) -> RwLockWriteGuard<'_, ()> {
        self.whole.write()
    }
}
