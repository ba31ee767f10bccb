//! Rewrites the files of a project with events of an erased identity, a few at a time, so that
//! other archives have their turn in between.

use std::collections::BTreeSet;
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::{Archive, ArchiveError, ArchiveFile, FileEntry, Row, replace_file, rewrite_rows};
use headcount_domain::erasure::ErasedKeys;
use headcount_domain::{Fault, KeyHasher, ProjectId};

use super::sources::Sources;
use crate::erasures::erase_row;
use crate::fault;

/// How long files are read and written before other work has its turn.
pub(super) const SLICE: Duration = Duration::from_millis(500);

/// The rewriting of the files of one project, for the erasures that had begun when it started.
#[derive(Debug)]
pub(super) struct FileRewriting {
    project: ProjectId,
    /// The files without erased data. No other files of the project ever have these names.
    clean: BTreeSet<String>,
}

impl FileRewriting {
    pub(super) fn new(project: ProjectId) -> Self {
        Self { project, clean: BTreeSet::new() }
    }

    /// Continues until `SLICE` after `began`, with at least one file. Returns whether no file has
    /// an erased identity any more.
    pub(super) fn step(&mut self, sources: &Sources, began: Stopwatch) -> Result<bool, Fault> {
        let project = self.project;
        let Some(keys) = sources.erasures.keys(project) else { return Ok(true) };
        let mut archive = match sources.existing_archive(&sources.sealed.catalog(), project) {
            None => return Ok(true),
            Some(opened) => opened.map_err(fault::of_archive)?,
        };
        let left = archive.manifest().files().iter().filter(|entry| !self.clean.contains(&entry.name.base()));
        let left: Vec<FileEntry> = left.cloned().collect();
        for (number, entry) in left.iter().enumerate() {
            if number > 0 && began.elapsed() >= SLICE {
                return Ok(false);
            }
            let Some(clean) = remove_from_file(sources, project, &mut archive, entry, &keys)? else { return Ok(false) };
            self.clean.extend(clean.iter().map(|entry| entry.name.base()));
        }
        archive.remove_left_overs().map_err(fault::of_archive)?;
        Ok(true)
    }
}

/// Rewrites a file if it has an erased identity. Returns the files in its place, which may have
/// events of the identity from after the erasure. Returns `None` if that is not possible now.
fn remove_from_file(
    sources: &Sources,
    project: ProjectId,
    archive: &mut Archive,
    entry: &FileEntry,
    keys: &ErasedKeys,
) -> Result<Option<Vec<FileEntry>>, Fault> {
    if sources.is_stopping() || sources.deleted.contains(project) {
        return Ok(None);
    }
    let found = archive.file(entry).and_then(|file| has_erased(&file, keys, sources.hasher()));
    if !sources.sealed.note(project, &entry.name.base(), found).map_err(fault::of_archive)? {
        return Ok(Some(vec![entry.clone()]));
    }
    if !sources.has_space() {
        return Ok(None);
    }
    rewrite_file(sources, project, archive, entry, keys)
}

/// Whether a file has an erased id, or the visitor of an erased address. Each distinct id is hashed
/// once.
fn has_erased(file: &ArchiveFile, keys: &ErasedKeys, hasher: &KeyHasher) -> Result<bool, ArchiveError> {
    for group in file.groups() {
        for (name, is_user) in [("user_id", true), ("anonymous_id", false)] {
            let column = group.texts(name)?;
            let codes: BTreeSet<u32> = column.codes().iter().copied().collect();
            let mut values = codes.into_iter().filter_map(|code| column.value(code));
            if values.any(|id| keys.contains(if is_user { hasher.user(id) } else { hasher.anonymous(id) })) {
                return Ok(true);
            }
        }
        let visitors: BTreeSet<u128> = group.bytes16("visitor_id")?.into_iter().flatten().collect();
        if visitors.into_iter().any(|visitor| keys.contains(hasher.visitor(visitor))) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Rewrites a file without erased data. Returns the files in its place; `None` if a replay reads
/// it.
fn rewrite_file(
    sources: &Sources,
    project: ProjectId,
    archive: &mut Archive,
    entry: &FileEntry,
    keys: &ErasedKeys,
) -> Result<Option<Vec<FileEntry>>, Fault> {
    let is_wanted = || !sources.is_stopping() && !sources.deleted.contains(project);
    let mut erase = |row: Row| if is_wanted() { Ok(erase_row(row, keys, sources.hasher())) } else { Err(ArchiveError::Stopped) };
    let rewritten = match rewrite_rows(archive, entry, sources.seal_options(), &mut erase) {
        Err(error @ ArchiveError::Damaged { .. }) => {
            return sources.sealed.note(project, &entry.name.base(), Err(error)).map_err(fault::of_archive);
        }
        rewritten => rewritten.map_err(fault::of_archive)?,
    };
    sources.done("file without an erased identity written");
    let Some(_no_replay) = sources.sealed.change_bases() else { return Ok(None) };
    replace_file(archive, entry, &rewritten).map_err(fault::of_archive)?;
    sources.done("file without an erased identity listed");
    archive.remove_left_overs().map_err(fault::of_archive)?;
    Ok(Some(rewritten))
}
