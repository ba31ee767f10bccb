//! Checks the files: the archive by its lists, the log and the tables by their checksums.

use std::ops::ControlFlow;

use headcount_archive::{Archive, ArchiveError, Damage, MANIFEST_NAME};
use headcount_domain::{Fault, ProjectId};
use headcount_storage::UncheckedTables;
use headcount_storage::store::{DiskStore, StoreError};

use super::report::VerifyReport;
use crate::fault;
use crate::history::SealedEvents;

/// A check whether to stop.
pub(super) type IsStopped<'s> = dyn Fn() -> bool + 's;

/// Checks the SHA-256 of every file of an archive in the directory `folder` of the data directory.
pub(super) fn check_archive(
    sealed: &SealedEvents,
    folder: &str,
    report: &mut VerifyReport,
    is_stopped: &IsStopped<'_>,
) -> Result<(), Fault> {
    let catalog = sealed.catalog();
    for (project, _) in catalog.projects() {
        if is_stopped() {
            return Ok(());
        }
        if sealed.is_deleted(project) {
            continue;
        }
        let damaged = damaged_files(sealed, project)?;
        if sealed.is_deleted(project) {
            continue;
        }
        let mut names = Vec::new();
        for (file, reason) in damaged {
            report.is_damaged(format!("{folder}/project={project}/{file}"), reason);
            names.push(file.rsplit('/').next().unwrap_or(&file).to_owned());
        }
        sealed.set_damaged(project, names.into_iter().collect());
    }
    Ok(())
}

/// The damaged files of a project, with their paths in its folder.
fn damaged_files(sealed: &SealedEvents, project: ProjectId) -> Result<Vec<(String, Damage)>, Fault> {
    let open = || Archive::existing(&sealed.root, project).map(|archive| archive.with_source(sealed.source()));
    loop {
        let archive = match open() {
            Ok(archive) => archive,
            Err(ArchiveError::Damaged { reason, .. }) => return Ok(vec![(MANIFEST_NAME.to_owned(), reason)]),
            Err(error) => return Err(fault::of_archive(error)),
        };
        let found = archive.damaged_files(true).map_err(fault::of_archive)?;
        let path = |base: &str| {
            let entry = archive.manifest().files().iter().find(|entry| entry.name.base() == base);
            entry.map_or_else(|| base.to_owned(), |entry| entry.name.to_string())
        };
        let damage = |error| match error {
            // The error names a file with or without the folder of its month.
            ArchiveError::Damaged { file, reason } => Some((path(file.rsplit('/').next().unwrap_or(&file)), reason)),
            _ => None,
        };
        let damaged: Vec<(String, Damage)> = found.into_iter().filter_map(damage).collect();
        let is_missing = damaged.iter().any(|(_, reason)| *reason == Damage::Missing);
        // If there is another list now, a missing file was merged.
        if is_missing && open().is_ok_and(|now| now.manifest() != archive.manifest()) {
            continue;
        }
        return Ok(damaged);
    }
}

/// Checks the store: the pairs in sled, and every table. Returns whether all are intact.
pub(super) fn check_store(store: &DiskStore, report: &mut VerifyReport, is_stopped: &IsStopped<'_>) -> Result<bool, Fault> {
    let pairs_are_sound = match store.verify_pairs() {
        Ok(()) => true,
        Err(StoreError::Damaged { what }) => {
            report.is_damaged("store/tree/db", what);
            false
        }
        Err(error) => return Err(fault::of_store(error)),
    };
    Ok(check_tables(&store.unchecked_tables(), "store/tables", report, is_stopped)? && pairs_are_sound)
}

/// Checks tables in the directory `dir`. Returns whether all are intact.
pub(super) fn check_tables(
    tables: &UncheckedTables,
    dir: &str,
    report: &mut VerifyReport,
    is_stopped: &IsStopped<'_>,
) -> Result<bool, Fault> {
    let mut pace = |_| if is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    let damaged = tables.damaged(&mut pace).map_err(|error| fault::of_store(error.into()))?;
    let are_sound = damaged.is_empty();
    for table in damaged {
        report.is_damaged(format!("{dir}/{}", table.file), table.what);
    }
    Ok(are_sound)
}
