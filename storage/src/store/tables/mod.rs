//! Many pairs that are read one by one and written in bulk: sorted runs in files that never change.
//!
//! A checkpoint writes what it changes of a partition as a new run, in one pass; runs of about one size are merged in the
//! background. Which runs a partition has is its *manifest*, a small value that is kept elsewhere and changes with the
//! checkpoint, so that all of it counts at once ([`super::DiskStore`] keeps it in sled). A lookup asks the filters of the
//! runs, newest first, and reads one block of one run; a key that nobody has costs no read.

mod changes;
mod check;

mod merger;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::{Deserialize, Serialize};

use super::{PartitionId, StoreError, Visit};
use crate::codec;
use crate::files::{self, Dir, OpenFiles, remove_file};
use crate::sstable::merge::{self, MergeCursor};
use crate::sstable::reader::{Run, RunDir, RunName, hash_of};
pub(super) use changes::{Prepared, TableChanges};
pub use check::UncheckedTables;
use merger::{MergeState, Merger};

/// A partition with more runs than this is merged before the next checkpoint of it counts.
const MOST_RUNS: usize = 24;
/// A partition that can't be merged takes no more checkpoints from here on.
const MOST_RUNS_UNMERGED: usize = 4 * MOST_RUNS;
const MANIFEST_VERSION: u8 = 1;

/// What a partition's runs are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// The number of the next run.
    next: u64,
    /// The numbers of its runs, oldest first.
    runs: Vec<u64>,
}

/// The runs of a partition as a reader sees them: oldest first.
type RunList = Arc<Vec<Arc<Run>>>;

/// A run that can take the place of others from the next checkpoint on.
#[derive(Clone)]
struct Merged {
    run: Arc<Run>,
    replaces: Vec<u64>,
}

pub(super) struct Slot {
    partition: PartitionId,
    runs: RwLock<RunList>,
    next: AtomicU64,
    merged: Mutex<Option<Merged>>,
    merging: Mutex<MergeState>,
    merge_ended: Condvar,
    /// Files of a commit of which it is not decided whether it counts.
    undecided: Mutex<Vec<RunName>>,
    /// What the last merge could not read.
    damage: Mutex<Option<StoreError>>,
    /// Held for reading by a scan that sees more than the runs, and for writing while a commit changes both.
    whole: RwLock<()>,
}

impl Slot {
    fn new(partition: PartitionId, next: u64, runs: Vec<Arc<Run>>) -> Self {
        Self {
            partition,
            runs: RwLock::new(Arc::new(runs)),
            next: AtomicU64::new(next),
            merged: Mutex::default(),
            merging: Mutex::default(),
            merge_ended: Condvar::new(),
            undecided: Mutex::default(),
            damage: Mutex::default(),
            whole: RwLock::default(),
        }
    }

