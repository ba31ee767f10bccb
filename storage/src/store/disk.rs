//! The store on disk: rollups, positions and manifests in sled, everything else in sorted tables.
//! Both change together.
//!
//! There are many records, and they are read one by one, at random. In sled each would cost a tree
//! page's share of memory, a read before each write, and eight times its size on disk. The
//! manifest, which names the tables of a partition, is a pair in sled, so one batch in sled commits
//! both. sled keeps old versions of its pages, so it must not contain anything with a person's key.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::contract::{OpenCheckpoint, Store, Visit, check_key, check_value, partition_of};
use super::error::StoreError;
use super::sled::{
    Database, Handle, PairChanges, PartitionState, States, check_seals, pair_key, read_states, verify_states, wait_until_closed,
    write_seals,
};
use super::snapshot::PartitionSnapshot;
use super::tables::{AtRest, Prepared, TableChanges, Tables, scan_tables};
use super::{Check, StoreOptions};
use crate::aside;
use crate::files::{self, make_private_dir, probe_space};
use crate::keyspace::{PartitionId, Room, manifest_key, room_of};
use crate::sstable::{TableList, UncheckedTables};
use parking_lot::{Mutex, MutexGuard};

/// A file that exists if damage was found while the store was in use.
const DAMAGED: &str = "DAMAGED";
const MIN_CACHE_BYTES: u64 = 1 << 20;
const MAX_CACHE_BYTES: u64 = 64 << 20;

/// A [`Store`] on disk.
#[derive(Clone)]
pub struct DiskStore {
    inner: Arc<Inner>,
}

struct Inner {
    dir: PathBuf,
    database: Database,
    tables: Tables,
    /// Locked during the commit of a checkpoint, so sled has one commit at a time. Taken before the
    /// lock of a partition's tables.
    commits: Mutex<Commits>,
    /// The partitions with an open checkpoint.
    open: Mutex<HashSet<PartitionId>>,
}

/// The last commit of each partition.
struct Commits {
    states: States,
    /// A failed commit. It is decided, by the contents of sled, as soon as sled is open again.
    undecided: Option<Undecided>,
}

struct Undecided {
    partition: PartitionId,
    state: PartitionState,
    tables: Option<Prepared>,
}

impl DiskStore {
    /// Opens or creates the store in `dir`. Recovers from a crash.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it has changed, [`StoreError::OtherFormat`] if another version
    /// created it; [`StoreError::Io`], also while another process has it open.
    pub fn open(dir: &Path, options: StoreOptions) -> Result<Self, StoreError> {
        Self::open_or_create(dir, options).map(|(store, _created)| store)
    }

    /// Disables background merges, so that a test controls them.
    #[cfg(test)]
    pub(super) fn stop_merging(&mut self) {
        Arc::get_mut(&mut self.inner).unwrap().tables.stop_merging();
    }

    /// The tables.
    #[cfg(test)]
    pub(super) fn tables(&self) -> &Tables {
        &self.inner.tables
    }

    /// Like [`DiskStore::open`]; also returns whether it created the store.
    ///
    /// # Errors
    /// Same as [`DiskStore::open`].
    pub fn open_or_create(dir: &Path, options: StoreOptions) -> Result<(Self, bool), StoreError> {
        let tables_dir = dir.join("tables");
        for path in [dir, &tables_dir] {
            make_private_dir(path).map_err(StoreError::io("create a directory"))?;
        }
        let note = files::read_if_there(&dir.join(DAMAGED)).map_err(StoreError::io("look for a note of damage"))?;
        if let Some(what) = note {
            return Err(StoreError::Damaged { what: String::from_utf8_lossy(&what).into_owned() });
        }
        let database = Database::open(&sled_dir(dir), options.cache_bytes.clamp(MIN_CACHE_BYTES, MAX_CACHE_BYTES))?;
        let found = database.with(read_states)?;
        let created = found.is_none();
        if created && !files::list(&tables_dir).map_err(StoreError::io("list its tables"))?.is_empty() {
            return Err(StoreError::damaged("sled is empty, but there are tables"));
        }
        let states = found.unwrap_or_default();
        check_seals(dir, &states)?;
        if options.check != Check::Quick {
            database.with(|handle| verify_states(handle, &states))?;
        }
        let manifests = database.with(|handle| manifests(handle, &states))?;
        let tables = Tables::open(&tables_dir, manifests)?;
        let commits = Mutex::new(Commits { states, undecided: None });
        let inner = Inner { dir: dir.to_owned(), database, tables, commits, open: Mutex::default() };
        if options.check == Check::Full {
            inner.tables.verify()?;
        }
        Ok((Self { inner: Arc::new(inner) }, created))
    }

