//! The list of all projects with sealed events, and the position up to which all events are sealed,
//! except those of waiting projects.
//!
//! It is replaced atomically, after the lists of the projects and before sealed events leave the
//! log. So an event that is missing in both is detected: its project's list is missing or ends too
//! early, or the log begins too late.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use headcount_domain::{Position, ProjectId};
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Serialize};

use crate::checksum;
use crate::error::{ArchiveError, Damage};

/// The file name of the catalog, in the archive's root.
pub const CATALOG_NAME: &str = "sealed.json";
/// The version of the catalog's format without waiting projects.
const FORMAT: u32 = 1;
/// The version of the catalog's format with waiting projects. A program without support for them
/// would miss their events.
const FORMAT_WAITING: u32 = 2;

/// The list of projects with sealed events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalog {
    sealed_until: Position,
    last: BTreeMap<ProjectId, Position>,
    /// The projects with an unusable list, each with the position up to which its events are
    /// sealed.
    waiting: BTreeMap<ProjectId, Position>,
}

/// The catalog as JSON, without its checksum.
#[derive(Serialize, Deserialize)]
struct CatalogJson {
    format: u32,
    sealed_until: Position,
    projects: Vec<Entry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingEntry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    project_id: String,
    last_position: Position,
}

#[derive(Serialize, Deserialize)]
struct WaitingEntry {
    project_id: String,
    sealed_until: Position,
}

impl Catalog {
    /// The position up to which the events of all projects are sealed, except those of waiting
    /// projects.
    pub fn sealed_until(&self) -> Position {
        self.sealed_until
    }

    /// The position up to which the events of the projects that `concerns` selects are sealed,
    /// including waiting projects.
    pub fn sealed_until_of(&self, concerns: impl Fn(ProjectId) -> bool) -> Position {
        let waiting = self.waiting.iter().filter(|(project, _)| concerns(**project)).map(|(_, until)| *until);
        waiting.chain([self.sealed_until]).min().unwrap_or(0)
    }

    /// The position after which the log is needed, since it has unsealed events after it.
    pub fn logged_after(&self) -> Position {
        self.sealed_until_of(|_| true)
    }

    /// The waiting projects, each with the position up to which its events are sealed.
    pub fn waiting(&self) -> &BTreeMap<ProjectId, Position> {
        &self.waiting
    }

    /// The projects with sealed events, each with the position of its last one.
    pub fn projects(&self) -> impl Iterator<Item = (ProjectId, Position)> {
        self.last.iter().map(|(project, last)| (*project, *last))
    }

    /// The position of the last sealed event of a project; `None` if it has none.
    pub fn last_of(&self, project: ProjectId) -> Option<Position> {
        self.last.get(&project).copied()
    }

    /// Returns the catalog after sealing everything up to `sealed_until`, with the last positions
    /// of the projects with new events, and the waiting projects.
    #[must_use]
    pub fn advanced(
        &self,
        sealed_until: Position,
        last: &BTreeMap<ProjectId, Position>,
        waiting: BTreeMap<ProjectId, Position>,
    ) -> Self {
        let mut next = self.clone();
        next.sealed_until = sealed_until;
        next.waiting = waiting;
        next.last.extend(last);
        next
    }

    /// Returns the catalog without a deleted project.
    #[must_use]
    pub fn without(&self, project: ProjectId) -> Self {
        let mut next = self.clone();
        next.last.remove(&project);
        next.waiting.remove(&project);
        next
    }

    /// Reads the catalog of the archive in the directory `root`. Without a file, nothing is sealed.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::Io`].
    pub fn read(root: &Path) -> Result<Self, ArchiveError> {
        let path = root.join(CATALOG_NAME);
        match files::read(&path) {
            Ok(bytes) => Self::from_bytes(&bytes),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(ArchiveError::io("read", &path)(error)),
        }
    }

