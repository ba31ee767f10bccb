//! The tables of all partitions, in one directory.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::RwLock;
use xxhash_rust::xxh3::xxh3_128;

use super::super::contract::Visit;
use super::super::error::StoreError;
use super::changes::{Prepared, TableChanges};
use super::partition::PartitionTables;
use crate::files::{Dir, OpenFiles};
use crate::keyspace::PartitionId;
use crate::sstable::{Encoding, Layout, Manifest, MergeCursor, Merger, Table, TableList, TableSet, TableSpace, UncheckedTables};
use crate::sstable::{open_copies, remove_unnamed, table_files};

/// A commit to a partition with more tables than this merges them first.
pub(super) const MAX_TABLES: usize = 24;
/// A commit to a partition with more tables than this is refused if they can't be merged.
const MAX_UNMERGED_TABLES: usize = 4 * MAX_TABLES;

const LAYOUT: Layout =
    Layout { encoding: Encoding::Prefix, block_bytes: 8 << 10, compressed: true, merge_percent: 200, hash: xxh3_128 };

/// The state of merges of unchanged partitions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AtRest {
    /// The partitions with merged tables that are not in a manifest yet. Their next commit removes
    /// the old tables.
    pub merged: Vec<PartitionId>,
    /// Whether a merge has just begun.
    pub has_begun: bool,
    /// Whether tables are being merged.
    pub is_merging: bool,
}

/// The tables of all partitions.
pub(in crate::store) struct Tables {
    dir: Arc<Dir>,
    open_files: Arc<OpenFiles>,
    partitions: RwLock<HashMap<PartitionId, Arc<PartitionTables>>>,
    merger: Option<Merger>,
}

impl Tables {
    /// Opens the tables in `dir` that the `manifests` name, and removes all others.
    pub(in crate::store) fn open(dir: &Path, manifests: Vec<(PartitionId, Vec<u8>)>) -> Result<Self, StoreError> {
        Self::open_with(dir, manifests, OpenFiles::of_process())
    }

    pub(super) fn open_with(
        dir: &Path,
        manifests: Vec<(PartitionId, Vec<u8>)>,
        open_files: Arc<OpenFiles>,
    ) -> Result<Self, StoreError> {
        let held = Arc::new(Dir::open(dir).map_err(StoreError::io("open a directory"))?);
        let merger = Merger::spawn().map_err(StoreError::io("start a thread"))?;
        let tables = Self { dir: held, open_files, partitions: RwLock::default(), merger: Some(merger) };
        let mut named = BTreeSet::new();
        for (id, manifest) in manifests {
            let set = TableSet::open(tables.space(id), &Manifest::decode(&manifest)?)?;
            named.extend(set.paths());
            tables.insert(id, set);
        }
        remove_unnamed(dir, &named)?;
        Ok(tables)
    }

    fn space(&self, id: PartitionId) -> TableSpace {
        TableSpace {
            dir: Arc::clone(&self.dir),
            open_files: Arc::clone(&self.open_files),
            layout: LAYOUT,
            owner: u128::from(id.number()),
            stem: format!("{:05}-", id.number()),
            key_prefix: id.prefix().to_vec(),
        }
    }

    fn insert(&self, id: PartitionId, set: TableSet) -> Arc<PartitionTables> {
        let mut partitions = self.partitions.write();
        Arc::clone(partitions.entry(id).or_insert_with(|| Arc::new(PartitionTables::new(id, set))))
    }

    fn all(&self) -> Vec<Arc<PartitionTables>> {
        self.partitions.read().values().cloned().collect()
    }

    fn all_tables(&self) -> Vec<Arc<Table>> {
        self.all().iter().flat_map(|partition| partition.set.tables().to_vec()).collect()
    }

    /// The tables of a partition.
    pub(in crate::store) fn of(&self, id: PartitionId) -> Arc<PartitionTables> {
        let known = self.partitions.read().get(&id).cloned();
        known.unwrap_or_else(|| self.insert(id, TableSet::new(self.space(id), 1)))
    }