    /// Begins a background merge of the sorted files of a partition that did not change for
    /// `quiet`, if that makes them notably smaller and fits into `free_bytes`. Merges one partition
    /// at a time. Call it regularly.
    #[must_use]
    pub fn merge_at_rest(&self, quiet: Duration, free_bytes: u64) -> AtRest {
        self.inner.tables.merge_at_rest(quiet, free_bytes)
    }

    /// Moves the contents of `dir` aside, like [`aside::move_aside`], so that an empty store can be
    /// opened there. Every handle to the store must have been dropped; waits for the remaining work
    /// of sled.
    ///
    /// # Errors
    /// [`StoreError::Io`], also if the store is still open or the disk is full. The store is then
    /// still in its place.
    pub fn move_aside(dir: &Path, reason: &str) -> Result<PathBuf, StoreError> {
        wait_until_closed(&sled_dir(dir))?;
        probe_space(dir).map_err(StoreError::io("write to its disk"))?;
        aside::move_aside(dir, reason).map_err(StoreError::io("move the damaged store aside"))
    }

    /// Leaves a note for the next [`DiskStore::open`], which then reports the store as damaged.
    pub fn note_damage(&self, what: &str) {
        let _ = self.inner.watch::<()>(Err(StoreError::damaged(what)));
    }

    /// Whether nothing was ever committed.
    pub fn is_empty(&self) -> bool {
        self.inner.commits.lock().states.is_empty()
    }

    /// Reads and checks everything. Checkpoints wait meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something is missing or changed.
    pub fn verify(&self) -> Result<(), StoreError> {
        self.verify_pairs()?;
        self.inner.watch(self.inner.tables.verify())
    }

    /// Reads and checks the pairs in sled. Checkpoints wait meanwhile.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something is missing or changed.
    pub fn verify_pairs(&self) -> Result<(), StoreError> {
        let commits = self.inner.resolved()?;
        self.inner.watch(self.inner.database.with(|handle| verify_states(handle, &commits.states)))
    }

    /// Returns all tables, unchecked.
    pub fn unchecked_tables(&self) -> UncheckedTables {
        self.inner.tables.unchecked()
    }

    /// Takes a snapshot of a partition.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Io`].
    pub fn snapshot(&self, partition: PartitionId) -> Result<PartitionSnapshot, StoreError> {
        let manifest = manifest_key(partition);
        let mut small = Vec::new();
        let ((), tables) = self.inner.read(partition, |handle| {
            handle.scan(&pair_key(&partition.prefix()), |key, value| {
                let key = key.get(1..).unwrap_or_default();
                if key != manifest {
                    small.push((key.to_vec(), value.to_vec()));
                }
                Ok(())
            })
        })?;
        Ok(PartitionSnapshot::new(partition, small, tables))
    }

    /// Checks tables until a time, and returns the unchecked ones. Opening the store checks the
    /// pairs in sled.
    ///
    /// # Errors
    /// Same as [`DiskStore::verify`].
    pub fn verify_until(&self, deadline: Instant) -> Result<UncheckedTables, StoreError> {
        self.inner.watch(self.inner.tables.verify_until(Some(deadline)))
    }

    /// The size of the store's files in bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn size_bytes(&self) -> Result<u64, StoreError> {
        let sled_dir = sled_dir(&self.inner.dir);
        let mut size_bytes = self.inner.tables.size_bytes()?;
        for dir in [sled_dir.join("blobs"), sled_dir] {
            for path in files::list(&dir).map_err(StoreError::io("list its files"))? {
                size_bytes += path.metadata().map_or(0, |about| about.len());
            }
        }
        Ok(size_bytes)
    }
}

fn sled_dir(dir: &Path) -> PathBuf {
    dir.join("tree")
}

fn manifests(handle: &Handle, states: &States) -> Result<Vec<(PartitionId, Vec<u8>)>, StoreError> {
    let mut manifests = Vec::new();
    for partition in states.keys() {
        let manifest = handle.get(&pair_key(&manifest_key(*partition)))?;
        manifests.extend(manifest.map(|manifest| (*partition, manifest.to_vec())));
    }
    Ok(manifests)
}

