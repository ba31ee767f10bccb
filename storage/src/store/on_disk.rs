//! The store on disk: records and cells in sorted runs, positions and which runs count in sled, and both change as one.
//!
//! Records are many and are read one by one, at random; in sled each cost a tree page's share of memory, a read before
//! each write, and eight times its size on disk. Cells are read once and rewritten all the time. Which runs a partition has is a
//! value in sled, so sled's commit decides for both.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::on_sled::{self, Check, SledStore, StoreOptions};
use super::tables::{TableChanges, Tables};
use super::{Checkpoint, PartitionId, Store, StoreError, Visit, check_key, check_value, partition_of};
use crate::aside;
use crate::files::{make_private_dir, probe_space};
use crate::keys::BULK_SPACES;
use crate::sstable::UncheckedTables;

/// The third and last byte of the one key of each partition that is the store's own. No space of keys has this number.
const MANIFEST_SPACE: u8 = 0;

/// A [`Store`] on disk.
#[derive(Clone)]
pub struct DiskStore {
    inner: Arc<Inner>,
}

struct Inner {
    sled: SledStore,
    tables: Tables,
}

impl DiskStore {
    /// Opens the store in `dir`, or creates it. Takes up what a crash left undone.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is not what it was; [`StoreError::Io`], also while another process has it open.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::open_or_create(dir, options).map(|(store, _created)| store)
    }

    /// Merges nothing in the background, so that a test knows when it happens.
    #[cfg(test)]
    pub(super) fn stop_merging(&mut self) {
        Arc::get_mut(&mut self.inner).unwrap().tables.stop_merging();
    }

    /// The runs.
    #[cfg(test)]
    pub(super) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    /// As [`DiskStore::open`], and whether there was none before.
    ///
    /// # Errors
    /// As [`DiskStore::open`].
    pub fn open_or_create(dir: &Path, options: StoreOptions) -> Result<(Self, bool), StoreError> {
        let (sled, created) = SledStore::open_noting(dir, options)?;
        let runs = runs_dir(dir);
        make_private_dir(&runs).map_err(StoreError::io("create a directory"))?;
        let mut manifests = Vec::new();
        for partition in sled.partitions() {
            manifests.extend(sled.get(&manifest_key(partition))?.map(|manifest| (partition, manifest)));
        }
        let tables = sled.watch(Tables::open(&runs, manifests))?;
        let store = Self { inner: Arc::new(Inner { sled, tables }) };
        if options.check == Check::Full {
            store.inner.watch(store.inner.tables.verify())?;
        }
        Ok((store, created))
    }

    /// Moves whatever is in `dir` aside, as [`aside::move_aside`] does, so that an empty store can be opened there. Every handle
    /// to the store must have been dropped; what sled still does then is waited for.
    ///
    /// # Errors
    /// [`StoreError::Io`], also if the store is still open or the disk is full. The store is then where it was.
    pub fn move_aside(dir: &Path, reason: &str) -> Result<PathBuf, StoreError> {
        on_sled::wait_until_closed(dir)?;
        probe_space(dir).map_err(StoreError::io("write to its disk"))?;
        aside::move_aside(dir, reason).map_err(StoreError::io("move the damaged store aside"))
    }

    /// Leaves a note for the next [`DiskStore::open`], which then says that the store is damaged.
    pub fn note_damage(&self, what: &str) {
        let _ = self.inner.watch::<()>(Err(StoreError::damaged(what)));
    }

    /// Whether nothing was ever committed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.sled.partitions().is_empty()
    }

    /// Reads everything and checks it. Checkpoints wait meanwhile, partition by partition.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something is missing or changed.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.inner.sled.verify()?;
        self.inner.watch(self.inner.tables.verify())
    }

    /// Checks runs until a time, and returns those that are left. What is in sled is checked when it is opened.
    ///
    /// # Errors
    /// As [`DiskStore::verify`].
    pub fn verify_until(&self, deadline: Instant) -> Result<UncheckedTables, StoreError> {
        self.inner.watch(self.inner.tables.verify_until(Some(deadline)))
    }

    /// How many bytes the store's files take.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.inner.sled.size_bytes()? + self.inner.tables.size_bytes()?)
    }
}

