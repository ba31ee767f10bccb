//! The tables of one owner, their list, and their changes: tables are appended, and merges replace
//! them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::error::{Result, TableError};
use super::merge::{KeyPrefixes, MergePlan, holds, merge, plan, plan_at_once, plan_at_rest};
use super::reader::Table;
use super::space::TableSpace;
use super::writer::TableWriter;
use parking_lot::{Condvar, Mutex, RwLock};
use serde::{Deserialize, Serialize};

use crate::codec::{self, CodecError};

/// Tables as a reader sees them, oldest first.
pub(crate) type TableList = Arc<Vec<Arc<Table>>>;

/// The tables of one owner.
#[derive(Debug)]
pub(crate) struct TableSet {
    /// The directory of the tables.
    pub(crate) space: Arc<TableSpace>,
    members: RwLock<Members>,
    merging: Mutex<MergeState>,
    merge_ended: Condvar,
    /// The number of threads that wait for a merge to end.
    waiting: AtomicUsize,
    /// The error of the last background merge, if it was damage.
    damage: Mutex<Option<TableError>>,
}

#[derive(Debug)]
struct Members {
    next: u64,
    /// The list grows only at its end, except for a merge, which replaces neighbours. There is one
    /// merge at a time.
    tables: TableList,
    /// Tables that a merge replaced, but that the current manifest may name.
    replaced: Vec<Arc<Table>>,
    /// When the last table was appended, or the set was opened.
    changed: Instant,
}

/// The state of a set's merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum MergeState {
    #[default]
    Idle,
    /// Waiting for a thread.
    Queued,
    Running,
}

/// A new manifest that is about to be committed, with its changes. Dropping it changes nothing, and
/// removes the files of its new tables.
pub(crate) struct Proposal {
    pub(crate) manifest: Manifest,
    new: Vec<Arc<Table>>,
    replaced: Vec<Arc<Table>>,
}

impl Proposal {
    /// Keeps the files of the new tables, since the manifest may be committed after a crash.
    pub(crate) fn keep(self) {
        self.new.iter().for_each(|table| table.keep());
    }
}

impl TableSet {
    /// Creates an empty set. Its first table gets the number `next`.
    pub(crate) fn new(space: TableSpace, next: u64) -> Self {
        Self::with(space, next, Vec::new())
    }

