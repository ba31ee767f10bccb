//! Removes the recorded data of erased identities: from states, log, archive with its bases, and
//! smaller files.
//!
//! An erasure is durable before any data are removed, and replays skip the rest. So each step can
//! be repeated, and an interrupted attempt is repeated. When all data are gone, a record in the
//! control log ends the erasure.

use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::base::BaseEntry;
use headcount_common::partition_of;
use headcount_control::Erasure;
use headcount_domain::fault::Fault;
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::aside;
use headcount_storage::store::Store;

use super::bases::replace_base;
use super::error::SealingError;
use super::file_rewriting::FileRewriting;
use super::sealing::seal_all;
use super::sources::Sources;
use crate::fault;
use crate::refolding::Folding;
use crate::shard::clear_unused;
use crate::unfinished_erasures::erased_keys_of;

/// The pause before the next attempt, if it has to wait for something.
pub(super) const WAIT: Duration = Duration::from_millis(50);
/// The pause after a failure. It doubles with each further failure.
pub(super) const FIRST_PAUSE: Duration = Duration::from_secs(1);
pub(super) const MAX_PAUSE: Duration = Duration::from_secs(60);

/// The removal of erased identities.
#[derive(Debug, Default)]
pub(super) struct ErasureSteps {
    /// The projects whose bases were replaced for the current erasure.
    rebased: BTreeSet<ProjectId>,
    /// The projects whose files were rewritten for the current erasure.
    rewritten: BTreeSet<ProjectId>,
    /// The rewriting of files in progress.
    rewriting: Option<FileRewriting>,
    /// The current erasure, by organization and number.
    current: Option<(u64, u64)>,
    not_before: Option<Stopwatch>,
    failures: u32,
    /// The fold in progress.
    folding: Option<Folding>,
}

impl ErasureSteps {
    /// Removes the data of the first erasure that can be removed now. Returns whether there is more
    /// to do.
    pub(super) fn step(&mut self, sources: &Sources) -> bool {
        let Some(erasure) = sources.removal.erasures.unfinished().into_iter().next() else { return false };
        if self.not_before.is_some_and(|at| Stopwatch::now() < at) {
            return false;
        }
        let current = Some((erasure.organization.0, erasure.number));
        if self.current != current {
            *self = Self { current, ..Self::default() };
        }
        let removed = self.remove(sources, &erasure);
        match removed {
            Ok(true) => {
                *self = Self::default();
                return true;
            }
            Ok(false) => {
                self.failures = 0;
                self.not_before = Some(Stopwatch::now() + WAIT);
            }
            Err(_) if sources.is_stopping() => {}
            Err(fault) => {
                if self.failures.is_power_of_two() || self.failures == 0 {
                    tracing::warn!(%fault, "not everything of an erased identity could be removed yet; its events count nowhere");
                }
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.failures.min(16))).min(MAX_PAUSE);
                self.failures += 1;
                self.not_before = Some(Stopwatch::now() + pause);
            }
        }
        false
    }

    /// Removes the data of an erased identity that can be removed now. Returns whether none are
    /// left.
    fn remove(&mut self, sources: &Sources, erasure: &Erasure) -> Result<bool, Fault> {
        let began = Stopwatch::now();
        let projects = erasure.projects.iter().copied().filter(|project| !sources.deleted.contains(*project));
        let projects: Vec<ProjectId> = projects.filter(|project| sources.registry.policy(*project).is_some()).collect();
        if !self.refold(sources, &projects)? || !remove_from_log(sources, erasure)? {
            return Ok(false);
        }
        for project in &projects {
            if !self.rebased.contains(project) {
                if !rewrite_base(sources, *project)? {
                    return Ok(false);
                }
                self.rebased.insert(*project);
            }
            if !self.rewritten.contains(project) {
                let under_way = self.rewriting.take().filter(|rewriting| rewriting.project() == *project);
                let rewriting = self.rewriting.insert(under_way.unwrap_or_else(|| FileRewriting::new(*project)));
                if !rewriting.step(sources, began)? {
                    return Ok(false);
                }
                self.rewriting = None;
                self.rewritten.insert(*project);
            }
        }
        for project in &projects {
            if !merge_tables(sources, *project)? {
                return Ok(false);
            }
            (sources.removal.forget_answers)(*project);
        }
        remove_small_parts(sources, &projects)?;
        finish(sources, erasure)
    }

    /// Folds the states of projects again, one after the other. Returns whether all are done.
    fn refold(&mut self, sources: &Sources, projects: &[ProjectId]) -> Result<bool, Fault> {
        if let Some(folding) = &mut self.folding {
            let Some(end) = folding.end() else { return Ok(false) };
            self.folding = None;
            end?;
        }
        let Some(project) = projects.iter().find(|project| sources.removal.erasures.is_stale(**project)) else {
            sources.done("states without an erased identity");
            return Ok(true);
        };
        let folding = Folding::start(&sources.fold_sources(), *project);
        self.folding = Some(folding.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?);
        Ok(false)
    }
}

