//! The list of a project's files. It is replaced atomically. Files that it does not name are
//! leftovers.

use std::io::ErrorKind;
use std::path::Path;

use headcount_domain::{Day, Position, ProjectId};
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use serde::{Deserialize, Serialize};

use crate::base::BaseEntry;
use crate::checksum;
use crate::error::{ArchiveError, Damage};
use crate::file::FileEntry;
use crate::source::ListedFile;

/// The file name of the list.
pub const MANIFEST_NAME: &str = "manifest.json";
/// The version of the list's format without floors.
const FORMAT: u32 = 1;
/// The version of the list's format with floors or a base. A program without support for them would
/// rebuild another state.
const FORMAT_RETAINED: u32 = 2;

/// The files of a project in the order of their positions. Position ranges don't overlap, and
/// months don't decrease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    project: ProjectId,
    sealed_until: Position,
    files: Vec<FileEntry>,
    /// The project's floors so far, with the positions of their records. Both rise.
    floors: Vec<(Position, Day)>,
    base: Option<BaseEntry>,
}

/// The list as JSON, without its checksum.
#[derive(Serialize, Deserialize)]
struct Json {
    format: u32,
    project_id: String,
    sealed_until: Position,
    files: Vec<FileEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    floors: Vec<(Position, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<BaseEntry>,
}

impl Manifest {
    /// Creates the list of a project without sealed events.
    pub fn empty(project: ProjectId) -> Self {
        Self { project, sealed_until: 0, files: Vec::new(), floors: Vec::new(), base: None }
    }

    /// Creates a list of `files`.
    ///
    /// # Errors
    /// A message if files overlap, are out of order, or exceed `sealed_until`.
    pub fn new(project: ProjectId, sealed_until: Position, files: Vec<FileEntry>) -> Result<Self, String> {
        for pair in files.windows(2) {
            let (one, next) = (pair[0].name, pair[1].name);
            if one.last >= next.first || one.month > next.month {
                return Err(format!("{one} and {next} are not in order"));
            }
        }
        if let Some(last) = files.last().filter(|last| last.name.last > sealed_until) {
            return Err(format!("{} lies behind the position {sealed_until}", last.name));
        }
        if let Some(file) = files.iter().find(|file| file.rows == 0 || file.rows > file.name.last - file.name.first + 1) {
            return Err(format!("{} can't have {} rows", file.name, file.rows));
        }
        Ok(Self { project, sealed_until, files, floors: Vec::new(), base: None })
    }

    /// Returns the list with other files.
    ///
    /// # Errors
    /// Same as [`Manifest::new`].
    pub(crate) fn with_files(&self, sealed_until: Position, files: Vec<FileEntry>) -> Result<Self, String> {
        let Self { floors, base, .. } = self.clone();
        Ok(Self { floors, base, ..Self::new(self.project, sealed_until, files)? })
    }

    /// Returns the list with another base.
    #[must_use]
    pub fn with_base(&self, base: BaseEntry) -> Self {
        Self { base: Some(base), ..self.clone() }
    }

    /// Returns the list with the project's floors so far.
    ///
    /// # Errors
    /// A message if they don't rise, or exceed `sealed_until`.
    pub fn with_floors(self, floors: Vec<(Position, Day)>) -> Result<Self, String> {
        if !floors.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1) {
            return Err("the floors are not in order".to_owned());
        }
        if let Some((position, _)) = floors.last().filter(|(position, _)| *position > self.sealed_until) {
            return Err(format!("the floor at position {position} lies behind the position {}", self.sealed_until));
        }
        Ok(Self { floors, ..self })
    }

    /// The project.
    pub fn project(&self) -> ProjectId {
        self.project
    }

    /// The position up to which all events are sealed; 0 if none are.
    pub fn sealed_until(&self) -> Position {
        self.sealed_until
    }

    /// The project's floors so far, with the positions of their records. Both rise.
    pub fn floors(&self) -> &[(Position, Day)] {
        &self.floors
    }

    /// The files.
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// The saved state from which a rebuild starts, if rows up to its position may have been
    /// removed.
    pub fn base(&self) -> Option<&BaseEntry> {
        self.base.as_ref()
    }

    /// All listed files: files of events, and the base.
    pub fn listed(&self) -> impl Iterator<Item = ListedFile> {
        self.files.iter().map(ListedFile::from).chain(self.base.iter().map(ListedFile::from))
    }

    /// Reads a list of `project` from its bytes.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`].
    pub fn from_bytes(bytes: &[u8], project: ProjectId) -> Result<Self, ArchiveError> {
        parse(bytes, project).map_err(|reason| ArchiveError::damaged(MANIFEST_NAME, Damage::Manifest(reason)))
    }

    /// Encodes the list as in its file.
    ///
    /// # Errors
    /// [`ArchiveError::Encode`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, ArchiveError> {
        Ok(self.text().map_err(ArchiveError::encode)?.into_bytes())
    }

    /// Reads the list of `project` in the folder `dir`; `None` if there is no list.
    ///
    /// # Errors
    /// [`ArchiveError::Damaged`] and [`ArchiveError::Io`].
    pub fn read(dir: &Path, project: ProjectId) -> Result<Option<Self>, ArchiveError> {
        let path = dir.join(MANIFEST_NAME);
        let bytes = match files::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ArchiveError::io("read", &path)(error)),
        };
        Self::from_bytes(&bytes, project).map(Some)
    }

    /// Replaces the list in the folder `dir`.
    ///
    /// # Errors
    /// [`ArchiveError::Io`]. The folder then has either the old or the new list, complete.
    pub fn write(&self, dir: &Path) -> Result<(), ArchiveError> {
        let path = dir.join(MANIFEST_NAME);
        write_atomically(&path, &self.to_bytes()?, PRIVATE_FILE).map_err(ArchiveError::io("replace", &path))
    }

    fn text(&self) -> serde_json::Result<String> {
        let Self { project, sealed_until, files, floors, base } = self;
        let json = Json {
            format: format_of(floors.is_empty() && base.is_none()),
            project_id: project.to_string(),
            sealed_until: *sealed_until,
            files: files.clone(),
            floors: floors.iter().map(|(position, day)| (*position, day.to_string())).collect(),
            base: base.clone(),
        };
        Ok(checksum::append(serde_json::to_string(&json)?))
    }
}

fn format_of(is_whole: bool) -> u32 {
    if is_whole { FORMAT } else { FORMAT_RETAINED }
}

fn parse(bytes: &[u8], project: ProjectId) -> Result<Manifest, String> {
    let json: Json = serde_json::from_str(checksum::check(bytes)?).map_err(|error| error.to_string())?;
    if json.format != format_of(json.floors.is_empty() && json.base.is_none()) {
        return Err(format!("its format is {}, which this program does not know", json.format));
    }
    if json.project_id != project.to_string() {
        return Err(format!("it is the list of {}", json.project_id));
    }
    let floor = |(position, day): (Position, String)| {
        let day = Day::parse(&day).ok_or_else(|| format!("{day:?} is not a day"))?;
        Ok((position, day))
    };
    let floors = json.floors.into_iter().map(floor).collect::<Result<_, String>>()?;
    let manifest = Manifest::new(project, json.sealed_until, json.files)?.with_floors(floors)?;
    Ok(Manifest { base: json.base, ..manifest })
}

#[cfg(test)]
mod tests;