    fn runs(&self) -> RunList {
        Arc::clone(&self.runs.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn name(&self) -> RunName {
        RunName { partition: self.partition, id: self.next.fetch_add(1, Ordering::Relaxed) }
    }

    fn merged(&self) -> MutexGuard<'_, Option<Merged>> {
        self.merged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn undecided(&self) -> MutexGuard<'_, Vec<RunName>> {
        self.undecided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sizes(&self) -> Vec<u64> {
        self.runs().iter().map(|run| run.file_len()).collect()
    }

    /// The damage that a merge met, once.
    pub(super) fn damage(&self) -> Result<(), StoreError> {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Until this is dropped, no commit of the partition shows.
    pub(super) fn hold(&self) -> RwLockReadGuard<'_, ()> {
        self.whole.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Until this is dropped, no scan over more than the runs begins.
    pub(super) fn change(&self) -> RwLockWriteGuard<'_, ()> {
        self.whole.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The runs of all partitions.
pub(super) struct Tables {
    dir: RunDir,
    slots: RwLock<HashMap<PartitionId, Arc<Slot>>>,
    merger: Option<Merger>,
}

impl Tables {
    /// Opens the runs in `dir` that the `manifests` name, and removes all others.
    pub(super) fn open(dir: &Path, manifests: Vec<(PartitionId, Vec<u8>)>) -> Result<Self, StoreError> {
        Self::open_with(dir, manifests, OpenFiles::of_process())
    }

    fn open_with(dir: &Path, manifests: Vec<(PartitionId, Vec<u8>)>, open_files: Arc<OpenFiles>) -> Result<Self, StoreError> {
        let held = Arc::new(Dir::open(dir).map_err(StoreError::io("open a directory"))?);
        let run_dir = RunDir { dir: held, open_files };
        let mut left_over = files(dir)?;
        let mut slots = HashMap::new();
        for (partition, bytes) in manifests {
            let manifest: Manifest = codec::decode(MANIFEST_VERSION, &bytes)
                .map_err(|error| StoreError::damaged(format!("the list of runs of partition {partition}: {error}")))?;
            let mut runs = Vec::with_capacity(manifest.runs.len());
            for id in manifest.runs {
                let name = RunName { partition, id };
                runs.push(Arc::new(Run::open(&run_dir, name)?));
                left_over.remove(&run_dir.path_of(name));
            }
            slots.insert(partition, Arc::new(Slot::new(partition, manifest.next, runs)));
        }
        for path in left_over.keys() {
            remove_file(path).map_err(StoreError::io("remove a left-over"))?;
        }
        let merger = Merger::spawn(&run_dir).map_err(StoreError::io("start a thread"))?;
        Ok(Self { dir: run_dir, slots: RwLock::new(slots), merger: Some(merger) })
    }

    /// The runs of a partition; one that nobody has written yet has none.
    pub(super) fn slot(&self, partition: PartitionId) -> Arc<Slot> {
        if let Some(slot) = self.slots.read().unwrap_or_else(PoisonError::into_inner).get(&partition) {
            return Arc::clone(slot);
        }
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(partition).or_insert_with(|| Arc::new(Slot::new(partition, 1, Vec::new()))))
    }

    /// The value of a key.
    pub(super) fn get(&self, partition: PartitionId, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let runs = self.slot(partition).runs();
        let hash = hash_of(key);
        for run in runs.iter().rev() {
            if let Some(value) = run.get(key, hash)? {
                return Ok(value);
            }
        }
        Ok(None)
    }

    /// Visits the pairs under a prefix, in order.
    pub(super) fn scan(
        &self,
        partition: PartitionId,
        prefix: &[u8],
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let runs = self.slot(partition).runs();
        let mut pairs = MergeCursor::seek(&runs, prefix)?;
        while pairs.advance()? && pairs.key().starts_with(prefix) {
            if let Some(value) = pairs.value()
                && visit(pairs.key(), value) == ControlFlow::Break(())
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Collects changes of a partition.
    pub(super) fn begin(&self, partition: PartitionId) -> TableChanges {
        TableChanges::new(self.dir.clone(), self.slot(partition))
    }

    /// Makes room for the runs of a checkpoint: a partition that has too many is merged now, however long that takes.
    pub(super) fn make_room(&self, partition: PartitionId, changes: &TableChanges) -> Result<(), StoreError> {
        let slot = self.slot(partition);
        let count = || {
            let gone = slot.merged().as_ref().map_or(0, |merged| merged.replaces.len().saturating_sub(1));
            slot.runs().len().saturating_sub(gone) + changes.runs()
        };
        if count() <= MOST_RUNS {
            return Ok(());
        }
        slot.merge_now(&self.dir).or_else(|error| {
            if error.is_damage() || count() > MOST_RUNS_UNMERGED {
                return Err(error);
            }
            tracing::warn!(partition = partition.number(), runs = count(), %error, "runs not merged; they become too many");
            Ok(())
        })
    }

    /// Lets readers see a list of runs whose manifest counts, removes what it doesn't name any more, and looks whether runs
    /// should be merged.
    pub(super) fn publish(&self, mut prepared: Prepared) {
        prepared.keep();
        let Prepared { slot, runs, gone, .. } = &mut prepared;
        *slot.runs.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(std::mem::take(runs));
        if !gone.is_empty() {
            *slot.merged() = None;
        }
        // Those who still read them keep them so long.
        gone.drain(..).for_each(|run| run.remove_at_end());
        if merge::plan(&slot.sizes()).is_some()
            && let Some(merger) = &self.merger
        {
            merger.ask(slot);
        }
    }

    /// A commit that was undecided does not count: its files go.
    pub(super) fn take_back(&self, partition: PartitionId) {
        for name in self.slot(partition).undecided().drain(..) {
            // What can't be removed now is removed at the next open.
            let _ = remove_file(&self.dir.path_of(name));
        }
    }

    /// Whether the directory is still where it was opened. If not, another store may be there now.
    pub(super) fn is_in_place(&self) -> bool {
        self.dir.dir.is_in_place()
    }

    /// Merges nothing more. What is half merged is given up.
    pub(super) fn stop_merging(&mut self) {
        if let Some(merger) = self.merger.take() {
            merger.stop();
        }
    }

    /// The partitions with runs that are merged, which the next commit would tell.
    pub(super) fn with_merged(&self) -> Vec<PartitionId> {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().filter(|slot| slot.merged().is_some()).map(|slot| slot.partition).collect()
    }

    /// How many bytes the files take.
    pub(super) fn size_bytes(&self) -> Result<u64, StoreError> {
        Ok(files(self.dir.dir.path())?.values().sum())
    }

    /// Merges the runs of a partition on this thread.
    #[cfg(test)]
    pub(super) fn merge_now(&self, partition: PartitionId) -> Result<(), StoreError> {
        self.slot(partition).merge_now(&self.dir)
    }

    /// Every file is one that counts, or one that was merged and can count.
    #[cfg(test)]
    pub(super) fn assert_no_file_is_left_over(&self) {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let known: usize = slots.values().map(|slot| slot.runs().len() + usize::from(slot.merged().is_some())).sum();
        let found = files(self.dir.dir.path()).unwrap();
        assert_eq!(found.len(), known, "{found:?}");
    }

    /// How many bytes of memory the filters and indexes take.
    #[cfg(test)]
    fn memory_bytes(&self) -> u64 {
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        slots.values().flat_map(|slot| slot.runs().to_vec()).map(|run| run.memory_bytes()).sum()
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        self.stop_merging();
    }
}

/// The run files in a directory, and their lengths.
fn files(dir: &Path) -> Result<BTreeMap<PathBuf, u64>, StoreError> {
    let list = || -> std::io::Result<BTreeMap<PathBuf, u64>> {
        let mut found = BTreeMap::new();
        for path in files::list(dir)? {
            if path.extension().is_some_and(|extension| extension == "run") {
                // One that a merge replaced may be gone by now.
                let len = path.metadata().map_or(0, |about| about.len());
                found.insert(path, len);
            }
        }
        Ok(found)
    };
    list().map_err(StoreError::io("list its runs"))
}