impl Inner {
    /// Notes damage for the next open, which then does not trust the store.
    fn watch<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(StoreError::Damaged { what }) = &outcome {
            // If even this fails, a later read finds the damage again.
            let _ = files::write(&self.dir.join(DAMAGED), what.as_bytes());
        }
        outcome
    }

    /// Returns the commits, all decided, with sled open.
    fn resolved(&self) -> Result<MutexGuard<'_, Commits>, StoreError> {
        let mut commits = self.commits.lock();
        self.resolve(&mut commits)?;
        Ok(commits)
    }

    /// Reopens sled if it is closed, and decides the failed commit: it counts if sled has its
    /// state.
    fn resolve(&self, commits: &mut Commits) -> Result<(), StoreError> {
        if self.database.is_open() {
            return Ok(());
        }
        let Commits { states, undecided } = commits;
        let slot = undecided.as_ref().map(|failed| self.tables.of(failed.partition));
        let _one_state = slot.as_ref().map(|slot| slot.change());
        let found = self.database.reopen(|handle| {
            let found = read_states(handle)?.unwrap_or_default();
            verify_states(handle, &found)?;
            let with_failed = undecided.iter().map(|failed| (failed.partition, failed.state));
            let with_failed: States = states.clone().into_iter().chain(with_failed).collect();
            let is_expected = found == *states || found == with_failed;
            if is_expected { Ok(found) } else { Err(StoreError::damaged("sled lost checkpoints")) }
        })?;
        if let Some(Undecided { partition, state, tables }) = undecided.take()
            && found.get(&partition) == Some(&state)
        {
            self.publish(partition, tables);
        }
        *states = found;
        Ok(())
    }

    /// Publishes the tables of a committed checkpoint.
    fn publish(&self, partition: PartitionId, tables: Option<Prepared>) {
        let slot = self.tables.of(partition);
        if let Some(tables) = tables {
            self.tables.publish(tables);
        }
        // The checkpoint counts, but the next open must know about the damage.
        if let Err(error) = self.watch(slot.damage()) {
            tracing::error!(partition = partition.number(), %error, "the store is damaged; it is rebuilt at the next start");
        }
    }

    fn commit(&self, partition: PartitionId, mut changes: PairChanges, records: TableChanges) -> Result<(), StoreError> {
        self.watch(self.tables.make_room(partition, &records))?;
        let tables = self.watch(records.prepare())?;
        if let Some(tables) = &tables {
            changes.insert(manifest_key(partition), Some(tables.manifest.clone()));
        }
        let mut commits = self.resolved()?;
        let slot = self.tables.of(partition);
        let one_state = slot.change();
        let before = commits.states.get(&partition).copied().unwrap_or_default();
        let (state, batch) = self.watch(self.database.with(|handle| before.next(partition, changes, handle)))?;
        let Err(error) = self.watch(self.database.with(|handle| handle.write(&batch))) else {
            commits.states.insert(partition, state);
            write_seals(&self.dir, &commits.states);
            self.publish(partition, tables);
            return Ok(());
        };
        drop(one_state);
        tracing::warn!(partition = partition.number(), %error, "a commit failed; reopening sled decides whether it counts");
        commits.undecided = Some(Undecided { partition, state, tables });
        let decided = self.resolve(&mut commits);
        if decided.is_ok() && commits.states.get(&partition) == Some(&state) { Ok(()) } else { Err(error) }
    }

    /// Reads one state of a partition: the result of `read` in sled, and the tables.
    fn read<T>(
        &self,
        partition: PartitionId,
        read: impl FnOnce(&Handle) -> Result<T, StoreError>,
    ) -> Result<(T, TableList), StoreError> {
        if !self.database.is_open() {
            drop(self.resolved()?);
        }
        let slot = self.tables.of(partition);
        let _one_state = slot.hold();
        Ok((self.watch(self.database.with(read))?, slot.tables()))
    }
}

impl Drop for Inner {
    /// Records finished merges in the manifests. Otherwise the next start repeats them.
    fn drop(&mut self) {
        self.tables.stop_merging();
        if self.tables.is_in_place() {
            for partition in self.tables.with_merged() {
                if let Err(error) = self.commit(partition, PairChanges::new(), self.tables.begin(partition)) {
                    tracing::debug!(partition = partition.number(), %error, "could not record merged tables");
                }
            }
        }
        // The next open decides, and removes the files if the commit does not count.
        if let Some(Undecided { tables: Some(tables), .. }) = self.commits.lock().undecided.take() {
            tables.keep();
        }
    }
}

