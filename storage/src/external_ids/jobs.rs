//! The work on other threads than the owner's: writing a frozen memtable, and merging tables.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::error::ExternalIdsError;
use super::manifest;
use super::memtable::Memtable;
use crate::format::Incarnation;
use crate::sstable::{Manifest, TableSet};
use parking_lot::Mutex;

/// The part of an index that its owner shares with its jobs.
#[derive(Debug)]
pub(super) struct SharedIndex {
    dir: PathBuf,
    incarnation: Incarnation,
    pub(super) set: TableSet,
    /// The current manifest.
    saved: Mutex<Manifest>,
    /// The number of the last frozen memtable that is in the tables.
    written: AtomicU64,
}

impl SharedIndex {
    pub(super) fn new(dir: PathBuf, incarnation: Incarnation, set: TableSet, saved: Manifest) -> Self {
        Self { dir, incarnation, set, saved: Mutex::new(saved), written: AtomicU64::new(0) }
    }

    /// The number of the last frozen memtable that is in the tables.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Acquire)
    }

    /// Whether the current manifest names all tables.
    pub(super) fn is_saved(&self) -> bool {
        self.saved.lock().tables == self.set.propose(Vec::new()).manifest.tables
    }

    /// Writes a manifest that names all tables.
    fn save(&self) -> Result<Written, ExternalIdsError> {
        let mut saved = self.saved.lock();
        let proposal = self.set.propose(Vec::new());
        if saved.tables != proposal.manifest.tables {
            manifest::write(&self.dir, self.incarnation, &proposal.manifest)?;
            *saved = proposal.manifest.clone();
            self.set.accept(proposal);
        }
        Ok(Written { _private: () })
    }
}

/// A memtable to be written as a table. While it exists, no other one is frozen.
#[derive(Debug)]
pub struct Frozen {
    pub(super) shared: Arc<SharedIndex>,
    pub(super) memtable: Arc<Memtable>,
    pub(super) number: u64,
    pub(super) _token: Arc<()>,
}

/// Tables to be merged.
#[derive(Debug)]
pub struct Merge {
    pub(super) shared: Arc<SharedIndex>,
    pub(super) _token: Arc<()>,
}

/// Fingerprints to be removed.
#[derive(Debug)]
pub struct Purge {
    pub(super) shared: Arc<SharedIndex>,
    pub(super) prefix: Vec<u8>,
}

/// Reports that a durable table waits to be [adopted](super::ExternalIds::adopt). If it is dropped,
/// the next [freeze](super::ExternalIds::freeze) adopts the table.
#[derive(Debug)]
#[must_use = "the table is used once it is adopted"]
pub struct Written {
    pub(super) _private: (),
}

impl Frozen {
    /// The number of fingerprints.
    pub fn len(&self) -> usize {
        self.memtable.len()
    }

    /// Whether there are no fingerprints. Writing then completes a manifest that could not be
    /// written before.
    pub fn is_empty(&self) -> bool {
        self.memtable.is_empty()
    }

    /// Writes the table and makes it durable. After an error it may be repeated, and doesn't write
    /// anything twice.
    ///
    /// # Errors
    /// [`ExternalIdsError::Io`].
    pub fn write(&self) -> Result<Written, ExternalIdsError> {
        if self.shared.written() < self.number {
            self.write_table()?;
            self.shared.written.store(self.number, Ordering::Release);
        }
        self.shared.save()
    }

    fn write_table(&self) -> Result<(), ExternalIdsError> {
        let mut entries: Vec<(u128, u64)> = self.memtable.iter().map(|(fingerprint, at)| (*fingerprint, *at)).collect();
        if entries.is_empty() {
            return Ok(());
        }
        entries.sort_unstable();
        let mut writer = self.shared.set.create(Some(entries.len() as u64))?;
        for (fingerprint, position) in entries {
            writer.push(&fingerprint.to_be_bytes(), Some(&position.to_be_bytes()))?;
        }
        self.shared.set.append(writer.finish()?);
        Ok(())
    }
}

impl Purge {
    /// Rewrites the tables without the fingerprints. Removes the files of the old tables once they
    /// have no readers. Checks `stop` regularly. It may be repeated.
    ///
    /// # Errors
    /// Same as [`Merge::write`].
    pub fn write(&self, stop: &AtomicBool) -> Result<Written, ExternalIdsError> {
        if !self.shared.set.purge(std::slice::from_ref(&self.prefix), stop)? {
            return Err(ExternalIdsError::Stopped);
        }
        self.shared.save()
    }
}

impl Merge {
    /// Merges the tables. Removes the files of the old tables once they have no readers. Checks
    /// `stop` regularly.
    ///
    /// # Errors
    /// [`ExternalIdsError::Stopped`] and [`ExternalIdsError::Io`] change nothing;
    /// [`ExternalIdsError::Damaged`].
    pub fn write(&self, stop: &AtomicBool) -> Result<Written, ExternalIdsError> {
        if !self.shared.set.merge(stop)? {
            return Err(ExternalIdsError::Stopped);
        }
        self.shared.save()
    }
}
