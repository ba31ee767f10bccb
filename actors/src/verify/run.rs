//! One verification, from the checks of files to the comparison of the last partition.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_common::{SharedArchive, partition_of};
use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::ids::{KeyHasher, ProjectId};
use headcount_storage::external_ids::ExternalIdsView;
use headcount_storage::keyspace::PartitionId;
use headcount_storage::log::LogReader;
use headcount_storage::store::{DiskStore, PartitionSnapshot};

use super::comparison::{Comparison, ComparisonError};
use super::error::VerifyError;
use super::file_checks::{check_archive, check_log, check_store, check_tables};
use super::index_comparison::{ComparedProject, IndexComparison};
use super::report::{ReportMark, VerifyReport};
use crate::checkpoint_writer::{saved_position, saved_projects};
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::free_space::free_bytes;
use crate::history::{History, PartitionArchives, SealedEvents};
use crate::recompute::{Bound, BoundedHistory, Recomputation, Replay, Scratch, StopCheck};

/// Partitions are recomputed together, in one pass over the log, while their stored states have at
/// most this size.
const GROUP_BYTES: u64 = 64 << 20;

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

    /// Returns the saved external ids of a partition; `None` if it has none, or is being rebuilt.
    fn external_ids(&self, partition: u16) -> Result<Option<ExternalIdsView>, Fault>;

    /// Whether a project exists. Some data of a project in deletion may be left.
    fn exists(&self, project: ProjectId) -> bool;

    /// Records damage of store or index.
    fn note_damage(&self, fault: Fault);
}

/// A check whether a partition is still here, as it was when the verification began.
pub(crate) type HeldCheck = Arc<dyn Fn(u16) -> bool + Send + Sync>;

/// The place of the events to verify.
pub(crate) enum VerifiedEvents {
    /// The events of all partitions together, on this machine's disk.
    Together { log: LogReader, sealed: Arc<SealedEvents> },
    /// The events of each partition separately, at the shared place of a cluster.
    Apart {
        archives: Arc<PartitionArchives>,
        /// The shared archives; `None` if nothing is sealed.
        shared: Option<Arc<dyn SharedArchive>>,
        is_held: HeldCheck,
    },
}

/// The sources of a verification.
pub(crate) struct VerifySources<'s> {
    pub(crate) data_dir: PathBuf,
    pub(crate) history: Arc<dyn History>,
    pub(crate) events: VerifiedEvents,
    /// The partitions to verify.
    pub(crate) partitions: Vec<u16>,
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
    let mut run = VerifyRun { sources, report: VerifyReport::default(), unreadable: BTreeSet::new(), since: None };
    match &sources.events {
        VerifiedEvents::Together { log, sealed } => {
            check_archive(sealed, "archive", &mut run.report, &|| run.sources.is_stopped())?;
            check_log(log, &mut run.report)?;
            run.check_own_files()?;
            run.check_all_index_files()?;
            if !quick {
                run.recompute_all(sealed)?;
            }
        }
        VerifiedEvents::Apart { archives, shared, is_held } => {
            run.check_own_files()?;
            run.verify_apart(archives, shared.as_deref(), is_held, quick)?;
        }
    }
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

    fn bytes(&self) -> u64 {
        self.stored.as_ref().map_or(0, |stored| stored.memory_bytes() as u64 + stored.file_bytes())
    }
}

impl VerifySources<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns a check whether the work for some partitions should end early.
    pub(super) fn stop_check(&self, numbers: &[u16]) -> StopCheck {
        let (stop, numbers) = (Arc::clone(&self.stop), numbers.to_vec());
        match &self.events {
            VerifiedEvents::Together { .. } => Arc::new(move || stop.load(Ordering::Relaxed)),
            VerifiedEvents::Apart { is_held, .. } => {
                let is_held = Arc::clone(is_held);
                Arc::new(move || stop.load(Ordering::Relaxed) || !numbers.iter().all(|number| is_held(*number)))
            }
        }
    }
}

pub(super) struct VerifyRun<'r, 's> {
    pub(super) sources: &'r VerifySources<'s>,
    pub(super) report: VerifyReport,
    /// The partitions that can't be compared, because they have damaged files or are being rebuilt.
    pub(super) unreadable: BTreeSet<u16>,
    /// The size of the report when the current partition began, if they are verified one after the
    /// other.
    pub(super) since: Option<ReportMark>,
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

    /// Checks the files with the external ids of all partitions.
    fn check_all_index_files(&mut self) -> Result<(), VerifyError> {
        let sources = self.sources;
        sources.partitions.iter().try_for_each(|number| self.check_index_files(*number))
    }

