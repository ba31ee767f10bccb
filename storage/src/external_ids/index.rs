use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Instant;

use super::error::ExternalIdsError;
use super::jobs::{Frozen, Merge, Purge, SharedIndex, Written};
use super::manifest;
use super::memtable::{ENTRY_BYTES, Memtable, first_position};
use super::view::ExternalIdsView;
use crate::files::make_private_dir;
use crate::format::Incarnation;
use crate::sstable::{TableFile, TableList, UncheckedTables};

/// How to open an index.
#[derive(Debug, Clone, Copy)]
pub struct ExternalIdsOptions {
    /// The incarnation of the data directory. An index of another incarnation is refused.
    pub incarnation: Incarnation,
}

/// The external ids of a partition. Used by one thread.
#[derive(Debug)]
pub struct ExternalIds {
    shared: Arc<SharedIndex>,
    active: Memtable,
    frozen: Option<FrozenMemtable>,
    /// The number of memtables that were frozen since the index was opened.
    sequence: u64,
    tables: TableList,
    merging: Weak<()>,
}

/// A memtable that is being written.
#[derive(Debug)]
struct FrozenMemtable {
    memtable: Arc<Memtable>,
    number: u64,
    job: Weak<()>,
}

/// The outcome of [`ExternalIds::freeze`].
#[derive(Debug)]
pub enum Freeze {
    /// Everything is in tables, durably.
    Nothing,
    /// An earlier frozen memtable is still being written.
    Busy,
    /// A memtable to be written.
    Write(Frozen),
}

impl ExternalIds {
    /// Opens the index in `dir`, or begins one.
    ///
    /// # Errors
    /// Any [`ExternalIdsError`] except [`ExternalIdsError::Stopped`].
    pub fn open(dir: &Path, options: ExternalIdsOptions) -> Result<Self, ExternalIdsError> {
        make_private_dir(dir).map_err(ExternalIdsError::io("create its directory"))?;
        let (set, manifest) = manifest::open(dir, options.incarnation)?;
        let tables = set.tables();
        let shared = Arc::new(SharedIndex::new(dir.to_owned(), options.incarnation, set, manifest));
        Ok(Self { shared, active: Memtable::default(), frozen: None, sequence: 0, tables, merging: Weak::new() })
    }

    /// Removes an index and begins an empty one, to be filled from the log. The index must not be
    /// open. Other threads can continue to read its tables.
    ///
    /// # Errors
    /// [`ExternalIdsError::Io`].
    pub fn reset(dir: &Path, options: ExternalIdsOptions) -> Result<(), ExternalIdsError> {
        manifest::reset(dir, options.incarnation)
    }

    /// Records the fingerprint of the event at `position`. Returns the first position with this
    /// fingerprint, which is `position` itself if the fingerprint is new. The smallest position
    /// wins, in whatever order they are recorded.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`], [`ExternalIdsError::Io`].
    pub fn first(&mut self, fingerprint: u128, position: u64) -> Result<u64, ExternalIdsError> {
        if let Some(known) = self.active.get_mut(&fingerprint) {
            *known = position.min(*known);
            return Ok(*known);
        }
        match self.first_before(fingerprint)? {
            Some(known) if known <= position => Ok(known),
            _ => {
                self.active.insert(fingerprint, position);
                Ok(position)
            }
        }
    }

    /// The first position with this fingerprint, if any is known.
    ///
    /// # Errors
    /// Same as [`ExternalIds::first`].
    pub fn get(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        match self.active.get(&fingerprint) {
            Some(known) => Ok(Some(*known)),
            None => self.first_before(fingerprint),
        }
    }

    /// The first position outside the active memtable. A position in the active memtable is always
    /// smaller.
    fn first_before(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        first_position(self.frozen.as_ref().map(|frozen| &*frozen.memtable), &self.tables, fingerprint)
    }

    /// The index without the active memtable, for another thread.
    pub fn view(&self) -> ExternalIdsView {
        let frozen = self.frozen.as_ref().map(|frozen| Arc::clone(&frozen.memtable));
        ExternalIdsView { frozen, tables: Arc::clone(&self.tables) }
    }