    /// The value of a key.
    pub(in crate::store) fn get(&self, id: PartitionId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.of(id).set.get(key)?.flatten())
    }

    /// Visits the pairs under a prefix, in order.
    pub(in crate::store) fn scan(&self, id: PartitionId, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        scan_tables(&self.of(id).tables(), prefix, visit)
    }

    /// Begins to collect changes of a partition.
    pub(in crate::store) fn begin(&self, id: PartitionId) -> TableChanges {
        TableChanges::new(self.of(id))
    }

    /// Makes room for the tables of a checkpoint: if the partition has too many, merges them on
    /// this thread.
    pub(in crate::store) fn make_room(&self, id: PartitionId, changes: &TableChanges) -> Result<(), StoreError> {
        let partition = self.of(id);
        let count = || partition.set.tables().len() + changes.tables();
        if count() <= MAX_TABLES {
            return Ok(());
        }
        partition.set.merge_at_once().or_else(|error| {
            if error.is_damage() || count() > MAX_UNMERGED_TABLES {
                return Err(error.into());
            }
            tracing::warn!(partition = id.number(), tables = count(), %error, "there are too many tables, and merging them failed");
            Ok(())
        })
    }

    /// Publishes the tables of a committed checkpoint, and merges tables in the background if
    /// necessary.
    pub(in crate::store) fn publish(&self, prepared: Prepared) {
        let Prepared { partition, proposal, .. } = prepared;
        partition.set.accept(proposal);
        if let Some(merger) = &self.merger {
            merger.merge_if_needed(&partition.set);
        }
    }

    /// Begins a background merge of a partition that did not change for `quiet`, if its tables take
    /// less than `free_bytes`. Merges one partition at a time.
    pub(in crate::store) fn merge_at_rest(&self, quiet: Duration, free_bytes: u64) -> AtRest {
        let all = self.all();
        // Checked first: the next call lists a merge that ends in the meantime, before another one
        // begins.
        let is_merging = all.iter().any(|partition| partition.set.is_merging());
        let fits = |set: &TableSet| set.needs_merge_at_rest().is_some_and(|bytes| bytes < free_bytes);
        let resting = |partition: &&Arc<PartitionTables>| {
            partition.set.is_at_rest(quiet) && !partition.set.is_merging() && !partition.set.has_replaced()
        };
        // Collected before a merge begins, since a fast merge could already be among them.
        let is_merged = |partition: &&Arc<PartitionTables>| {
            partition.set.is_at_rest(quiet) && !partition.set.is_merging() && partition.set.has_replaced()
        };
        let merged = all.iter().filter(is_merged).map(|partition| partition.id).collect();
        let next = || all.iter().filter(resting).find(|partition| fits(&partition.set));
        let next = self.merger.as_ref().filter(|_| !is_merging).zip(next());
        if let Some((merger, partition)) = next {
            merger.merge_at_rest(&partition.set);
        }
        AtRest { merged, has_begun: next.is_some(), is_merging: is_merging || next.is_some() }
    }

    /// Whether the directory is still in its place. If not, another store may be there.
    pub(in crate::store) fn is_in_place(&self) -> bool {
        self.dir.is_in_place()
    }

    /// Ends the merge threads. An unfinished merge is abandoned.
    pub(in crate::store) fn stop_merging(&mut self) {
        self.merger = None;
    }

    /// The partitions with merged tables that are not in a manifest yet.
    pub(in crate::store) fn with_merged(&self) -> Vec<PartitionId> {
        self.all().iter().filter(|partition| partition.set.has_replaced()).map(|partition| partition.id).collect()
    }

    /// The size of the files.
    pub(in crate::store) fn size_bytes(&self) -> Result<u64, StoreError> {
        Ok(table_files(&self.dir.path)?.values().sum())
    }

    /// Reads and checks everything.
    pub(in crate::store) fn verify(&self) -> Result<(), StoreError> {
        self.verify_until(None).map(drop)
    }

    /// All tables, none of them checked.
    pub(in crate::store) fn unchecked(&self) -> UncheckedTables {
        UncheckedTables::of(&self.all_tables())
    }

    /// Checks tables until `deadline`, on all processors, and returns the unchecked ones.
    pub(in crate::store) fn verify_until(&self, deadline: Option<Instant>) -> Result<UncheckedTables, StoreError> {
        Ok(UncheckedTables::check_until(&self.all_tables(), deadline)?)
    }

    /// Merges the tables of a partition on this thread.
    #[cfg(test)]
    pub(in crate::store) fn merge_now(&self, id: PartitionId) -> Result<(), StoreError> {
        Ok(self.of(id).set.merge_at_once()?)
    }

    /// Asserts that every file is a current table, or a merged one that may become current.
    #[cfg(test)]
    pub(in crate::store) fn assert_no_file_is_left_over(&self) {
        let found = table_files(&self.dir.path).unwrap();
        let known: usize = self.all().iter().map(|partition| partition.set.files()).sum();
        assert_eq!(found.len(), known, "{found:?}");
    }

    /// The memory that filters and indexes take.
    #[cfg(test)]
    pub(super) fn memory_bytes(&self) -> u64 {
        self.all_tables().iter().map(|table| table.memory_bytes()).sum()
    }
}

/// Opens copies of tables of a partition.
pub(in crate::store) fn open_table_copies(id: PartitionId, dir: &Path, tables: &[u64]) -> Result<TableList, StoreError> {
    Ok(open_copies(dir, (u128::from(id.number()), LAYOUT, id.prefix().to_vec()), tables)?)
}

/// Visits the pairs under a prefix in some tables, in order.
pub(in crate::store) fn scan_tables(tables: &TableList, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
    let mut pairs = MergeCursor::seek(tables, prefix)?;
    while pairs.advance()? && pairs.key().starts_with(prefix) {
        if let Some(value) = pairs.value()
            && visit(pairs.key(), value) == ControlFlow::Break(())
        {
            break;
        }
    }
    Ok(())
}