    /// Opens the tables that `manifest` names.
    pub(crate) fn open(space: TableSpace, manifest: &Manifest) -> Result<Self> {
        let open = |id: &u64| Table::open(&space, *id).map(Arc::new);
        let tables = manifest.tables.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self::with(space, manifest.next, tables))
    }

    fn with(space: TableSpace, next: u64, tables: Vec<Arc<Table>>) -> Self {
        Self {
            space: Arc::new(space),
            members: RwLock::new(Members { next, tables: Arc::new(tables), replaced: Vec::new(), changed: Instant::now() }),
            merging: Mutex::default(),
            merge_ended: Condvar::new(),
            waiting: AtomicUsize::new(0),
            damage: Mutex::default(),
        }
    }

    /// The current tables.
    pub(crate) fn tables(&self) -> TableList {
        Arc::clone(&self.members.read().tables)
    }

    /// The paths of the current tables.
    pub(crate) fn paths(&self) -> BTreeSet<PathBuf> {
        self.tables().iter().map(|table| self.space.path_of(table.id())).collect()
    }

    /// Looks up a key: `Some(None)` if it is deleted, `None` if no table has it.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>> {
        newest(&self.tables(), key, (self.space.layout.hash)(key), |value| value.map(<[u8]>::to_vec))
    }

    /// Begins a new table. `expected` is the maximum number of keys, if known.
    pub(crate) fn create(&self, expected: Option<u64>) -> Result<TableWriter> {
        let id = {
            let mut members = self.members.write();
            members.next += 1;
            members.next - 1
        };
        TableWriter::create(&self.space, id, expected)
    }

    /// Appends a table that the next manifest will name.
    pub(crate) fn append(&self, table: Table) {
        table.keep();
        let mut members = self.members.write();
        Arc::make_mut(&mut members.tables).push(Arc::new(table));
        members.changed = Instant::now();
    }

    /// Proposes a manifest with the current tables, followed by the `new` ones.
    pub(crate) fn propose(&self, new: Vec<Table>) -> Proposal {
        let new: Vec<Arc<Table>> = new.into_iter().map(Arc::new).collect();
        let members = self.members.read();
        let tables = members.tables.iter().chain(&new).map(|table| table.id()).collect();
        Proposal { manifest: Manifest { next: members.next, tables }, new, replaced: members.replaced.clone() }
    }

    /// Applies a proposal with a committed manifest. Files of tables that it does not name are
    /// removed once they have no readers.
    pub(crate) fn accept(&self, proposal: Proposal) {
        let Proposal { new, replaced, .. } = proposal;
        new.iter().for_each(|table| table.keep());
        replaced.iter().for_each(|table| table.discard());
        let mut members = self.members.write();
        if !new.is_empty() {
            Arc::make_mut(&mut members.tables).extend(new);
            members.changed = Instant::now();
        }
        members.replaced.retain(|table| !replaced.iter().any(|gone| Arc::ptr_eq(gone, table)));
    }

    /// Whether tables were merged since the last accepted proposal.
    pub(crate) fn has_replaced(&self) -> bool {
        !self.members.read().replaced.is_empty()
    }

    /// Returns the damage that a background merge found, once.
    pub(crate) fn take_damage(&self) -> Option<TableError> {
        self.damage.lock().take()
    }

    /// Whether the sizes of the tables suggest a merge.
    pub(crate) fn needs_merge(&self) -> bool {
        plan(&sizes_of(&self.tables()), self.space.layout.merge_percent).is_some()
    }

    /// Whether no table was appended for `quiet`.
    pub(crate) fn is_at_rest(&self, quiet: Duration) -> bool {
        self.members.read().changed.elapsed() >= quiet
    }

    /// Whether to merge all tables once the set is at rest. If so, returns their size in bytes.
    pub(crate) fn needs_merge_at_rest(&self) -> Option<u64> {
        let sizes = sizes_of(&self.tables());
        plan_at_rest(&sizes, self.space.layout.merge_percent).map(|_all| sizes.iter().sum())
    }

    /// Whether a merge waits or runs.
    pub(crate) fn is_merging(&self) -> bool {
        *self.merging.lock() != MergeState::Idle
    }

    /// Whether a thread waits for a merge to end.
    pub(super) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Marks the set as waiting for a merge thread. Returns `false` if it waits or merges already.
    pub(super) fn queue_merge(&self) -> bool {
        let mut state = self.merging.lock();
        let is_idle = *state == MergeState::Idle;
        if is_idle {
            *state = MergeState::Queued;
        }
        is_idle
    }

    /// Merges a [queued](Self::queue_merge) set by `plan`, unless another thread has merged it.
    pub(super) fn merge_queued(&self, plan: MergePlan, stop: &AtomicBool) -> Result<()> {
        {
            let mut state = self.merging.lock();
            if *state != MergeState::Queued {
                return Ok(());
            }
            *state = MergeState::Running;
        }
        let merged = self.merge_running(plan, stop);
        if let Err(TableError::Damaged { what }) = &merged {
            let found = TableError::damaged(what);
            *self.damage.lock() = Some(found);
        }
        merged.map(drop)
    }

    /// Merges tables on this thread by their sizes. Returns `false` if `stop` was set.
    pub(crate) fn merge(&self, stop: &AtomicBool) -> Result<bool> {
        self.begin_merge();
        self.merge_running(plan, stop)
    }

    /// Reduces the number of tables on this thread, even if their sizes suggest no merge. Waits for
    /// a running merge.
    pub(crate) fn merge_at_once(&self) -> Result<()> {
        self.begin_merge();
        self.merge_running(plan_at_once, &AtomicBool::new(false)).map(drop)
    }

    fn begin_merge(&self) {
        let mut state = self.merging.lock();
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.merge_ended.wait_while(&mut state, |state| *state == MergeState::Running);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        *state = MergeState::Running;
    }

    fn merge_running(&self, plan: MergePlan, stop: &AtomicBool) -> Result<bool> {
        let _end = EndMerge(self);
        let tables = self.tables();
        let Some(range) = plan(&sizes_of(&tables), self.space.layout.merge_percent) else { return Ok(true) };
        self.replace(&tables, range, &[], stop)
    }

    /// Removes the pairs whose keys begin with one of `prefixes` from all tables, by rewriting the
    /// tables on this thread. Tables that are appended during the call must have no such pairs.
    /// Does nothing if there are none. Returns `false` if `stop` was set.
    ///
    /// The files of the old tables are removed after the next manifest, once they have no readers.
    pub(crate) fn purge(&self, prefixes: KeyPrefixes<'_>, stop: &AtomicBool) -> Result<bool> {
        self.begin_merge();
        let _end = EndMerge(self);
        let tables = self.tables();
        if !holds(&tables, prefixes)? {
            return Ok(true);
        }
        self.replace(&tables, 0..tables.len(), prefixes, stop)
    }

    /// Merges all tables on this thread, which removes old values and deleted keys. Returns `false`
    /// if `stop` was set.
    ///
    /// The files of the old tables are removed as in [`TableSet::purge`].
    pub(crate) fn merge_all(&self, stop: &AtomicBool) -> Result<bool> {
        self.begin_merge();
        let _end = EndMerge(self);
        let tables = self.tables();
        // A single table has no key twice.
        if tables.len() < 2 { Ok(true) } else { self.replace(&tables, 0..tables.len(), &[], stop) }
    }

    /// Replaces a range of `tables` by one table with their pairs, without the pairs under
    /// `prefixes`; by none if the whole set becomes empty.
    fn replace(&self, tables: &[Arc<Table>], range: Range<usize>, prefixes: KeyPrefixes<'_>, stop: &AtomicBool) -> Result<bool> {
        let merging = &tables[range.clone()];
        let writer = self.create(Some(merging.iter().map(|table| table.count()).sum()))?;
        let Some(merged) = merge(merging, range.start == 0, prefixes, writer, stop)? else { return Ok(false) };
        // An empty table leaves no file when it is dropped.
        let merged = Some(merged).filter(|merged| range.start > 0 || merged.count() > 0);
        merged.iter().for_each(Table::keep);
        let mut members = self.members.write();
        // Other threads only append tables, so the range is still valid.
        let replaced: Vec<_> = Arc::make_mut(&mut members.tables).splice(range, merged.map(Arc::new)).collect();
        members.replaced.extend(replaced);
        Ok(true)
    }

    /// The number of files.
    #[cfg(test)]
    pub(crate) fn files(&self) -> usize {
        let members = self.members.read();
        members.tables.len() + members.replaced.len()
    }

    #[cfg(test)]
    pub(crate) fn wait_for_merge(&self) {
        self.merge_ended.wait_while(&mut self.merging.lock(), |state| *state != MergeState::Idle);
    }
}