    /// Sets the active memtable aside for writing. Lookups still use it. Once the [`Frozen`] is
    /// written, everything recorded before this call is durable. If a job is dropped before it
    /// wrote its memtable, the next job includes it. A written memtable is adopted, and never
    /// written again.
    pub fn freeze(&mut self) -> Freeze {
        self.refresh();
        if let Some(frozen) = &self.frozen
            && frozen.job.strong_count() > 0
        {
            return Freeze::Busy;
        }
        let mut memtable = std::mem::take(&mut self.active);
        if let Some(abandoned) = self.frozen.take() {
            for (fingerprint, position) in abandoned.memtable.iter() {
                // The active memtable has smaller positions.
                memtable.entry(*fingerprint).or_insert(*position);
            }
        }
        if memtable.is_empty() && self.shared.is_saved() {
            return Freeze::Nothing;
        }
        self.sequence += 1;
        let (memtable, token, number) = (Arc::new(memtable), Arc::new(()), self.sequence);
        self.frozen = Some(FrozenMemtable { memtable: Arc::clone(&memtable), number, job: Arc::downgrade(&token) });
        Freeze::Write(Frozen { shared: Arc::clone(&self.shared), memtable, number, _token: token })
    }

    /// Returns a merge of tables, if one is worthwhile and none is in progress.
    pub fn merge(&mut self) -> Option<Merge> {
        self.refresh();
        if self.merging.strong_count() > 0 || !self.shared.set.needs_merge() {
            return None;
        }
        let token = Arc::new(());
        self.merging = Arc::downgrade(&token);
        Some(Merge { shared: Arc::clone(&self.shared), _token: token })
    }

    /// Returns the removal of all fingerprints that begin with `prefix`. They must be in tables
    /// already.
    #[must_use]
    pub fn purge(&self, prefix: &[u8]) -> Purge {
        Purge { shared: Arc::clone(&self.shared), prefix: prefix.to_vec() }
    }

    /// Returns the files of its tables, with everything that was frozen and written. A copy must
    /// have them in this order.
    pub fn files(&mut self) -> Vec<TableFile> {
        self.refresh();
        TableFile::of(&self.tables)
    }

    /// Replaces the index in `dir` by copies of the [files](Self::files) of another one. The copies
    /// are in `copies`, with the names of [`TableFile::copy_name`], by their numbers in order. The
    /// index must not be open.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`] and [`ExternalIdsError::Io`]. The index is then the old one or
    /// the new one.
    pub fn replace(dir: &Path, options: ExternalIdsOptions, copies: &Path, ids: &[u64]) -> Result<(), ExternalIdsError> {
        make_private_dir(dir).map_err(ExternalIdsError::io("create its directory"))?;
        manifest::replace(dir, options.incarnation, copies, ids)
    }

    /// Uses a written table in place of its source.
    pub fn adopt(&mut self, written: Written) {
        let Written { _private } = written;
        self.refresh();
    }

    fn refresh(&mut self) {
        // The order matters: the tables have the written memtable.
        let written = self.shared.written();
        self.tables = self.shared.set.tables();
        drop(self.frozen.take_if(|frozen| frozen.number <= written));
    }

    /// The number of fingerprints that are only in memory. After a crash they must be recorded
    /// again.
    pub fn unwritten(&self) -> usize {
        self.active.len() + self.frozen.as_ref().map_or(0, |frozen| frozen.memtable.len())
    }

    /// The number of tables.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// The number of entries in the tables. A fingerprint in several tables counts in each of them
    /// until they are merged.
    pub fn entries(&self) -> u64 {
        self.tables.iter().map(|table| table.count()).sum()
    }

    /// The approximate memory of the index.
    pub fn memory_bytes(&self) -> u64 {
        let memtables = self.active.capacity() + self.frozen.as_ref().map_or(0, |frozen| frozen.memtable.capacity());
        memtables as u64 * ENTRY_BYTES + self.tables.iter().map(|table| table.memory_bytes()).sum::<u64>()
    }

    /// Reads and checks every table.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`], [`ExternalIdsError::Io`].
    pub fn verify(&self) -> Result<(), ExternalIdsError> {
        self.verify_until(None).map(drop)
    }

    /// Checks tables until `deadline`, and returns the unchecked ones.
    ///
    /// # Errors
    /// Same as [`ExternalIds::verify`].
    pub fn verify_until(&self, deadline: Option<Instant>) -> Result<UncheckedTables, ExternalIdsError> {
        Ok(UncheckedTables::check_until(&self.tables, deadline)?)
    }
}
