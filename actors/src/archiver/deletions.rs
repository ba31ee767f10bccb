//! Removes the recorded data of deleted projects: archive, store, index of external ids, log, and
//! smaller files.
//!
//! A project's deletion is durable before any of its data is removed, and all readers skip the
//! rest. So the parts can be removed in any order, and an interrupted attempt is repeated. When all
//! parts are gone, a record in the control log ends the deletion.
//!
//! The owner of the project's partition does this (ADR 13). In a cluster, it also removes the
//! archive from the shared place, and other machines remove the data on their own disks
//! (`engine/partitions/remains.rs`).

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::Archive;
use headcount_common::partition_of;
use headcount_domain::{Fault, Position, ProjectId};
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::Store;
use headcount_storage::{aside, files};

use super::log_removal::{LogRemoval, is_out_of_log};
use super::merges::Merges;
use super::sources::Sources;
use crate::admission_gate::Holder;
use crate::dead_letters::DeadLetters;
use crate::fault;
use crate::shard::clear_unused;

/// How long to wait for a checkpoint without the project before requesting another.
const CHECKPOINT_WAIT: Duration = Duration::from_secs(5);
/// The pause before the next attempt, if it has to wait for something.
const WAIT: Duration = Duration::from_millis(200);
/// The pause after a failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// The minimum time between two sealings of everything for deletions, since clients decide how many
/// projects they delete.
const SEAL_INTERVAL: Duration = Duration::from_secs(10);

/// The places with data of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Archive,
    Store,
    ExternalIds,
    Log,
    SmallFiles,
}

/// The archive comes first: on a full disk, the other parts need its space.
const PARTS: [Part; 5] = [Part::Archive, Part::Store, Part::ExternalIds, Part::Log, Part::SmallFiles];

/// The state of a deletion since the start.
#[derive(Debug, Default)]
struct Deletion {
    /// The position after which no event of the project can follow.
    until: Option<Position>,
    removed: BTreeSet<Part>,
    /// The time of the last request for checkpoints.
    asked: Option<Stopwatch>,
    /// Whether the shared state of the partition has no data of the project.
    is_withdrawn: bool,
}

/// The removal of deleted projects.
#[derive(Debug, Default)]
pub(super) struct Deletions {
    known: BTreeMap<ProjectId, Deletion>,
    /// When the log was last emptied for a deletion.
    sealed_at: Option<Stopwatch>,
    log: LogRemoval,
    not_before: Option<Stopwatch>,
    failures: u32,
}

