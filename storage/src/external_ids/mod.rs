//! The index of external ids: which position holds each of them first. It is kept for ever.
//!
//! An id is known by a 128-bit keyed fingerprint. New ones go to a table in memory; now and then the table is
//! [frozen](ExternalIds::freeze), written as a sorted, immutable run by another thread, and exchanged for it.
//! Runs of like size are [merged](ExternalIds::merge), so that their number grows with the logarithm of the entries.
//! In memory a run takes about 1.5 bytes an entry, on disk at most 24.
//!
//! Two rules tie it to the log and the checkpoints:
//! - It may be *ahead* of the checkpoint: at a replay an event finds its own position, and so is the first again.
//! - It must not be *behind*: before a checkpoint commits, the table with its positions is frozen and written. The owner stores
//!   with the checkpoint how many different ids its events have: an index with fewer [entries](ExternalIds::entries) is
//!   behind. The [numbers](ExternalIds::sequence) of tables and [`ExternalIds::covers`] tell the same more exactly; nothing
//!   but the tests asks for them so far.
//!
//! ```text
//! owner's thread                     another thread
//! freeze() ── Frozen ──────────────▶ write(): run synced, list replaced
//! adopt()  ◀───────────── Written ──
//! merge()  ── Merge ───────────────▶ write(): runs merged, list replaced, old files removed
//! adopt()  ◀───────────── Written ──
//! ```

mod error;
mod jobs;
mod manifest;
mod run;
mod view;
mod writer;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

pub use error::ExternalIdsError;
pub use jobs::{Frozen, Merge, Written};
pub use view::ExternalIdsView;

use crate::files::{Dir, OpenFiles, make_private_dir};
use crate::format::Incarnation;
use crate::pace::{self, Pace};
use jobs::{Finished, Replaced, State};
use manifest::Manifest;
use run::{Run, RunDir};

/// Runs below this many entries are all of one size class; each further class is four times as large.
const SMALLEST_CLASS: u64 = 1 << 16;
const CLASS_FACTOR: u64 = 4;
/// So many runs of one class are merged.
const MERGE_AT: usize = 4;
/// What an entry of the table takes: 32 bytes, a control byte, and the room that a hash table leaves free.
const TABLE_ENTRY_BYTES: u64 = 33 * 8 / 7;

/// ExternalIds are uniformly random, so their low half is as good a hash as any.
#[derive(Debug, Default)]
struct LowHalf(u64);

impl Hasher for LowHalf {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }
}

type Table = HashMap<u128, u64, BuildHasherDefault<LowHalf>>;

/// What the owner and its jobs share.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    dir: RunDir,
    incarnation: Incarnation,
    state: Mutex<State>,
}

/// How to open an index.
#[derive(Debug, Clone, Copy)]
pub struct ExternalIdsOptions {
    /// The life of the data directory; an index of another one is refused.
    pub incarnation: Incarnation,
}

/// The index of one partition's (or shard's) external ids. Used by one thread.
#[derive(Debug)]
pub struct ExternalIds {
    shared: Arc<Shared>,
    active: Table,
    frozen: Option<FrozenTable>,
    /// The number of the last table that was frozen.
    sequence: u64,
    runs: Vec<Arc<Run>>,
    merging: Vec<(Weak<()>, Vec<u64>)>,
}

/// A table that is being written.
#[derive(Debug)]
struct FrozenTable {
    table: Arc<Table>,
    number: u64,
    job: Weak<()>,
}

/// What [`ExternalIds::freeze`] found.
#[derive(Debug)]
pub enum Freeze {
    /// Everything is in runs, durable.
    Nothing,
    /// An earlier frozen table is still being written.
    Busy,
    /// This is to be written.
    Write(Frozen),
}