    /// Reads a catalog from its bytes.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ArchiveError> {
        parse(bytes).map_err(|reason| ArchiveError::damaged(CATALOG_NAME, Damage::Manifest(reason)))
    }

    /// Replaces the catalog in the directory `root`.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The directory then has either the old or the new catalog, complete.
    pub fn write(&self, root: &Path) -> Result<(), ArchiveError> {
        let path = root.join(CATALOG_NAME);
        let Self { sealed_until, last, waiting } = self;
        let entry = |(project, last_position): (&ProjectId, &Position)| Entry {
            project_id: project.to_string(),
            last_position: *last_position,
        };
        let waits =
            |(project, until): (&ProjectId, &Position)| WaitingEntry { project_id: project.to_string(), sealed_until: *until };
        let json = CatalogJson {
            format: if waiting.is_empty() { FORMAT } else { FORMAT_WAITING },
            sealed_until: *sealed_until,
            projects: last.iter().map(entry).collect(),
            waiting: waiting.iter().map(waits).collect(),
        };
        let text = checksum::append(serde_json::to_string(&json).map_err(ArchiveError::encode)?);
        files::create_private_dir(root).map_err(ArchiveError::io("create", root))?;
        write_atomically(&path, text.as_bytes(), PRIVATE_FILE).map_err(ArchiveError::io("replace", &path))
    }
}

fn parse(bytes: &[u8]) -> Result<Catalog, String> {
    let CatalogJson { format, sealed_until, projects, waiting } =
        serde_json::from_str(checksum::check(bytes)?).map_err(|error| error.to_string())?;
    if format != if waiting.is_empty() { FORMAT } else { FORMAT_WAITING } {
        return Err(format!("its format is {format}, which this program does not know"));
    }
    let entry = |(project_id, position): (String, Position)| {
        let project = project_id.parse().map_err(|_| format!("{project_id} is not a project id"))?;
        if position > sealed_until {
            return Err(format!("{project_id} ends behind the position {sealed_until}"));
        }
        Ok((project, position))
    };
    let last = projects.into_iter().map(|Entry { project_id, last_position }| entry((project_id, last_position)));
    let last = last.collect::<Result<_, String>>()?;
    let waiting = waiting.into_iter().map(|WaitingEntry { project_id, sealed_until }| entry((project_id, sealed_until)));
    Ok(Catalog { sealed_until, last, waiting: waiting.collect::<Result<_, String>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_needed_from_the_first_event_of_a_project_that_waits() {
        let last = BTreeMap::from([(ProjectId(3), 7), (ProjectId(1), 12)]);
        let catalog = Catalog::default().advanced(20, &last, BTreeMap::from([(ProjectId(3), 9), (ProjectId(4), 15)]));
        assert_eq!((catalog.sealed_until(), catalog.logged_after()), (20, 9));
        assert_eq!(catalog.sealed_until_of(|project| project == ProjectId(4)), 15);
        assert_eq!(catalog.sealed_until_of(|project| project == ProjectId(1)), 20);
        let dir = tempfile::tempdir().unwrap();
        catalog.write(dir.path()).unwrap();
        assert_eq!(Catalog::read(dir.path()).unwrap(), catalog);
        let stored = String::from_utf8(files::read(&dir.path().join(CATALOG_NAME)).unwrap()).unwrap();
        assert!(stored.contains(r#""format":2"#), "programs that know of no waiting projects refuse it: {stored}");
        let healed = catalog.advanced(20, &BTreeMap::new(), BTreeMap::new());
        assert_eq!(healed.logged_after(), 20);
        healed.write(dir.path()).unwrap();
        let stored = String::from_utf8(files::read(&dir.path().join(CATALOG_NAME)).unwrap()).unwrap();
        assert!(stored.contains(r#""format":1"#) && !stored.contains("waiting"), "{stored}");
    }

    #[test]
    fn what_is_written_is_read_and_any_flipped_byte_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Catalog::read(dir.path()).unwrap(), Catalog::default());
        let waiting = BTreeMap::from([(ProjectId(2), 4)]);
        let catalog = Catalog::default().advanced(12, &BTreeMap::from([(ProjectId(3), 7), (ProjectId(1), 12)]), waiting);
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