impl Deletions {
    /// Removes the data that can be removed now.
    pub(super) fn step(&mut self, sources: &Sources, merges: &mut Merges) {
        if sources.deleted.count() == 0 || self.not_before.is_some_and(|at| Stopwatch::now() < at) {
            return;
        }
        let (began, mut failed) = (Stopwatch::now(), None);
        for project in sources.deleted.all().into_iter().filter(|project| sources.has(*project)) {
            if sources.is_stopping() {
                return;
            }
            merges.forget(project);
            match self.remove(sources, project) {
                Ok(true) => drop(self.known.remove(&project)),
                Ok(false) => {}
                Err(fault) => failed = Some((project, fault)),
            }
        }
        let pause = match failed {
            None => {
                self.failures = 0;
                // At most half of the time is spent on this.
                WAIT.max(began.elapsed())
            }
            Some((project, fault)) => {
                if self.failures.is_power_of_two() || self.failures == 0 {
                    tracing::warn!(%project, %fault, "not everything of a deleted project could be removed yet; it counts nowhere");
                }
                self.failures += 1;
                FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16) - 1)).min(MAX_PAUSE)
            }
        };
        self.not_before = Some(Stopwatch::now() + pause);
    }

    /// Removes the data of a project that can be removed now. Returns whether none are left.
    fn remove(&mut self, sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
        let mut deletion = self.known.remove(&project).unwrap_or_default();
        let removed = self.remove_parts(sources, project, &mut deletion);
        self.known.insert(project, deletion);
        if removed? { finish(sources, project) } else { Ok(false) }
    }

    fn remove_parts(&mut self, sources: &Sources, project: ProjectId, deletion: &mut Deletion) -> Result<bool, Fault> {
        let until = match deletion.until {
            Some(until) => until,
            // Events admitted before the deletion are still in flight.
            None if sources.ingest.admission.gate.has(Holder::Project(project)) => return Ok(false),
            None => *deletion.until.insert(sources.logged.last_position(partition_of(project))),
        };
        let must_seal = !is_out_of_log(sources, project, until);
        let sealed_lately = self.sealed_at.is_some_and(|at| at.elapsed() < SEAL_INTERVAL);
        let mut outcome = Ok(());
        for part in PARTS {
            if deletion.removed.contains(&part) || (part == Part::Log && must_seal && sealed_lately) {
                continue;
            }
            match self.remove_part(sources, project, (part, until), &mut deletion.asked) {
                Ok(true) => {
                    if part == Part::Log && must_seal {
                        self.sealed_at = Some(Stopwatch::now());
                    }
                    deletion.removed.insert(part);
                    sources.done("part of a deleted project removed");
                }
                Ok(false) => {}
                // The next part may still be removed.
                Err(fault) => outcome = Err(fault),
            }
        }
        outcome?;
        if PARTS.iter().all(|part| *part == Part::Log || deletion.removed.contains(part)) {
            withdraw_state(sources, project, deletion)?;
            // Readers skip its events until they are out of the log, so that none gets here again.
            let failed = |error| Fault::io(format!("that nothing of a deleted project is here could not be noted: {error}"));
            sources.deleted.removed_here(&BTreeSet::from([project])).map_err(failed)?;
        }
        Ok(deletion.removed.len() == PARTS.len())
    }

    fn remove_part(
        &mut self,
        sources: &Sources,
        project: ProjectId,
        (part, until): (Part, Position),
        asked: &mut Option<Stopwatch>,
    ) -> Result<bool, Fault> {
        match part {
            Part::Archive => remove_archive(sources, project),
            Part::Store => remove_from_store(sources, project, asked),
            Part::ExternalIds => remove_external_ids(sources, project, asked),
            Part::Log => self.log.remove(sources, project, until),
            Part::SmallFiles => {
                let (data_dir, derived_dirs) = (&sources.settings.data_dir, &sources.settings.derived_dirs);
                remove_small_files(&sources.scans.dead, data_dir, derived_dirs, project).map(|()| true)
            }
        }
    }
}

/// Removes the project's folder, then its line in the catalog. This order matters, since replacing
/// the catalog takes space.
fn remove_archive(sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
    Archive::remove(&sources.sealed.root, project).map_err(fault::of_archive)?;
    sources.done("archive of a deleted project removed");
    let catalog = sources.sealed.catalog();
    let without = catalog.without(project);
    if without != *catalog {
        without.write(&sources.sealed.root).map_err(fault::of_archive)?;
        sources.sealed.publish(without);
    }
    sources.sealed.set_damaged(project, BTreeSet::new());
    let (partition, root) = (partition_of(project), &sources.sealed.root);
    let published = sources.files.publish(partition, root, &|| sources.is_stopping());
    match published.and_then(|()| sources.files.remove(partition, project)) {
        Ok(()) => Ok(true),
        Err(_) if sources.is_stopping() => Ok(false),
        Err(error) => Err(Fault::io(format!("its files could not be removed where all nodes reach them: {error}"))),
    }
}

/// Withdraws the state of the project's partition if it was published with data of the project.
/// Does nothing on a single machine.
fn withdraw_state(sources: &Sources, project: ProjectId, deletion: &mut Deletion) -> Result<(), Fault> {
    if !deletion.is_withdrawn {
        let failed = |error| Fault::io(format!("the state that other nodes reach could not be withdrawn: {error}"));
        sources.files.withdraw_state(partition_of(project)).map_err(failed)?;
        deletion.is_withdrawn = true;
    }
    Ok(())
}