impl Inner {
    fn watch<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        self.sled.watch(outcome)
    }

    fn commit(&self, partition: PartitionId, mut sled: Box<dyn Checkpoint>, records: TableChanges) -> Result<(), StoreError> {
        self.watch(self.tables.make_room(partition, &records))?;
        let prepared = self.watch(records.prepare())?;
        if let Some(prepared) = &prepared {
            sled.put(&manifest_key(partition), &prepared.manifest)?;
        }
        let slot = self.tables.of(partition);
        let _one_state = slot.change();
        if let Err(error) = sled.commit() {
            // Without an answer to that, the files may be needed after a crash.
            if let Some(prepared) = prepared.filter(|_| self.sled.is_undecided(partition)) {
                prepared.undecided();
            }
            return Err(error);
        }
        if let Some(prepared) = prepared {
            self.tables.publish(prepared);
        }
        // What was committed counts; the next open has to know that something else is lost.
        if let Err(error) = self.watch(slot.damage()) {
            tracing::error!(partition = partition.number(), %error, "the store is damaged; it is rebuilt at the next start");
        }
        Ok(())
    }
}

impl Drop for Inner {
    /// What is merged and not told yet would have to be merged again after the next start.
    fn drop(&mut self) {
        self.tables.stop_merging();
        if !self.tables.is_in_place() {
            return;
        }
        for partition in self.tables.with_merged() {
            let told = self.sled.begin(partition).and_then(|sled| self.commit(partition, sled, self.tables.begin(partition)));
            if let Err(error) = told {
                tracing::debug!(partition = partition.number(), %error, "merged runs are not told");
            }
        }
    }
}

fn runs_dir(dir: &Path) -> PathBuf {
    dir.join("runs")
}

fn manifest_key(partition: PartitionId) -> Vec<u8> {
    [partition.prefix().as_slice(), &[MANIFEST_SPACE]].concat()
}

/// Whether a key, or every key with this prefix, is that of a record or a cell.
fn is_bulk(key: &[u8]) -> bool {
    key.get(2).is_some_and(|space| BULK_SPACES.contains(space))
}

impl Store for DiskStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        if is_bulk(key) {
            return self.inner.watch(self.inner.tables.get(partition_of(key)?, key));
        }
        self.inner.sled.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let partition = partition_of(prefix)?;
        if is_bulk(prefix) {
            return self.inner.watch(self.inner.tables.scan(partition, prefix, visit)).map(drop);
        }
        if prefix.len() > 2 {
            return self.inner.sled.scan(prefix, visit);
        }
        let slot = self.inner.tables.of(partition);
        let _one_state = slot.hold();
        let first = [partition.prefix().as_slice(), &[*BULK_SPACES.start()]].concat();
        let mut runs_shown = false;
        let mut flow = Ok(ControlFlow::Continue(()));
        let show_runs = |visit: &mut Visit<'_>| self.inner.watch(self.inner.tables.scan(partition, &partition.prefix(), visit));
        self.inner.sled.scan(prefix, &mut |key, value| {
            if key == manifest_key(partition) {
                return ControlFlow::Continue(());
            }
            if !runs_shown && key > first.as_slice() {
                runs_shown = true;
                flow = show_runs(visit);
                if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                    return ControlFlow::Break(());
                }
            }
            let next = visit(key, value);
            if next.is_break() {
                flow = Ok(next);
            }
            next
        })?;
        if flow?.is_continue() && !runs_shown {
            return show_runs(visit).map(drop);
        }
        Ok(())
    }

    fn begin(&self, partition: PartitionId) -> Result<Box<dyn Checkpoint>, StoreError> {
        let sled = self.inner.sled.begin(partition)?;
        self.inner.tables.take_back(partition);
        let records = Some(self.inner.tables.begin(partition));
        Ok(Box::new(DiskCheckpoint { inner: Arc::clone(&self.inner), partition, sled, records }))
    }

    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        self.begin(partition).map(drop)
    }
}

struct DiskCheckpoint {
    inner: Arc<Inner>,
    partition: PartitionId,
    sled: Box<dyn Checkpoint>,
    /// `None` once a change could not be noted.
    records: Option<TableChanges>,
}

impl DiskCheckpoint {
    fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        check_key(self.partition, key)?;
        if key == manifest_key(self.partition) {
            return Err(StoreError::Key { reason: "it is the store's own".into() });
        }
        if !is_bulk(key) {
            return match value {
                Some(value) => self.sled.put(key, value),
                None => self.sled.delete(key),
            };
        }
        check_value(value.unwrap_or_default())?;
        let records = self.records.as_mut().ok_or(StoreError::Stopped { partition: self.partition })?;
        let outcome = records.set(key, value);
        if outcome.is_err() {
            self.records = None;
        }
        outcome
    }
}

impl Checkpoint for DiskCheckpoint {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.set(key, Some(value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.set(key, None)
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { inner, partition, sled, records } = *self;
        inner.commit(partition, sled, records.ok_or(StoreError::Stopped { partition })?)
    }
}
