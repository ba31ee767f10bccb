//! The list of all projects that have sealed events, and the position up to which all events of all projects are sealed.
//!
//! It is replaced in one step after the lists of the projects, and before the log loses what was sealed. So an event that neither the archive
//! nor the log has is noticed: its project's list is missing or ends too early, or the log begins too late.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Serialize};

use crate::checksum;
use crate::error::{ArchiveError, Damage};

/// The file name of the catalog, in the archive's root.
pub const CATALOG_NAME: &str = "sealed.json";
/// The version of the catalog's format.
const FORMAT: u32 = 1;

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    sealed_until: Position,
    last: BTreeMap<ProjectId, Position>,
}

/// The catalog as JSON, without its checksum.
#[derive(Serialize, Deserialize)]
struct CatalogJson {
    format: u32,
    sealed_until: Position,
    projects: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    project_id: String,
    last_position: Position,
}

impl Catalog {
    /// The position up to which the events of all projects are sealed.
    #[must_use]
    pub fn sealed_until(&self) -> Position {
        self.sealed_until
    }

    /// The projects with sealed events, each with the position of its last one.
    pub fn projects(&self) -> impl Iterator<Item = (ProjectId, Position)> {
        self.last.iter().map(|(project, last)| (*project, *last))
    }

    /// The position of the last sealed event of a project; `None` if it has none.
    #[must_use]
    pub fn last_of(&self, project: ProjectId) -> Option<Position> {
        self.last.get(&project).copied()
    }

    /// Returns the catalog after everything up to `sealed_until` was sealed, with the last positions of the projects that got events.
    #[must_use]
    pub fn advanced(&self, sealed_until: Position, last: &BTreeMap<ProjectId, Position>) -> Self {
        let mut next = self.clone();
        next.sealed_until = sealed_until;
        next.last.extend(last);
        next
    }

    /// Returns the catalog without a deleted project.
    #[must_use]
    pub fn without(&self, project: ProjectId) -> Self {
        let mut next = self.clone();
        next.last.remove(&project);
        next
    }

    /// Reads the catalog of the archive in the directory `root`. Without a file, nothing is sealed.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::Io`].
    pub fn read(root: &Path) -> Result<Self, ArchiveError> {
        let path = root.join(CATALOG_NAME);
        match files::read(&path) {
            Ok(bytes) => parse(&bytes).map_err(|reason| ArchiveError::damaged(CATALOG_NAME, Damage::Manifest(reason))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(ArchiveError::io("read", &path)(error)),
        }
    }

    /// Replaces the catalog in the directory `root`.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The directory then has the former catalog or the new one, complete.
    pub fn write(&self, root: &Path) -> Result<(), ArchiveError> {
        let path = root.join(CATALOG_NAME);
        let entry = |(project, last_position): (ProjectId, Position)| Entry { project_id: project.to_string(), last_position };
        let json =
            CatalogJson { format: FORMAT, sealed_until: self.sealed_until, projects: self.projects().map(entry).collect() };
        let text = checksum::append(serde_json::to_string(&json).map_err(ArchiveError::encode)?);
        files::create_private_dir(root).map_err(ArchiveError::io("create", root))?;
        write_atomically(&path, text.as_bytes(), PRIVATE_FILE).map_err(ArchiveError::io("replace", &path))
    }
}

fn parse(bytes: &[u8]) -> Result<Catalog, String> {
    let CatalogJson { format, sealed_until, projects } =
        serde_json::from_str(checksum::check(bytes)?).map_err(|error| error.to_string())?;
    if format != FORMAT {
        return Err(format!("its format is {format}, which this program does not know"));
    }
    let entry = |Entry { project_id, last_position }: Entry| {
        let project = project_id.parse().map_err(|_| format!("{project_id} is no project"))?;
        if last_position > sealed_until {
            return Err(format!("{project_id} ends behind the position {sealed_until}"));
        }
        Ok((project, last_position))
    };
    let last = projects.into_iter().map(entry).collect::<Result<_, String>>()?;
    Ok(Catalog { sealed_until, last })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_any_flipped_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Catalog::read(dir.path()).unwrap(), Catalog::default());
        let catalog = Catalog::default().advanced(12, &BTreeMap::from([(ProjectId(3), 7), (ProjectId(1), 12)]));
        catalog.write(dir.path()).unwrap();
        assert_eq!(Catalog::read(dir.path()).unwrap(), catalog);
        let path = dir.path().join(CATALOG_NAME);
        let sound = files::read(&path).unwrap();
        for at in 0..sound.len() {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            write_atomically(&path, &damaged, PRIVATE_FILE).unwrap();
            assert!(Catalog::read(dir.path()).unwrap_err().is_damage(), "byte {at}");
            write_atomically(&path, &sound[..at], PRIVATE_FILE).unwrap();
            assert!(Catalog::read(dir.path()).unwrap_err().is_damage(), "cut at {at}");
        }
    }
}
