//! What is done off the owner's thread: writing a frozen table, merging runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use super::error::FingerprintError;
use super::manifest::run_path;
use super::run::{Run, RunIter};
use super::writer::RunWriter;
use super::{Shared, Table};
use crate::files::remove_file;

/// How many entries a merge writes between two looks at whether it should stop.
const STOP_EVERY: u64 = 1 << 14;

/// A table to be written as a run. While it exists no other is frozen.
#[derive(Debug)]
pub struct Frozen {
    pub(super) shared: Arc<Shared>,
    pub(super) table: Arc<Table>,
    pub(super) token: Arc<()>,
}

/// Runs to be merged into one.
#[derive(Debug)]
pub struct Merge {
    pub(super) shared: Arc<Shared>,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) token: Arc<()>,
}

/// A durable run, to be [adopted](super::Fingerprints::adopt).
#[derive(Debug)]
#[must_use = "it is used once it is adopted"]
pub struct Written {
    pub(super) run: Run,
    pub(super) replaces: Replaced,
    pub(super) _token: Arc<()>,
}

/// What a written run takes the place of.
#[derive(Debug)]
pub(super) enum Replaced {
    /// The frozen table.
    Frozen,
    /// These runs.
    Runs(Vec<u64>),
}

impl Frozen {
    /// How many fingerprints are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is nothing in it; a table that is frozen has something.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Writes the run; when this returns, everything in it is durable. After an error it may be tried again.
    ///
    /// # Errors
    /// [`FingerprintError::Io`].
    pub fn write(&self) -> Result<Written, FingerprintError> {
        let mut entries: Vec<(u128, u64)> = self.table.iter().map(|(fingerprint, at)| (*fingerprint, *at)).collect();
        entries.sort_unstable();
        let positions = entries.iter().map(|(_, position)| *position);
        let bounds = (positions.clone().min().unwrap_or(0), positions.max().unwrap_or(0));
        let run = self.shared.write_run(entries.len() as u64, bounds, &[], |writer| {
            entries.iter().try_for_each(|(fingerprint, position)| writer.push(*fingerprint, *position))
        })?;
        Ok(Written { run, replaces: Replaced::Frozen, _token: self.token.clone() })
    }
}

impl Merge {
    /// How many entries are to be merged.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.header.count).sum()
    }

    /// Writes the merged run and removes the others' files, which the owner goes on reading until it adopts the new
    /// one. Looks at `stop` now and then.
    ///
    /// # Errors
    /// [`FingerprintError::Stopped`] and [`FingerprintError::Io`] leave everything as it was;
    /// [`FingerprintError::Damaged`].
    pub fn write(&self, stop: &AtomicBool) -> Result<Written, FingerprintError> {
        let bound = |of: fn(&Run) -> u64| self.runs.iter().map(move |run| of(run));
        let smallest = bound(|run| run.header.smallest).min().unwrap_or(0);
        let largest = bound(|run| run.header.largest).max().unwrap_or(0);
        let old: Vec<u64> = self.runs.iter().map(|run| run.id).collect();
        let run = self.shared.write_run(self.entries(), (smallest, largest), &old, |writer| self.merge(writer, stop))?;
        for id in &old {
            // What stays behind is removed at the next open.
            let _ = remove_file(&run_path(&self.shared.dir, *id));
        }
        Ok(Written { run, replaces: Replaced::Runs(old), _token: self.token.clone() })
    }

    fn merge(&self, writer: &mut RunWriter, stop: &AtomicBool) -> Result<(), FingerprintError> {
        let mut sources = Vec::new();
        for run in &self.runs {
            let mut rest = run.iter();
            if let Some(head) = rest.next()? {
                sources.push(Source { head, rest });
            }
        }
        let mut written: u64 = 0;
        while let Some(least) = sources.iter().map(|source| source.head).min() {
            // Of equal fingerprints the smallest position comes first, and is the one that counts.
            writer.push(least.0, least.1)?;
            let mut at = 0;
            while let Some(source) = sources.get_mut(at) {
                if source.head.0 != least.0 || source.advance()? {
                    at += 1;
                } else {
                    sources.swap_remove(at);
                }
            }
            written += 1;
            if written.is_multiple_of(STOP_EVERY) && stop.load(Ordering::Relaxed) {
                return Err(FingerprintError::Stopped);
            }
        }
        Ok(())
    }
}

struct Source<'a> {
    head: (u128, u64),
    rest: RunIter<'a>,
}

impl Source<'_> {
    /// Goes to the next entry; false at the end.
    fn advance(&mut self) -> Result<bool, FingerprintError> {
        let next = self.rest.next()?;
        if let Some(head) = next {
            if head.0 <= self.head.0 {
                return Err(FingerprintError::damaged("a run is out of order"));
            }
            self.head = head;
        }
        Ok(next.is_some())
    }
}

impl Shared {
    /// Writes a run, enters it into the list in the place of `old`, and opens it.
    fn write_run(
        &self,
        entries: u64,
        bounds: (u64, u64),
        old: &[u64],
        fill: impl FnOnce(&mut RunWriter) -> Result<(), FingerprintError>,
    ) -> Result<Run, FingerprintError> {
        let incarnation = self.incarnation.number();
        let id = self.manifest.lock().unwrap_or_else(PoisonError::into_inner).allocate();
        let path = run_path(&self.dir, id);
        let mut writer = RunWriter::create(&path, incarnation, entries, bounds)?;
        fill(&mut writer)?;
        writer.finish()?;
        let run = Run::open(&path, id, incarnation)?;
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        manifest.replace(&self.dir, old, id)?;
        Ok(run)
    }
}
