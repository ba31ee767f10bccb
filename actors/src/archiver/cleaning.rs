//! Removes erased identities from everything that has data of one project but the log: its base and
//! files, the tables of its partition, and smaller files.

use std::collections::BTreeMap;
use std::io;
use std::time::Instant as Stopwatch;

use headcount_archive::BaseEntry;
use headcount_common::{SharedArchiveError, partition_of};
use headcount_domain::{Fault, ProjectId};
use headcount_storage::aside;
use headcount_storage::store::Store;

use super::bases::replace_base;
use super::file_rewriting::FileRewriting;
use super::sources::Sources;
use crate::fault;
use crate::shard::clear_unused;
use crate::unfinished_erasures::erased_keys_of;

/// A project that loses identities.
#[derive(Debug)]
pub(super) struct Cleaning {
    project: ProjectId,
    /// The number of its erasures that had begun.
    pub(super) begins: u64,
    /// The number of each erasure whose data this machine's disk may have.
    pub(super) remains: BTreeMap<ProjectId, u64>,
    is_rebased: bool,
    rewriting: FileRewriting,
    is_rewritten: bool,
}

impl Cleaning {
    pub(super) fn new(project: ProjectId, begins: u64, remains: BTreeMap<ProjectId, u64>) -> Self {
        Self { project, begins, remains, is_rebased: false, rewriting: FileRewriting::new(project), is_rewritten: false }
    }

    /// Rewrites the files of the project without the identities, as many as fit in the turn that
    /// began at `began`, and removes the former ones, also where all nodes reach them. Returns
    /// whether all are done.
    pub(super) fn rewrite(&mut self, sources: &Sources, began: Stopwatch) -> Result<bool, Fault> {
        if !self.is_rebased {
            if !rewrite_base(sources, self.project)? {
                return Ok(false);
            }
            self.is_rebased = true;
        }
        if !self.is_rewritten {
            self.is_rewritten = self.rewriting.step(sources, began)?;
        }
        let (partition, files) = (partition_of(self.project), &sources.files);
        // Publishes after each turn, since uploading all files at once would take long.
        files.publish(partition, &sources.sealed.root, &|| sources.is_stopping()).map_err(unpublished)?;
        if !self.is_rewritten {
            return Ok(false);
        }
        sources.done("archive without an erased identity published");
        files.keep_listed(partition, self.project).map_err(unpublished)?;
        sources.done("files with an erased identity deleted");
        Ok(true)
    }

    /// Like [`Self::rewrite`], for files that were listed since. Others are not read again.
    pub(super) fn rewrite_again(&mut self, sources: &Sources, began: Stopwatch) -> Result<bool, Fault> {
        self.is_rewritten = false;
        self.rewrite(sources, began)
    }

    /// Removes the identities from everything but the files and the log. Returns whether that is
    /// done.
    pub(super) fn remove_rest(&self, sources: &Sources) -> Result<bool, Fault> {
        if !merge_tables(sources, self.project)? {
            return Ok(false);
        }
        sources.scans.forget(self.project);
        remove_small_parts(sources, self.project)?;
        remove_left_overs(sources, self.project)?;
        withdraw_state(sources, self.project)?;
        Ok(true)
    }
}

fn unpublished(error: SharedArchiveError) -> Fault {
    Fault::io(format!("an erased identity could not be removed where all nodes reach it: {error}"))
}

/// Removes the unlisted files of a project, which are former versions.
fn remove_left_overs(sources: &Sources, project: ProjectId) -> Result<(), Fault> {
    match sources.existing_archive(&sources.sealed.catalog(), project) {
        None => Ok(()),
        Some(opened) => opened.and_then(|archive| archive.remove_left_overs()).map_err(fault::of_archive),
    }
}

/// Withdraws the published state of the project's partition. Its tables, which may even come from a
/// former owner, may have the identities.
fn withdraw_state(sources: &Sources, project: ProjectId) -> Result<(), Fault> {
    sources.files.withdraw_state(partition_of(project)).map_err(unpublished)?;
    sources.done("state with an erased identity withdrawn");
    Ok(())
}

/// Rewrites the base of a project if it may have an erased identity, from the saved state without
/// it. Returns whether no base has one.
fn rewrite_base(sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
    let Some(keys) = sources.erasures.keys(project) else { return Ok(true) };
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
fn merge_tables(sources: &Sources, project: ProjectId) -> Result<bool, Fault> {
    let Some(stored_as) = sources.shards.stored_as(partition_of(project)) else { return Ok(false) };
    clear_unused(&*sources.store, stored_as, partition_of(project)).map_err(fault::of_store)?;
    if !sources.store.merge_all(stored_as, &sources.stop).map_err(fault::of_store)? {
        return Ok(false);
    }
    match sources.writer.remove(stored_as, Vec::new()) {
        Some(removed) => removed.map_err(fault::of_store)?,
        None => return Ok(false),
    }
    sources.done("tables without an erased identity written");
    Ok(true)
}

fn remove_small_parts(sources: &Sources, project: ProjectId) -> Result<(), Fault> {
    let failed = |what: &'static str| move |error: io::Error| Fault::io(format!("{what} could not be removed: {error}"));
    // Includes ended erasures: a former owner knew nothing of this machine's dead letters.
    for (project, keys) in erased_keys_of(&sources.registry.erasures(), |other| other == project) {
        let is_erased = |position, event: &mut _| keys.erase(position, event, sources.hasher());
        sources.scans.dead.erase(project, &is_erased).map_err(failed("events that were set aside"))?;
    }
    for derived in &sources.settings.derived_dirs {
        aside::remove_old(derived, 0).map_err(failed("what was moved aside earlier"))?;
    }
    Ok(())
}