impl ExternalIds {
    /// Opens the index in `dir`, or begins one.
    ///
    /// # Errors
    /// Any [`ExternalIdsError`] but [`ExternalIdsError::Stopped`].
    pub fn open(dir: &Path, options: ExternalIdsOptions) -> Result<Self, ExternalIdsError> {
        make_private_dir(dir).map_err(ExternalIdsError::io("create its directory"))?;
        let incarnation = options.incarnation;
        let manifest = Manifest::open(dir, incarnation)?;
        let held = Arc::new(Dir::open(dir).map_err(ExternalIdsError::io("open its directory"))?);
        let run_dir = RunDir { dir: held, open_files: OpenFiles::of_process() };
        let open = |id: &u64| Run::open(&run_dir, *id, incarnation.number()).map(Arc::new);
        let runs = manifest.runs.iter().map(open).collect::<Result<_, _>>()?;
        let sequence = manifest.covered;
        let state = Mutex::new(State { manifest, unlisted: Vec::new(), finished: Vec::new() });
        let shared = Arc::new(Shared { path: dir.to_owned(), dir: run_dir, incarnation, state });
        Ok(Self { shared, active: Table::default(), frozen: None, sequence, runs, merging: Vec::new() })
    }

    /// Removes an index and begins an empty one, which is to be filled from the log. It must not be open; runs of it that
    /// are still read on other threads stay readable there.
    ///
    /// # Errors
    /// [`ExternalIdsError::Io`].
    pub fn reset(dir: &Path, options: ExternalIdsOptions) -> Result<(), ExternalIdsError> {
        manifest::begin_anew(dir, options.incarnation)
    }

    /// Notes that the event at `position` has this fingerprint, and returns the first position that has it: `position`
    /// itself, if none before has. Of several the smallest counts, in whatever order they are told.
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

    /// The first position that has this fingerprint, if any is known.
    ///
    /// # Errors
    /// As [`ExternalIds::first`].
    pub fn get(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        match self.active.get(&fingerprint) {
            Some(known) => Ok(Some(*known)),
            None => self.first_before(fingerprint),
        }
    }

    /// What is known outside the active table, whose positions are always smaller.
    fn first_before(&self, fingerprint: u128) -> Result<Option<u64>, ExternalIdsError> {
        view::first_of(self.frozen.as_ref().map(|frozen| &*frozen.table), &self.runs, fingerprint)
    }

    /// The table that is being written.
    fn frozen_table(&self) -> Option<Arc<Table>> {
        self.frozen.as_ref().map(|frozen| Arc::clone(&frozen.table))
    }

    /// Sets the active table aside to be written; it is still consulted. When the [`Frozen`] is written, all that was
    /// told before this call is durable. A frozen table whose job was dropped unwritten is part of the next one; what was
    /// written is adopted, and never written again.
    pub fn freeze(&mut self) -> Freeze {
        self.use_finished();
        if let Some(frozen) = &self.frozen
            && frozen.job.strong_count() > 0
        {
            return Freeze::Busy;
        }
        let mut table = std::mem::take(&mut self.active);
        if let Some(abandoned) = self.frozen.take() {
            for (fingerprint, position) in abandoned.table.iter() {
                // What is active has smaller positions.
                table.entry(*fingerprint).or_insert(*position);
            }
        }
        if table.is_empty() && self.shared.is_all_listed(self.sequence) {
            return Freeze::Nothing;
        }
        self.sequence += 1;
        let (table, token, number) = (Arc::new(table), Arc::new(()), self.sequence);
        self.frozen = Some(FrozenTable { table: table.clone(), number, job: Arc::downgrade(&token) });
        Freeze::Write(Frozen { shared: self.shared.clone(), table, number, _token: token })
    }

