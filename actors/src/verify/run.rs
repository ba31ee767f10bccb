//! One verification, from the checks of files to the comparison of the last partition.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::{SharedArchive, partition_of};
use headcount_domain::{Fault, FaultKind, KeyHasher, ProjectId};
use headcount_storage::external_ids::ExternalIdsView;
use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::{DiskStore, PartitionSnapshot};

use super::comparison::{Comparison, ComparisonError};
use super::error::VerifyError;
use super::file_checks::{check_store, check_tables};
use super::index_comparison::{ComparedProject, IndexComparison};
use super::report::{ReportMark, VerifyReport};
use crate::checkpoint_writer::{saved_position, saved_projects};
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::free_space::free_bytes;
use crate::history::{History, LoggedEvents, PartitionArchives};
use crate::recompute::{Bound, BoundedHistory, Recomputation, Replay, Scratch, StopCheck};

/// The place of the state of an engine or of a data directory. Calls block.
pub(crate) trait StoredPlaces: Sync {
    /// Saves all events of some partitions recorded before the call, if the partitions are here and
    /// not being rebuilt.
    fn save(&self, partitions: &[u16]) -> Result<(), VerifyError>;

    /// Returns the part of the store that holds a partition; `None` if it is being rebuilt.
    fn stored_as(&self, partition: u16) -> Result<Option<u16>, VerifyError>;

    /// Returns a number that changes when an erasure of a project of a partition begins: from then
    /// on history is read without an identity that the state may have.
    fn begun_erasures(&self, partition: u16) -> u64;

    /// Returns the saved external ids of a partition; `None` if it has none.
    ///
    /// # Errors
    /// Returns [`VerifyError::Rebuilding`] if they can't be read now; [`VerifyError::Failed`].
    fn external_ids(&self, partition: u16) -> Result<Option<ExternalIdsView>, VerifyError>;

    /// Whether a project exists. Some data of a project in deletion may be left.
    fn exists(&self, project: ProjectId) -> bool;

    /// Records damage of store or index.
    fn note_damage(&self, fault: Fault);
}

/// Partitions that have an archive in common.
pub(crate) struct VerifiedRange {
    pub(crate) partitions: Range<u16>,
    /// Whether all of them are still here, as they were when the verification began.
    pub(crate) is_held: StopCheck,
}

impl VerifiedRange {
    /// The name of a single partition.
    pub(super) fn name(&self) -> Option<String> {
        (self.partitions.len() == 1).then(|| format!("partition={:02}", self.partitions.start))
    }
}

/// The sources of a verification.
pub(crate) struct VerifySources<'s> {
    pub(crate) data_dir: PathBuf,
    pub(crate) history: Arc<dyn History>,
    pub(crate) logged: LoggedEvents,
    pub(crate) archives: Arc<PartitionArchives>,
    /// The shared place of archives, if there is one.
    pub(crate) shared: Option<Arc<dyn SharedArchive>>,
    /// The partitions to verify.
    pub(crate) ranges: Vec<VerifiedRange>,
    pub(crate) dead: Arc<DeadLetters>,
    pub(crate) deleted: Arc<DeletedProjects>,
    pub(crate) hasher: KeyHasher,
    /// The store; `None` if there is none. History is then recomputed without a comparison.
    pub(crate) store: Option<Arc<DiskStore>>,
    pub(crate) places: &'s dyn StoredPlaces,
    /// All projects.
    pub(crate) projects: Vec<ProjectId>,
    /// The budget for recomputed records.
    pub(crate) record_bytes: usize,
    pub(crate) min_free_bytes: u64,
    /// Ends the verification when it is set.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Verifies the files, and the state unless `quick`. Blocks.
