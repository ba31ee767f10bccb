//! The files of an archive, without those of deleted projects: a scan that began before a deletion
//! restores none of them.

use std::io;
use std::path::Path;
use std::sync::Arc;

use headcount_archive::{FileSource, ListedFile};
use headcount_domain::ProjectId;
use headcount_storage::files;

use crate::deleted_projects::DeletedProjects;

/// The files of an archive, without those of deleted projects.
#[derive(Debug)]
pub(crate) struct LivingFiles {
    source: Arc<dyn FileSource>,
    deleted: Arc<DeletedProjects>,
}

impl LivingFiles {
    pub(crate) fn new(source: Arc<dyn FileSource>, deleted: &Arc<DeletedProjects>) -> Self {
        Self { source, deleted: Arc::clone(deleted) }
    }

    fn check(&self, project: ProjectId) -> io::Result<()> {
        match self.deleted.contains(project) {
            true => Err(io::Error::other("the project is deleted")),
            false => Ok(()),
        }
    }
}

impl FileSource for LivingFiles {
    fn fetch(&self, project: ProjectId, file: &ListedFile, to: &Path) -> io::Result<()> {
        self.check(project)?;
        self.source.fetch(project, file, to)?;
        // The deletion removes files that existed when it began.
        self.check(project).inspect_err(|_| {
            if let Err(error) = files::remove_file(to) {
                tracing::warn!(%project, %error, "a file of a deleted project could not be removed");
            }
        })
    }
}