    /// The next merge that is worth while, if any. Several may be under way, of different runs.
    pub fn merge(&mut self) -> Option<Merge> {
        self.use_finished();
        self.merging.retain(|(job, _)| job.strong_count() > 0);
        let mut classes: HashMap<u32, Vec<Arc<Run>>> = HashMap::new();
        for run in &self.runs {
            if !self.merging.iter().any(|(_, busy)| busy.contains(&run.id)) {
                classes.entry(class(run.header.count)).or_default().push(run.clone());
            }
        }
        let (_, runs) = classes.into_iter().filter(|(_, runs)| runs.len() >= MERGE_AT).min_by_key(|(class, _)| *class)?;
        let token = Arc::new(());
        self.merging.push((Arc::downgrade(&token), runs.iter().map(|run| run.id).collect()));
        Some(Merge { shared: self.shared.clone(), runs, _token: token })
    }

    /// Uses a written run in the place of what it was made from.
    pub fn adopt(&mut self, written: Written) {
        let Written { _private } = written;
        self.use_finished();
    }

    fn use_finished(&mut self) {
        let finished = std::mem::take(&mut self.shared.state().finished);
        for Finished { run, replaces } in finished {
            match replaces {
                Replaced::Frozen(number) => drop(self.frozen.take_if(|frozen| frozen.number == number)),
                Replaced::Runs(old) => self.runs.retain(|run| !old.iter().any(|old| old.id == run.id)),
            }
            self.runs.push(run);
        }
    }

    /// The number of the last table that was frozen, 0 if none ever was. A checkpoint stores it.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The number that has all that was told so far, once the next frozen table is written: what a checkpoint stores that is
    /// collected before [`ExternalIds::freeze`].
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.sequence + u64::from(!self.active.is_empty())
    }

    /// Whether all tables up to the one of this number are in the index, durably. If a checkpoint stored the number, the index must
    /// have them; otherwise it is not the index that the checkpoint was made with.
    #[must_use]
    pub fn covers(&self, sequence: u64) -> bool {
        self.shared.state().manifest.covered >= sequence
    }

    /// How many fingerprints are in memory only, and would have to be told again after a crash.
    #[must_use]
    pub fn unwritten(&self) -> usize {
        self.active.len() + self.frozen.as_ref().map_or(0, |frozen| frozen.table.len())
    }

    /// How many runs there are.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs.len()
    }

    /// How many entries the runs have. An id that is in several runs counts in each of them, until they are merged.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.runs.iter().map(|run| run.header.count).sum()
    }

    /// The memory it takes, about.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let tables = self.active.capacity() + self.frozen.as_ref().map_or(0, |frozen| frozen.table.capacity());
        tables as u64 * TABLE_ENTRY_BYTES + self.runs.iter().map(|run| run.memory_bytes()).sum::<u64>()
    }

    /// Reads every page of every run and checks it.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`], [`ExternalIdsError::Io`].
    pub fn verify(&self) -> Result<(), ExternalIdsError> {
        self.verify_until(None).map(drop)
    }

    /// Checks runs until a time, and returns those that are left.
    ///
    /// # Errors
    /// As [`ExternalIds::verify`].
    pub fn verify_until(&self, deadline: Option<Instant>) -> Result<UncheckedExternalIds, ExternalIdsError> {
        let mut left = Vec::new();
        for run in &self.runs {
            if !run.verify(&mut pace::until(deadline))? {
                left.push(Arc::downgrade(run));
            }
        }
        Ok(UncheckedExternalIds(left))
    }
}

/// Runs that were opened and not read yet. One that is merged away meanwhile was read by the merge.
#[derive(Debug)]
pub struct UncheckedExternalIds(Vec<Weak<Run>>);

impl UncheckedExternalIds {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads them and checks them, unless `pace` breaks it off.
    ///
    /// # Errors
    /// [`ExternalIdsError::Damaged`], [`ExternalIdsError::Io`].
    pub fn check(&self, pace: &mut Pace<'_>) -> Result<(), ExternalIdsError> {
        for run in self.0.iter().filter_map(Weak::upgrade) {
            if !run.verify(pace)? {
                break;
            }
        }
        Ok(())
    }
}

/// The size class of a run.
fn class(entries: u64) -> u32 {
    (entries / SMALLEST_CLASS).checked_ilog(CLASS_FACTOR).map_or(0, |class| class + 1)
}
