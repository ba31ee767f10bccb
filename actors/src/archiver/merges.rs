//! Merges the files of small projects, one merge at a time.

use std::collections::BTreeMap;

use headcount_archive::{ArchiveError, merge_next, month_of};
use headcount_domain::ProjectId;

use super::sources::Sources;

/// The number and the bytes of a project's files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileFigures {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// The projects whose files may have to be merged, and the figures of each project.
#[derive(Debug, Default)]
pub(super) struct Merges {
    unchecked: Vec<ProjectId>,
    figures: BTreeMap<ProjectId, FileFigures>,
}

impl Merges {
    /// Marks the archives of all projects to be checked.
    pub(super) fn check_all(&mut self, sources: &Sources) {
        self.unchecked = sources.sealed.catalog().projects().map(|(project, _)| project).collect();
    }

    /// Marks the archive of a project to be checked.
    pub(super) fn check(&mut self, project: ProjectId) {
        if !self.unchecked.contains(&project) {
            self.unchecked.push(project);
        }
    }

    /// Removes a deleted project.
    pub(super) fn forget(&mut self, project: ProjectId) {
        self.unchecked.retain(|unchecked| *unchecked != project);
        self.figures.remove(&project);
    }

    /// Merges files of the next project, and removes unlisted files. Returns whether there may be
    /// more to do.
    pub(super) fn step(&mut self, sources: &Sources) -> Result<bool, ArchiveError> {
        let Some(project) = self.unchecked.last().copied() else { return Ok(false) };
        if sources.deleted.contains(project) {
            self.forget(project);
            return Ok(true);
        }
        // A list that lacks sealed files must not be used, since unlisted files are removed below.
        let mut archive = match sources.existing_archive(&sources.sealed.catalog(), project) {
            Some(Ok(archive)) => archive,
            None => {
                self.unchecked.pop();
                return Ok(true);
            }
            Some(Err(error)) => {
                self.unchecked.pop();
                return if error.is_damage() { Ok(true) } else { Err(error) };
            }
        };
        let now = month_of(sources.settings.clock.now());
        let merged = merge_next(&mut archive, now, &sources.compact_options(), &|| !sources.is_stopping());
        if matches!(merged, Ok(true)) {
            sources.done("files merged");
        }
        let merged = merged.and_then(|merged| archive.remove_left_overs().map(|()| merged));
        let files = archive.manifest().files();
        let figures = FileFigures { files: files.len() as u64, bytes: files.iter().map(|file| file.bytes).sum() };
        self.figures.insert(project, figures);
        if !matches!(merged, Ok(true)) {
            self.unchecked.pop();
        }
        if let Err(ArchiveError::Damaged { file, .. }) = &merged {
            let file = file.clone();
            // Other projects are still merged.
            let _noted = sources.sealed.note(project, &file, merged);
            return Ok(true);
        }
        merged.map(|_| true)
    }

    /// The sum over all projects.
    pub(super) fn figures(&self) -> FileFigures {
        let add =
            |sum: FileFigures, one: &FileFigures| FileFigures { files: sum.files + one.files, bytes: sum.bytes + one.bytes };
        self.figures.values().fold(FileFigures::default(), add)
    }
}