    /// Checks the files with the external ids of a partition.
    pub(super) fn check_index_files(&mut self, number: u16) -> Result<(), VerifyError> {
        self.check_stop()?;
        let sources = self.sources;
        let (dir, is_stopped) = (format!("fingerprints/{number}"), sources.stop_check(&[number]));
        match sources.places.external_ids(number) {
            Ok(Some(ids)) => {
                if !check_tables(&ids.unchecked_tables(), &dir, &mut self.report, &*is_stopped)? {
                    sources.places.note_damage(Fault::damaged_index("a verification found damage"));
                }
            }
            Ok(None) => {}
            Err(Fault { kind: FaultKind::DamagedIndex, message }) => self.report.is_damaged(dir, message),
            Err(fault) => return Err(fault.into()),
        }
        Ok(())
    }

    fn recompute_all(&mut self, sealed: &SealedEvents) -> Result<(), VerifyError> {
        // The recomputation starts from the current bases. The stored state is not behind them.
        let _bases = self.sources.history.bases();
        self.sources.places.save(&self.sources.partitions)?;
        let scratch = Scratch::for_verification(&self.sources.data_dir)?;
        let known = self.known_partitions(sealed);
        let (mut group, mut bytes) = (Vec::new(), 0);
        for number in self.sources.partitions.clone() {
            self.check_stop()?;
            let Some(held) = self.hold(number)? else { continue };
            if held.is_empty() && !known.contains(&number) {
                continue;
            }
            if bytes + held.bytes() > GROUP_BYTES && !group.is_empty() {
                self.recompute(std::mem::take(&mut group), &scratch)?;
                bytes = 0;
            }
            bytes += held.bytes();
            group.push(held);
        }
        if group.is_empty() { Ok(()) } else { self.recompute(group, &scratch) }
    }

    /// The partitions that have projects.
    pub(super) fn known_partitions(&self, sealed: &SealedEvents) -> BTreeSet<u16> {
        let catalog = sealed.catalog();
        let sealed = catalog.projects().map(|(project, _)| project);
        self.sources.projects.iter().copied().chain(sealed).map(partition_of).collect()
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
                    Err(Fault { kind: FaultKind::DamagedIndex, .. }) => None,
                    Err(fault) => return Err(fault.into()),
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
    pub(super) fn recompute(&mut self, group: Vec<Held>, scratch: &Scratch) -> Result<(), VerifyError> {
        let sources = self.sources;
        if free_bytes(&sources.data_dir) < sources.min_free_bytes.saturating_add(group.iter().map(Held::bytes).sum()) {
            return Err(VerifyError::DiskFull);
        }
        let numbers: Vec<u16> = group.iter().map(|held| held.number).collect();
        let bounds = group.iter().map(|held| (held.number, held.bound.clone())).collect();
        let history = Arc::new(BoundedHistory::new(Arc::clone(&sources.history), bounds, sources.stop_check(&numbers)));
        let deleted = &sources.deleted;
        let replay =
            Replay { history, hasher: &sources.hasher, dead: &sources.dead, deleted, record_bytes: sources.record_bytes };
        let dir = scratch.dir().join(numbers.first().map_or_else(String::new, u16::to_string));
        let recomputation = Recomputation::of(&numbers, replay, &dir);
        self.check_stop()?;
        let mut recomputation = match recomputation {
            Ok(recomputation) => recomputation,
            Err(fault) => return self.unreadable_history(&numbers, fault),
        };
        let faults: BTreeMap<u16, Fault> =
            numbers.iter().filter_map(|number| Some((*number, recomputation.fault_of(*number)?))).collect();
        let events: BTreeMap<ProjectId, u64> = numbers.iter().flat_map(|number| recomputation.events(*number)).collect();
        recomputation.close_shard();
        for held in group {
            self.check_stop()?;
            match faults.get(&held.number) {
                Some(fault) => self.unreadable_history(&[held.number], fault.clone())?,
                None => self.compare(&held, &recomputation, &events)?,
            }
        }
        Ok(())
    }

    /// Reports damage of the log or the archive, which a check of the files may have found before.
    pub(super) fn unreadable_history(&mut self, numbers: &[u16], fault: Fault) -> Result<(), VerifyError> {
        let folder = match fault.kind {
            FaultKind::DamagedLog => "log/",
            FaultKind::DamagedArchive => "archive/",
            FaultKind::Io | FaultKind::DamagedStore | FaultKind::DamagedIndex | FaultKind::Defect => return Err(fault.into()),
        };
        self.unreadable.extend(numbers);
        match (self.since, numbers) {
            // The check of its files names the damaged file.
            (Some(since), _) if self.report.has_damaged_since(since) => {}
            (Some(_), [number]) => self.report.is_damaged(format!("{folder}partition={number:02}"), fault.message),
            _ if self.report.damaged.iter().any(|known| known.file.starts_with(folder)) => {}
            _ => self.report.is_damaged(folder, fault.message),
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