///
/// # Errors
/// Returns a [`VerifyError`]: the data could not be checked.
pub(crate) fn verify(sources: &VerifySources<'_>, quick: bool) -> Result<VerifyReport, VerifyError> {
    let report = VerifyReport::default();
    let mut run = VerifyRun { sources, since: report.mark(), report, unreadable: BTreeSet::new() };
    let scratch = match quick {
        true => None,
        false => {
            sources.places.save(&sources.ranges.iter().flat_map(|range| range.partitions.clone()).collect::<Vec<_>>())?;
            Some(Scratch::for_verification(&sources.data_dir)?)
        }
    };
    run.check_own_files()?;
    sources.ranges.iter().try_for_each(|range| run.verify_range(range, scratch.as_ref()))?;
    run.check_stop()?;
    match run.unreadable.first() {
        // Damage is the reason why it could not be compared.
        Some(number) if run.report.damaged.is_empty() => Err(VerifyError::Rebuilding(*number)),
        _ => Ok(run.report),
    }
}

/// A partition whose stored state is held.
pub(super) struct Held {
    number: u16,
    /// The state; `None` if there is none.
    stored: Option<PartitionSnapshot>,
    /// The external ids; `None` if there are none, or they can't be read.
    external_ids: Option<ExternalIdsView>,
    bound: Bound,
    /// The number of [`StoredPlaces::begun_erasures`] at that time.
    begun_erasures: u64,
}

impl Held {
    /// Whether there is no stored state.
    pub(super) fn is_empty(&self) -> bool {
        self.stored.as_ref().is_none_or(PartitionSnapshot::is_empty)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.memory_bytes() as u64 + stored.file_bytes())
    }
}

impl VerifySources<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns a check whether the work for a range should end early.
    pub(super) fn stop_check(&self, range: &VerifiedRange) -> StopCheck {
        let (stop, is_held) = (Arc::clone(&self.stop), Arc::clone(&range.is_held));
        Arc::new(move || stop.load(Ordering::Relaxed) || !is_held())
    }
}

pub(super) struct VerifyRun<'r, 's> {
    pub(super) sources: &'r VerifySources<'s>,
    pub(super) report: VerifyReport,
    /// The partitions that can't be compared, because they have damaged files or are being rebuilt.
    pub(super) unreadable: BTreeSet<u16>,
    /// The size of the report when the current range began.
    pub(super) since: ReportMark,
}

impl VerifyRun<'_, '_> {
    pub(super) fn check_stop(&self) -> Result<(), VerifyError> {
        if self.sources.is_stopped() { Err(VerifyError::Stopped) } else { Ok(()) }
    }

    /// Checks the files of the store.
    fn check_own_files(&mut self) -> Result<(), VerifyError> {
        let sources = self.sources;
        let is_stopped = || sources.is_stopped();
        self.check_stop()?;
        if let Some(store) = &sources.store
            && !check_store(store, &mut self.report, &is_stopped)?
        {
            sources.places.note_damage(Fault::damaged_store("a verification found damage"));
        }
        Ok(())
    }

