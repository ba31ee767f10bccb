//! Projects that have lost events by their retention. Their sealed events move as the files of an
//! archive, since their figures can't be computed from the remaining events.
//!
//! These events keep their positions, which the base has, too. So the log of their partition begins
//! after them, as if earlier messages had been sealed and removed.

use std::collections::BTreeMap;
use std::path::Path;

use headcount_archive::{BaseEntry, Catalog, Manifest};
use headcount_common::partition_of;
use headcount_domain::{Position, ProjectId};
use headcount_storage::files;

use super::error::MovingError;
use crate::history::SealedEvents;

/// The projects that have lost events.
#[derive(Debug, Default)]
pub(super) struct RetainedProjects(BTreeMap<ProjectId, Retained>);

/// The sealed events of a project that has lost events.
#[derive(Debug, Clone, Copy)]
struct Retained {
    /// The position up to which its events are in its files.
    until: Position,
    /// The position of the last of them.
    last: Position,
}

impl RetainedProjects {
    /// Finds the projects that have bases, and checks their files.
    pub(super) fn of(sealed: &SealedEvents) -> Result<Self, MovingError> {
        let (catalog, mut retained) = (sealed.catalog(), BTreeMap::new());
        for (project, last) in catalog.projects() {
            let archive = sealed.list(project, last)?;
            let Some(base) = archive.manifest().base().map(BaseEntry::position) else { continue };
            let until = catalog.sealed_until_of(|one| one == project).max(archive.manifest().sealed_until());
            // Events up to there would count twice: in the base, and at their new positions.
            if base > until {
                return Err(MovingError::Unsealed(project));
            }
            if let Some(damage) = archive.damaged_files(true)?.into_iter().next() {
                return Err(damage.into());
            }
            // The list may be ahead of the catalog in the same backup.
            retained.insert(project, Retained { until, last: last.max(archive.manifest().sealed_until()) });
        }
        Ok(Self(retained))
    }

    /// The projects, each with the position up to which its events are in its files.
    pub(super) fn all(&self) -> impl Iterator<Item = (ProjectId, Position)> {
        self.0.iter().map(|(project, retained)| (*project, retained.until))
    }

    /// Whether an event, or a floor, moves with the files of its project.
    pub(super) fn have(&self, project: ProjectId, position: Position) -> bool {
        self.0.get(&project).is_some_and(|retained| position <= retained.until)
    }

    /// Creates a directory with the archive of a partition, with everything up to `sealed_until`
    /// sealed. It has the lists, and links to the files of the archive `from`.
    pub(super) fn lay_out(
        &self,
        from: &Path,
        root: &Path,
        (partition, sealed_until): (u16, Position),
    ) -> Result<(), MovingError> {
        if root.exists() {
            files::remove_dir_all(root).map_err(MovingError::io("remove", root))?;
        }
        files::create_private_dir(root).map_err(MovingError::io("create", root))?;
        let from = from.canonicalize().map_err(MovingError::io("find", from))?;
        let mut last = BTreeMap::new();
        for (project, retained) in self.0.iter().filter(|(project, _)| partition_of(**project) == partition) {
            let folder = format!("project={project}");
            lay_out(*project, &from.join(&folder), &root.join(&folder))?;
            last.insert(*project, retained.last);
        }
        Ok(Catalog::default().advanced(sealed_until, &last, BTreeMap::new()).write(root)?)
    }
}

/// Creates a folder with the list of another one, and links to its files.
fn lay_out(project: ProjectId, from: &Path, to: &Path) -> Result<(), MovingError> {
    let make = |dir: &Path| files::create_private_dir(dir).map_err(MovingError::io("create", dir));
    make(to)?;
    let Some(manifest) = Manifest::read(from, project)? else { return Ok(()) };
    for file in manifest.listed() {
        let link = to.join(&file.name);
        link.parent().map_or(Ok(()), make)?;
        std::os::unix::fs::symlink(from.join(&file.name), &link).map_err(MovingError::io("link", &link))?;
    }
    Ok(manifest.write(to)?)
}
