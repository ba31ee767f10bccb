//! Searches the archive for damaged files.

use headcount_archive::{ArchiveError, MANIFEST_NAME};
use headcount_domain::ProjectId;

use super::sources::Sources;

/// Checks the footers of all files once, one project at a time, and whether damaged files have been
/// restored.
#[derive(Debug)]
pub(super) struct DamageCheck {
    unchecked: Vec<ProjectId>,
}

impl DamageCheck {
    pub(super) fn new(sources: &Sources) -> Self {
        Self { unchecked: sources.sealed.catalog().projects().map(|(project, _)| project).collect() }
    }

    /// Checks the next project. Returns whether there are more.
    pub(super) fn step(&mut self, sources: &Sources) -> bool {
        let Some(project) = self.unchecked.pop() else { return false };
        check(sources, project, false);
        true
    }

    /// Checks the contents of the files of projects with damaged files.
    pub(super) fn check_damaged(sources: &Sources) {
        for project in sources.sealed.damaged_projects() {
            check(sources, project, true);
        }
    }
}

fn check(sources: &Sources, project: ProjectId, whole: bool) {
    if sources.deleted.contains(project) {
        return;
    }
    let Some(opened) = sources.existing_archive(&sources.sealed.catalog(), project) else { return };
    let damaged = match opened.and_then(|archive| archive.damaged_files(whole)) {
        Ok(damaged) => damaged,
        Err(error @ ArchiveError::Damaged { .. }) => vec![error],
        Err(error) => {
            tracing::warn!(%project, %error, "the files of the archive could not be checked");
            return;
        }
    };
    let names = damaged.iter().map(|error| match error {
        ArchiveError::Damaged { file, .. } => file.clone(),
        _ => MANIFEST_NAME.to_owned(),
    });
    sources.sealed.set_damaged(project, names.collect());
}