/// Seals the log without the identity, until the log has no event of it. Only events in durable
/// checkpoints are sealed.
fn remove_from_log(sources: &Sources, erasure: &Erasure) -> Result<bool, Fault> {
    let ends: BTreeSet<(u16, Position)> =
        erasure.projects.iter().map(|project| (partition_of(*project), erasure.until_in(*project))).collect();
    let is_out = || ends.iter().all(|(partition, until)| sources.logged.first_position(*partition) > *until);
    if is_out() {
        return Ok(true);
    }
    (sources.removal.end_segment)(ends.iter().map(|(_, until)| *until).max().unwrap_or(0));
    match seal_all(sources) {
        Ok(_) => {
            sources.done("log without an erased identity");
            Ok(is_out())
        }
        // Checkpoints are being written.
        Err(SealingError::NoAnswer) => Ok(false),
        Err(_) if sources.is_stopping() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Rewrites the base of a project if it may have an erased identity, from the saved state without
/// it. Returns whether no base has one.
pub(super) fn rewrite_base(sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
    let Some(keys) = sources.removal.erasures.keys(project) else { return Ok(true) };
    let mut archive = match sources.existing_archive(&sources.sealed.catalog(), project) {
        None => return Ok(true),
        Some(opened) => opened.map_err(fault::of_archive)?,
    };
    let Some(position) = archive.manifest().base().map(BaseEntry::position) else { return Ok(true) };
    if keys.up_to(position).is_empty() {
        return Ok(true);
    }
    if !replace_base(sources, project, &mut archive, position, sources.settings.min_free_bytes)? {
        return Ok(false);
    }
    sources.done("base without an erased identity listed");
    Ok(true)
}

/// Merges the tables of a project's partition, which removes former values of its records. Also
/// removes the partition's data from an unused part of the store.
pub(super) fn merge_tables(sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
    let Some(stored_as) = sources.shards.stored_as(partition_of(project)) else { return Ok(false) };
    clear_unused(&*sources.removal.store, stored_as, partition_of(project)).map_err(fault::of_store)?;
    if !sources.removal.store.merge_all(stored_as, &sources.stop).map_err(fault::of_store)? {
        return Ok(false);
    }
    match sources.removal.writer.remove(stored_as, Vec::new()) {
        Some(removed) => removed.map_err(fault::of_store)?,
        None => return Ok(false),
    }
    sources.done("tables without an erased identity written");
    Ok(true)
}

pub(super) fn remove_small_parts(sources: &Sources, projects: &[ProjectId]) -> Result<(), Fault> {
    let failed = |what: &'static str| move |error: io::Error| Fault::io(format!("{what} could not be removed: {error}"));
    // Includes ended erasures: a former owner knew nothing of this machine's dead letters.
    for (project, keys) in erased_keys_of(&sources.registry.erasures(), |project| projects.contains(&project)) {
        let is_erased = |position, event: &mut _| keys.erase(position, event, &sources.hasher);
        sources.dead.erase(project, &is_erased).map_err(failed("events that were set aside"))?;
    }
    for derived in &sources.settings.derived_dirs {
        aside::remove_old(derived, 0).map_err(failed("what was moved aside earlier"))?;
    }
    Ok(())
}

/// Records that no data are left, unless a backup in progress may have some: the control data of
/// the backup must have the erasure.
fn finish(sources: &Sources, erasure: &Erasure) -> Result<bool, Fault> {
    let Ok(_no_backup) = sources.removal.backups.try_acquire() else { return Ok(false) };
    sources.registry.finish_erasure(erasure).map_err(|error| Fault::io(error.to_string()))?;
    sources.removal.erasures.finish(erasure);
    tracing::info!("nothing of an erased identity is left");
    sources.done("erasure finished");
    Ok(true)
}
