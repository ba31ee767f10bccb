//! What is kept in sled: one sled tree, and a journal file per partition through which every checkpoint goes.
//!
//! A checkpoint is written to its partition's [journal] and synced: that is the commit. Readers then see it as an overlay
//! over sled, while it is brought into sled in small batches (one huge batch would block sled's readers); when sled is
//! synced too, the overlay goes. A crash on the way is undone by doing the second half again at the next open. So
//! sled never carries a promise that a plain, synced file does not carry as well, and nothing that it holds has to be
//! written in two versions.
//!
//! sled 0.34.7 may lose a part of a damaged file without a word (see [`check`]). Hence the seals, which say what it must
//! at least hold, and the digest of each partition, which an opening store compares with what it finds.

mod check;
mod checkpoint;
mod frame;
mod journal;
mod partition;
mod read;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use super::{Checkpoint, PartitionId, Store, StoreError, Visit};
use crate::files::{self, make_private_dir, sync_dir};
use checkpoint::SledCheckpoint;
use frame::PartitionState;
use partition::PartitionSlot;
use tree::Tree;

/// The file whose presence says that damage was found while the store was in use.
const DAMAGED: &str = "DAMAGED";

/// How thoroughly a store is examined when it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Every value is read; checksums, counts and digests of all partitions must agree. Takes time in proportion to the
    /// store; it is the only check that finds a page that sled has silently lost.
    Full,
    /// As `Full`, but the runs of a [`DiskStore`](super::DiskStore), which are the bulk of it, are left to
    /// [`DiskStore::verify_until`](super::DiskStore::verify_until). Their blocks are checked when they are read.
    Small,
    /// Seals and partition states only: finds a lost tail, an exchanged or an emptied file.
    Quick,
}

/// How to open a [`SledStore`].
#[derive(Debug, Clone, Copy)]
pub struct StoreOptions {
    /// sled's page cache. It takes about three times as much memory; at most 64 MiB is used.
    pub cache_bytes: u64,
    /// What to examine.
    pub check: Check,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self { cache_bytes: 32 << 20, check: Check::Full }
    }
}

const MIN_CACHE_BYTES: u64 = 1 << 20;
const MAX_CACHE_BYTES: u64 = 64 << 20;

/// A [`Store`] that is all in sled. [`DiskStore`](super::DiskStore) keeps records elsewhere.
#[derive(Clone)]
pub struct SledStore {
    inner: Arc<Inner>,
}

struct Inner {
    tree: Tree,
    dir: PathBuf,
    journals: PathBuf,
    partitions: RwLock<HashMap<PartitionId, Arc<PartitionSlot>>>,
}

impl SledStore {
    /// Opens the store in `dir`, or creates it. Takes up what a crash left undone.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is not what it was; [`StoreError::Io`], also while another process has it open.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::open_noting(dir, options).map(|(store, _created)| store)
    }

    /// As [`SledStore::open`], and whether the store is new.
    pub(in crate::store) fn open_noting(dir: &Path, options: StoreOptions) -> Result<(Self, bool), StoreError> {
        let journals = dir.join("journal");
        for path in [dir, &journals] {
            make_private_dir(path).map_err(StoreError::io("create a directory"))?;
        }
        match files::read(&dir.join(DAMAGED)) {
            Ok(what) => return Err(StoreError::Damaged { what: String::from_utf8_lossy(&what).into_owned() }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io("look for a note of damage")(error)),
        }
        let tree = Tree::open(&dir.join("tree"), options.cache_bytes.clamp(MIN_CACHE_BYTES, MAX_CACHE_BYTES))?;
        let inner = Inner { tree, dir: dir.to_owned(), journals, partitions: RwLock::default() };
        let created = inner.recover()?;
        if options.check != Check::Quick {
            inner.check_all()?;
        }
        Ok((Self { inner: Arc::new(inner) }, created))
    }

    /// Reads everything and compares it with the digests of the partitions. Checkpoints wait meanwhile, partition by partition.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something is missing or changed.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.inner.check_all()
    }

    /// The partitions that were ever written.
    pub(in crate::store) fn partitions(&self) -> Vec<PartitionId> {
        self.inner.partitions.read().unwrap_or_else(PoisonError::into_inner).keys().copied().collect()
    }

    /// Leaves a note of damage for the next open.
    pub(in crate::store) fn watch<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        self.inner.watch(outcome)
    }

    /// Whether a failed commit of the partition may still count after a crash.
    pub(in crate::store) fn is_undecided(&self, partition: PartitionId) -> bool {
        self.inner.slot(partition).undecided().is_some()
    }

    /// How many bytes the store's files take.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        let mut size_bytes = 0;
        for dir in [self.inner.dir.join("tree"), self.inner.dir.join("tree/blobs"), self.inner.journals.clone()] {
            for path in files::list(&dir).map_err(StoreError::io("list its files"))? {
                size_bytes += path.metadata().map_or(0, |about| about.len());
            }
        }
        Ok(size_bytes)
    }
}

/// Waits until no sled has the store in `dir` open: one that was dropped goes on for a moment on threads of its own.
///
/// # Errors
/// [`StoreError::Io`] if that takes too long.
pub(in crate::store) fn wait_until_closed(dir: &Path) -> Result<(), StoreError> {
    tree::wait_until_closed(&dir.join("tree"))
}

impl Store for SledStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.inner.get(key)
    }

    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.inner.scan(prefix, visit)
    }

    fn begin(&self, partition: PartitionId) -> Result<Box<dyn Checkpoint>, StoreError> {
        let slot = self.inner.slot(partition);
        if !slot.claim() {
            return Err(StoreError::Busy { partition });
        }
        Ok(Box::new(SledCheckpoint::begin(self.inner.clone(), slot)?))
    }

    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        self.inner.recover_slot(&self.inner.slot(partition))
    }
}

impl Inner {
    /// The slot of a partition; a partition that nobody has written yet is an empty one.
    fn slot(&self, partition: PartitionId) -> Arc<PartitionSlot> {
        if let Some(slot) = self.partitions.read().unwrap_or_else(PoisonError::into_inner).get(&partition) {
            return slot.clone();
        }
        let mut partitions = self.partitions.write().unwrap_or_else(PoisonError::into_inner);
        partitions.entry(partition).or_insert_with(|| Arc::new(PartitionSlot::new(partition, PartitionState::default()))).clone()
    }

    /// Finishes what a failed commit left undone.
    fn recover_slot(&self, slot: &PartitionSlot) -> Result<(), StoreError> {
        if !slot.claim() {
            return Err(StoreError::Busy { partition: slot.partition });
        }
        let outcome = self.settle(slot);
        slot.release();
        outcome
    }

    fn create_journal(&self, partition: PartitionId, generation: u64) -> Result<journal::JournalWriter, StoreError> {
        let path = journal::path(&self.journals, partition, generation);
        let is_new = !path.exists();
        let writer = journal::JournalWriter::create(&path).map_err(StoreError::io("create a journal"))?;
        if is_new {
            sync_dir(&self.journals).map_err(StoreError::io("sync a directory"))?;
        }
        Ok(writer)
    }

    /// Leaves a note of damage for the next open, which then does not trust the store again.
    fn watch<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Damaged { what }) = &outcome {
            // Where even this fails, the damage is found again when it is met again.
            let _ = files::write(&self.dir.join(DAMAGED), what.as_bytes());
        }
        outcome
    }
}