/// Makes the project's shard forget it. Returns `None` until there is a checkpoint without it.
fn forgotten(sources: &Sources, project: ProjectId, asked: &mut Option<Stopwatch>) -> Option<PartitionId> {
    let stored_as = sources.shards.forget(project);
    if stored_as.is_none() && asked.is_none_or(|at| at.elapsed() >= CHECKPOINT_WAIT) {
        *asked = Some(Stopwatch::now());
        sources.shards.want_checkpoints();
    }
    stored_as
}

fn remove_from_store(sources: &Sources, project: ProjectId, asked: &mut Option<Stopwatch>) -> Result<bool, Fault> {
    let Some(stored_as) = forgotten(sources, project, asked) else { return Ok(false) };
    clear_unused(&*sources.store, stored_as, partition_of(project)).map_err(fault::of_store)?;
    let prefixes = Key::all_of(stored_as, project.0).to_vec();
    if !sources.store.purge(stored_as, &prefixes, &sources.stop).map_err(fault::of_store)? {
        return Ok(false);
    }
    sources.done("tables without a deleted project written");
    match sources.writer.remove(stored_as, prefixes) {
        Some(removed) => removed.map(|()| true).map_err(fault::of_store),
        None => Ok(false),
    }
}

fn remove_external_ids(sources: &Sources, project: ProjectId, asked: &mut Option<Stopwatch>) -> Result<bool, Fault> {
    // The checkpoint has the number of the remaining ids, and made the other ones durable.
    if forgotten(sources, project, asked).is_none() {
        return Ok(false);
    }
    let Some(purge) = sources.shards.purge_ids(project) else { return Ok(false) };
    let written = match purge.write(&sources.stop) {
        Err(_) if sources.is_stopping() => return Ok(false),
        written => written.map_err(fault::of_index)?,
    };
    sources.shards.adopt_ids(project, written);
    Ok(true)
}

/// Removes the project's dead letters and import journals, and data moved aside from the
/// directories of derived data.
pub(crate) fn remove_small_files(
    dead: &DeadLetters,
    data_dir: &Path,
    derived_dirs: &[PathBuf],
    project: ProjectId,
) -> Result<(), Fault> {
    let failed = |what: &'static str| move |error: io::Error| Fault::io(format!("{what} could not be removed: {error}"));
    dead.remove(project).map_err(failed("its events that were set aside"))?;
    remove_journals(&data_dir.join("imports"), project).map_err(failed("its journals of imports"))?;
    derived_dirs
        .iter()
        .try_for_each(|derived| aside::remove_old(derived, 0).map(drop))
        .map_err(failed("what was moved aside earlier"))
}

/// Removes the journals of imports into the project.
fn remove_journals(dir: &Path, project: ProjectId) -> io::Result<()> {
    let journals = match files::list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        journals => journals?,
    };
    let name = project.to_string();
    for path in journals {
        let text = files::read_if_there(&path)?.unwrap_or_default();
        let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line: serde_json::Value = serde_json::from_slice(first).unwrap_or_default();
        let how = line["import"]["how"].as_str().unwrap_or_default();
        if how.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').any(|word| word == name) {
            files::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Records that no data are left, unless a backup in progress may have some: the control data of
/// the backup must have the deletion.
fn finish(sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
    let Ok(_no_backup) = sources.backups.try_acquire() else { return Ok(false) };
    sources.registry.finish_deletion(project).map_err(|error| Fault::io(error.to_string()))?;
    sources.deleted.remove(project);
    sources.erasures.forget(project);
    tracing::info!(%project, "nothing of a deleted project is left");
    sources.done("deletion finished");
    Ok(true)
}
