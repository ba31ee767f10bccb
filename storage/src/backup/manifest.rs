//! The list of a backup's files, and the checksums beside it.

use serde::{Deserialize, Serialize};

use super::copy::sha256;
use super::error::BackupError;
use super::names;

/// The file with the list. It is written last.
pub(super) const MANIFEST_NAME: &str = "manifest.json";
/// The file with the checksums of all other files, the list included.
pub(super) const SUMS_NAME: &str = "SHA256SUMS";
/// The format of the list.
const FORMAT: &str = "headcount.backup.v1";
/// A backup has at least this file.
pub(super) const LAYOUT_NAME: &str = "FORMAT";

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The format of this list.
    pub(super) format: String,
    /// The version of the program that made it.
    pub version: String,
    /// When it was made, in UTC.
    pub created_at: String,
    /// The projects, and how far each is in it.
    pub projects: Vec<BackupProject>,
    /// The files, but for the list and the checksums.
    pub files: Vec<BackupFile>,
}

/// A project in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupProject {
    /// The project.
    pub project_id: String,
    /// All its events up to this position are in the backup, and none after it.
    pub position: u64,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// Its path in the backup and in the data directory.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal.
    pub sha256: String,
}

#[derive(Deserialize)]
struct OnlyFormat {
    format: String,
}

impl BackupManifest {
    /// Creates the list of no files.
    #[must_use]
    pub fn new(version: &str, created_at: String, projects: Vec<BackupProject>) -> Self {
        Self { format: FORMAT.to_owned(), version: version.to_owned(), created_at, projects, files: Vec::new() }
    }

    /// The last position of the backup: of each of its projects it has all events up to it, and none after it.
    #[must_use]
    pub fn last_position(&self) -> u64 {
        self.projects.iter().map(|project| project.position).max().unwrap_or(0)
    }

    /// Returns the contents of the two files: the list and the checksums.
    pub(super) fn encode(&self) -> Result<(Vec<u8>, Vec<u8>), BackupError> {
        let mut list = serde_json::to_vec(self)
            .map_err(|error| BackupError::damaged(MANIFEST_NAME, format!("can't be written: {error}")))?;
        list.push(b'\n');
        let sums = self.sums(&list);
        Ok((list, sums))
    }

    /// The contents of the file of checksums, where the list is written as `list`.
    fn sums(&self, list: &[u8]) -> Vec<u8> {
        let files = self.files.iter().map(|file| (file.sha256.clone(), file.name.as_str()));
        let lines = files.chain([(sha256(list), MANIFEST_NAME)]).map(|(sha256, name)| format!("{sha256}  {name}\n"));
        lines.collect::<String>().into_bytes()
    }

    /// Reads the list, and checks that the checksums are those of the list and of the files in it.
    pub(super) fn decode(list: &[u8], sums: &[u8]) -> Result<Self, BackupError> {
        let unreadable = |error| BackupError::damaged(MANIFEST_NAME, format!("can't be read: {error}"));
        let OnlyFormat { format } = serde_json::from_slice(list).map_err(unreadable)?;
        if format != FORMAT {
            return Err(BackupError::OtherFormat { found: format, supported: FORMAT });
        }
        let manifest: Self = serde_json::from_slice(list).map_err(unreadable)?;
        for pair in manifest.files.windows(2) {
            if pair[0].name >= pair[1].name {
                return Err(BackupError::damaged(MANIFEST_NAME, "does not name the files in order"));
            }
        }
        if let Some(file) = manifest.files.iter().find(|file| !names::is_allowed(&file.name)) {
            return Err(BackupError::damaged(MANIFEST_NAME, format!("names {:?}, which no backup holds", file.name)));
        }
        if !manifest.files.iter().any(|file| file.name == LAYOUT_NAME) {
            return Err(BackupError::damaged(MANIFEST_NAME, format!("does not name {LAYOUT_NAME}")));
        }
        // The checksums are written again and compared, so that neither file can be changed unnoticed.
        if manifest.sums(list) != sums {
            return Err(BackupError::damaged(SUMS_NAME, format!("does not match {MANIFEST_NAME}, or that was changed")));
        }
        Ok(manifest)
    }
}