/// Ends a merge in any case.
struct EndMerge<'s>(&'s TableSet);

impl Drop for EndMerge<'_> {
    fn drop(&mut self) {
        *self.0.merging.lock() = MergeState::Idle;
        self.0.merge_ended.notify_all();
    }
}

fn sizes_of(tables: &[Arc<Table>]) -> Vec<u64> {
    tables.iter().map(|table| table.file_len()).collect()
}

/// Returns the result of `read` for the newest value of a key, which is `None` if the key is
/// deleted. Returns `None` if no table has the key. `hash` is the layout's hash of the key.
pub(crate) fn newest<T>(tables: &[Arc<Table>], key: &[u8], hash: u128, read: impl Fn(Option<&[u8]>) -> T) -> Result<Option<T>> {
    for table in tables.iter().rev() {
        if let found @ Some(_) = table.get(key, hash, &read)? {
            return Ok(found);
        }
    }
    Ok(None)
}

/// The version of the manifest and of the tables that it names. Tables of another version are
/// rebuilt from the log.
const VERSION: u8 = 1;

/// The tables of a set. Tables that it does not name don't count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The number of the next table.
    pub(crate) next: u64,
    /// The numbers of the tables, oldest first.
    pub(crate) tables: Vec<u64>,
}

impl Manifest {
    /// Encodes the manifest.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        codec::encode(VERSION, self)
            .map_err(|error| TableError::Io { action: "encode its manifest", source: std::io::Error::other(error) })
    }

    /// Decodes a manifest.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        codec::decode(VERSION, bytes).map_err(|error| match error {
            CodecError::UnknownVersion { found, .. } => TableError::OtherFormat { found, expected: VERSION },
            error => TableError::damaged(format!("the manifest of its tables: {error}")),
        })
    }
}