impl Store for DiskStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let partition = partition_of(key)?;
        if room_of(key) == Room::Tables {
            return self.inner.watch(self.inner.tables.get(partition, key));
        }
        let (value, _) = self.inner.read(partition, |handle| handle.get(&pair_key(key)))?;
        Ok(value.map(|value| value.to_vec()))
    }

    fn scan(&self, prefix: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let partition = partition_of(prefix)?;
        let has_space = prefix.len() > 2;
        if has_space && room_of(prefix) == Room::Tables {
            return self.inner.watch(self.inner.tables.scan(partition, prefix, visit));
        }
        let mut pairs = Vec::new();
        let ((), tables) = self.inner.read(partition, |handle| {
            handle.scan(&pair_key(prefix), |key, value| {
                pairs.push((key.get(1..).unwrap_or_default().to_vec(), value.to_vec()));
                Ok(())
            })
        })?;
        let manifest = manifest_key(partition);
        let mut pairs = pairs.into_iter().filter(|(key, _)| *key != manifest).peekable();
        let mut flow = ControlFlow::Continue(());
        if !has_space {
            let visit_both = &mut |key: &[u8], value: &[u8]| {
                while let Some((before, value)) = pairs.next_if(|(before, _)| before.as_slice() < key)
                    && flow.is_continue()
                {
                    flow = visit(&before, &value);
                }
                if flow.is_continue() {
                    flow = visit(key, value);
                }
                flow
            };
            self.inner.watch(scan_tables(&tables, prefix, visit_both))?;
        }
        for (key, value) in pairs {
            if flow.is_break() {
                break;
            }
            flow = visit(&key, &value);
        }
        Ok(())
    }

    fn begin(&self, partition: PartitionId) -> Result<Box<dyn OpenCheckpoint>, StoreError> {
        let inner = Arc::clone(&self.inner);
        let claim = Claim::of(inner, partition)?;
        drop(self.inner.resolved()?);
        let records = Some(self.inner.tables.begin(partition));
        Ok(Box::new(DiskCheckpoint { claim, pairs: PairChanges::new(), records }))
    }

    fn recover(&self, partition: PartitionId) -> Result<(), StoreError> {
        let _claim = Claim::of(Arc::clone(&self.inner), partition)?;
        self.inner.resolved().map(drop)
    }

    fn merge_all(&self, partition: PartitionId, stop: &AtomicBool) -> Result<bool, StoreError> {
        self.inner.watch(self.inner.tables.of(partition).merge_all(stop))
    }

    fn purge(&self, partition: PartitionId, prefixes: &[Vec<u8>], stop: &AtomicBool) -> Result<bool, StoreError> {
        self.inner.watch(self.inner.tables.of(partition).purge(prefixes, stop))
    }
}

/// The right to change a partition.
struct Claim {
    store: Arc<Inner>,
    partition: PartitionId,
}

impl Claim {
    fn of(store: Arc<Inner>, partition: PartitionId) -> Result<Self, StoreError> {
        let is_free = store.open.lock().insert(partition);
        if is_free { Ok(Self { store, partition }) } else { Err(StoreError::Busy { partition }) }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.store.open.lock().remove(&self.partition);
    }
}

struct DiskCheckpoint {
    claim: Claim,
    /// The changes for sled.
    pairs: PairChanges,
    /// The changes for tables. `None` after an error.
    records: Option<TableChanges>,
}

impl DiskCheckpoint {
    fn set(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), StoreError> {
        let partition = self.claim.partition;
        check_key(partition, key)?;
        check_value(key, value.unwrap_or_default())?;
        if room_of(key) == Room::Sled {
            self.pairs.insert(key.to_vec(), value.map(<[u8]>::to_vec));
            return Ok(());
        }
        let records = self.records.as_mut().ok_or(StoreError::Stopped { partition })?;
        let outcome = records.set(key, value);
        if outcome.is_err() {
            self.records = None;
        }
        outcome
    }
}

impl OpenCheckpoint for DiskCheckpoint {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.set(key, Some(value))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), StoreError> {
        self.set(key, None)
    }

    fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { claim, pairs, records } = *self;
        let partition = claim.partition;
        claim.store.commit(partition, pairs, records.ok_or(StoreError::Stopped { partition })?)
    }
}