    /// Checks the files with the external ids of a partition.
    pub(super) fn check_index_files(&mut self, number: u16, range: &VerifiedRange) -> Result<(), VerifyError> {
        self.check_stop()?;
        let sources = self.sources;
        let (dir, is_stopped) = (format!("fingerprints/{number}"), sources.stop_check(range));
        match sources.places.external_ids(number) {
            Ok(Some(ids)) => {
                if !check_tables(&ids.unchecked_tables(), &dir, &mut self.report, &*is_stopped)? {
                    sources.places.note_damage(Fault::damaged_index("a verification found damage"));
                }
            }
            Ok(None) => {}
            Err(VerifyError::Failed(Fault { kind: FaultKind::DamagedIndex, message })) => self.report.is_damaged(dir, message),
            Err(VerifyError::Rebuilding(number)) => drop(self.unreadable.insert(number)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Holds the stored state of a partition. Returns `None` if it can't be read.
    pub(super) fn hold(&mut self, number: u16) -> Result<Option<Held>, VerifyError> {
        let Some(store) = &self.sources.store else {
            let bound = Bound { all: self.sources.history.last_position(number), projects: BTreeMap::new() };
            return Ok(Some(Held { number, stored: None, external_ids: None, bound, begun_erasures: 0 }));
        };
        let begun_erasures = self.sources.places.begun_erasures(number);
        let Some(stored_as) = self.sources.places.stored_as(number)? else {
            self.unreadable.insert(number);
            return Ok(None);
        };
        let snapshot = store.snapshot(PartitionId(stored_as)).map_err(crate::fault::of_store);
        let held = snapshot.and_then(|stored| Ok((bound_of(&stored)?, stored)));
        match held {
            Ok((bound, stored)) => {
                // Read after the checkpoint that needs them: the index may be ahead of it, but not
                // behind.
                let external_ids = match self.sources.places.external_ids(number) {
                    Ok(external_ids) => external_ids,
                    // The check of the files has reported it.
                    Err(VerifyError::Failed(Fault { kind: FaultKind::DamagedIndex, .. })) => None,
                    Err(VerifyError::Rebuilding(_)) => {
                        self.unreadable.insert(number);
                        return Ok(None);
                    }
                    Err(error) => return Err(error),
                };
                Ok(Some(Held { number, stored: Some(stored), external_ids, bound, begun_erasures }))
            }
            Err(fault) => self.unreadable_store(number, fault).map(|()| None),
        }
    }

    /// Reports damage of the store.
    fn unreadable_store(&mut self, number: u16, fault: Fault) -> Result<(), VerifyError> {
        if fault.kind != FaultKind::DamagedStore {
            return Err(fault.into());
        }
        self.sources.places.note_damage(fault.clone());
        self.unreadable.insert(number);
        if !self.report.damaged.iter().any(|known| known.file.starts_with("store/")) {
            self.report.is_damaged("store/", fault.message);
        }
        Ok(())
    }

    /// Recomputes the states of some partitions together, and compares them.
    pub(super) fn recompute(&mut self, group: Vec<Held>, range: &VerifiedRange, scratch: &Scratch) -> Result<(), VerifyError> {
        let sources = self.sources;
        if free_bytes(&sources.data_dir) < sources.min_free_bytes.saturating_add(group.iter().map(Held::bytes).sum()) {
            return Err(VerifyError::DiskFull);
        }
        let numbers: Vec<u16> = group.iter().map(|held| held.number).collect();
        let bounds = group.iter().map(|held| (held.number, held.bound.clone())).collect();
        let history = Arc::new(BoundedHistory::new(Arc::clone(&sources.history), bounds, sources.stop_check(range)));
        let deleted = &sources.deleted;
        let replay =
            Replay { history, hasher: &sources.hasher, dead: &sources.dead, deleted, record_bytes: sources.record_bytes };
        let dir = scratch.dir.join(numbers.first().map_or_else(String::new, u16::to_string));
        let recomputation = Recomputation::of(&numbers, replay, &dir);
        self.check_stop()?;
        let mut recomputation = match recomputation {
            Ok(recomputation) => recomputation,
            Err(fault) => return self.unreadable_history(numbers, range, fault),
        };
        let faults: BTreeMap<u16, Fault> =
            numbers.iter().filter_map(|number| Some((*number, recomputation.fault_of(*number)?))).collect();
        let events: BTreeMap<ProjectId, u64> = numbers.iter().flat_map(|number| recomputation.events(*number)).collect();
        recomputation.close_shard();
        for held in group {
            self.check_stop()?;
            match faults.get(&held.number) {
                Some(fault) => self.unreadable_history([held.number], range, fault.clone())?,
                None => self.compare(&held, &recomputation, &events)?,
            }
        }
        Ok(())
    }

    /// Reports damage of the log or the archive, unless the checks of files have named the damaged
    /// file.
    pub(super) fn unreadable_history(
        &mut self,
        numbers: impl IntoIterator<Item = u16>,
        range: &VerifiedRange,
        fault: Fault,
    ) -> Result<(), VerifyError> {
        let folder = match fault.kind {
            FaultKind::DamagedLog => "log",
            FaultKind::DamagedArchive => "archive",
            FaultKind::Io | FaultKind::DamagedStore | FaultKind::DamagedIndex | FaultKind::Defect => return Err(fault.into()),
        };
        self.unreadable.extend(numbers);
        if !self.report.has_damaged_since(self.since) {
            let place = range.name().map_or_else(|| format!("{folder}/"), |name| format!("{folder}/{name}"));
            self.report.is_damaged(place, fault.message);
        }
        Ok(())
    }

    fn compare(
        &mut self,
        held: &Held,
        recomputation: &Recomputation,
        events: &BTreeMap<ProjectId, u64>,
    ) -> Result<(), VerifyError> {
        let recomputed = recomputation.snapshot(held.number)?;
        let of_partition = |project: &&ProjectId| partition_of(**project) == held.number;
        for project in self.sources.projects.iter().filter(of_partition) {
            self.report.projects.entry(*project).or_default();
        }
        for (project, count) in events.iter().filter(|(project, _)| of_partition(project)) {
            self.report.projects.entry(*project).or_default().events = *count;
        }
        let mut floors = BTreeMap::new();
        for (project, meta) in saved_projects(held.stored.as_ref().unwrap_or(&recomputed))? {
            if !self.sources.places.exists(project) {
                continue;
            }
            self.report.projects.entry(project).or_default().position = meta.last;
            floors.extend(meta.floor.map(|floor| (project, floor)));
        }
        let Some(stored) = &held.stored else { return Ok(()) };
        if self.sources.places.begun_erasures(held.number) != held.begun_erasures {
            self.unreadable.insert(held.number);
            return Ok(());
        }
        let comparison = Comparison {
            stored,
            recomputed: &recomputed,
            report: &mut self.report,
            exists: &|project| self.sources.places.exists(project),
            floors,
            suspicious: BTreeSet::new(),
        };
        match comparison.run() {
            Ok(()) => self.compare_index(held, recomputation),
            Err(ComparisonError::Stored(fault)) => self.unreadable_store(held.number, fault),
            Err(ComparisonError::Recomputed(fault)) => Err(fault.into()),
        }
    }

    /// Compares the external ids.
    fn compare_index(&mut self, held: &Held, recomputation: &Recomputation) -> Result<(), VerifyError> {
        let (Some(stored), Some(external_ids)) = (&held.stored, &held.external_ids) else { return Ok(()) };
        let existing = saved_projects(stored)?.into_iter().filter(|(project, _)| self.sources.places.exists(*project));
        let comparison = IndexComparison {
            stored: external_ids,
            recomputed: &recomputation.external_ids(held.number)?,
            report: &mut self.report,
            bound: &held.bound,
            dead: &self.sources.dead,
            projects: existing.map(|(project, meta)| ComparedProject::entry(project, meta.floor.is_some())).collect(),
        };
        match comparison.run() {
            Ok(()) => Ok(()),
            Err(ComparisonError::Stored(Fault { kind: FaultKind::DamagedIndex, message })) => {
                let dir = format!("fingerprints/{}", held.number);
                // The check of the files names the damaged file.
                if !self.report.damaged.iter().any(|known| known.file.starts_with(&format!("{dir}/"))) {
                    self.report.is_damaged(dir, message);
                }
                Ok(())
            }
            Err(ComparisonError::Stored(fault) | ComparisonError::Recomputed(fault)) => Err(fault.into()),
        }
    }
}

/// Returns the positions of a stored state.
fn bound_of(stored: &PartitionSnapshot) -> Result<Bound, Fault> {
    let projects = saved_projects(stored)?.into_iter().map(|(project, meta)| (project, meta.last)).collect();
    Ok(Bound { all: saved_position(stored)?, projects })
}
