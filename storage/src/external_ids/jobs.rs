//! What is done off the owner's thread: writing a frozen table, merging runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::error::ExternalIdsError;
use super::manifest::{Manifest, run_path};
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
    pub(super) number: u64,
    pub(super) _token: Arc<()>,
}

/// Runs to be merged into one.
#[derive(Debug)]
pub struct Merge {
    pub(super) shared: Arc<Shared>,
    pub(super) runs: Vec<Arc<Run>>,
    pub(super) _token: Arc<()>,
}

/// Says that a durable run waits to be [adopted](super::ExternalIds::adopt). If it is dropped, the next
/// [freeze](super::ExternalIds::freeze) adopts the run.
#[derive(Debug)]
#[must_use = "it is used once it is adopted"]
pub struct Written {
    pub(super) _private: (),
}

/// A run that the owner can use from now on.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) run: Arc<Run>,
    pub(super) replaces: Replaced,
}

/// What a written run takes the place of.
#[derive(Debug, Clone)]
pub(super) enum Replaced {
    /// The frozen table of this number.
    Frozen(u64),
    /// These runs.
    Runs(Vec<Arc<Run>>),
}

impl Replaced {
    /// The numbers of the runs.
    fn ids(&self) -> Vec<u64> {
        match self {
            Self::Frozen(_) => Vec::new(),
            Self::Runs(runs) => runs.iter().map(|run| run.id).collect(),
        }
    }
}

/// What the owner and its jobs share, and change in turn.
#[derive(Debug)]
pub(super) struct State {
    pub(super) manifest: Manifest,
    /// Durable runs that the list does not name yet.
    pub(super) unlisted: Vec<(u64, Replaced)>,
    /// Durable runs that the owner does not use yet.
    pub(super) finished: Vec<Finished>,
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

    /// Writes the run; when this returns, everything in it is durable. After an error it may be tried again: what is
    /// written already is not written again.
    ///
    /// # Errors
    /// [`ExternalIdsError::Io`].
    pub fn write(&self) -> Result<Written, ExternalIdsError> {
        if self.table.is_empty() || self.shared.has_written(self.number) {
            return self.shared.list(self.number);
        }
        let mut entries: Vec<(u128, u64)> = self.table.iter().map(|(fingerprint, at)| (*fingerprint, *at)).collect();
        entries.sort_unstable();
        let positions = entries.iter().map(|(_, position)| *position);
        let bounds = (positions.clone().min().unwrap_or(0), positions.max().unwrap_or(0));
        self.shared.write_run(entries.len() as u64, bounds, Replaced::Frozen(self.number), |writer| {
            entries.iter().try_for_each(|(fingerprint, position)| writer.push(*fingerprint, *position))
        })?;
        self.shared.list(self.number)
    }
}

impl Merge {
    /// How many entries are to be merged.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.header.count).sum()
    }

    /// Writes the merged run. The others' files go when the owner has adopted it. Looks at `stop` now and then.
    ///
    /// # Errors
    /// [`ExternalIdsError::Stopped`] and [`ExternalIdsError::Io`] leave everything as it was;
    /// [`ExternalIdsError::Damaged`].
    pub fn write(&self, stop: &AtomicBool) -> Result<Written, ExternalIdsError> {
        let bound = |of: fn(&Run) -> u64| self.runs.iter().map(move |run| of(run));
        let smallest = bound(|run| run.header.smallest).min().unwrap_or(0);
        let largest = bound(|run| run.header.largest).max().unwrap_or(0);
        let replaces = Replaced::Runs(self.runs.clone());
        if !self.shared.has_merged(&replaces.ids()) {
            self.shared.write_run(self.entries(), (smallest, largest), replaces, |writer| self.merge(writer, stop))?;
        }
        self.shared.list(0)
    }

    fn merge(&self, writer: &mut RunWriter, stop: &AtomicBool) -> Result<(), ExternalIdsError> {
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
                return Err(ExternalIdsError::Stopped);
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
    fn advance(&mut self) -> Result<bool, ExternalIdsError> {
        let next = self.rest.next()?;
        if let Some(head) = next {
            if head.0 <= self.head.0 {
                return Err(ExternalIdsError::damaged("a run is out of order"));
            }
            self.head = head;
        }
        Ok(next.is_some())
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the frozen table of this number is in a run.
    fn has_written(&self, number: u64) -> bool {
        let state = self.state();
        let written = |(_, replaces): &(u64, Replaced)| matches!(replaces, Replaced::Frozen(written) if *written == number);
        state.manifest.covered >= number || state.unlisted.iter().any(written)
    }

    /// Whether the list says all that it should, up to the frozen table of this number.
    pub(super) fn is_all_listed(&self, number: u64) -> bool {
        let state = self.state();
        state.unlisted.is_empty() && state.manifest.covered >= number
    }

    /// Whether these runs are merged, but for the list.
    fn has_merged(&self, old: &[u64]) -> bool {
        self.state().unlisted.iter().any(|(_, replaces)| replaces.ids() == old)
    }

    /// Writes a run and opens it. It counts once it is [listed](Self::list).
    fn write_run(
        &self,
        entries: u64,
        bounds: (u64, u64),
        replaces: Replaced,
        fill: impl FnOnce(&mut RunWriter) -> Result<(), ExternalIdsError>,
    ) -> Result<(), ExternalIdsError> {
        let incarnation = self.incarnation.number();
        let id = self.state().manifest.allocate();
        let path = run_path(&self.path, id);
        let mut writer = RunWriter::create(&path, incarnation, entries, bounds)?;
        fill(&mut writer)?;
        writer.finish()?;
        let run = Run::open(&self.dir, id, incarnation).inspect_err(|_| drop(remove_file(&path)))?;
        let mut state = self.state();
        state.unlisted.push((id, replaces.clone()));
        state.finished.push(Finished { run: Arc::new(run), replaces });
        Ok(())
    }

    /// Lists all runs that are not listed yet, durably; with them, all frozen tables up to `number` are in the index.
    fn list(&self, number: u64) -> Result<Written, ExternalIdsError> {
        let mut state = self.state();
        let mut manifest = state.manifest.clone();
        for (id, replaces) in &state.unlisted {
            let old = replaces.ids();
            if !old.iter().all(|id| manifest.runs.contains(id)) {
                return Err(ExternalIdsError::damaged("a merged run is not in the list of runs"));
            }
            manifest.runs.retain(|id| !old.contains(id));
            manifest.runs.insert(*id);
            if let Replaced::Frozen(number) = replaces {
                manifest.covered = manifest.covered.max(*number);
            }
        }
        manifest.covered = manifest.covered.max(number);
        manifest.write(&self.path)?;
        state.manifest = manifest;
        for (_, replaces) in state.unlisted.drain(..) {
            if let Replaced::Runs(runs) = replaces {
                runs.iter().for_each(|run| run.remove_at_end());
            }
        }
        Ok(Written { _private: () })
    }
}
