//! The list of a backup's files, with the names that are allowed there, and the checksums beside
//! it.

use serde::{Deserialize, Serialize};

use super::copy::sha256;
use super::error::BackupError;

/// The file with the list. It is written last.
pub(super) const MANIFEST_NAME: &str = "manifest.json";
/// The file with the checksums of all other files, including the list.
pub(super) const SUMS_NAME: &str = "SHA256SUMS";
/// The format of the list.
const FORMAT: &str = "headcount.backup.v1";
/// A file that every backup has.
pub(super) const LAYOUT_NAME: &str = "FORMAT";

/// The contents of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The format of this list.
    pub(super) format: String,
    /// The version of the program that made it.
    pub version: String,
    /// When it was made, in UTC.
    pub created_at: String,
    /// The projects, each with its last position in the backup.
    pub projects: Vec<BackupProject>,
    /// The files, except the list and the checksums.
    pub files: Vec<BackupFile>,
}

/// A project in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupProject {
    /// The project.
    pub project_id: String,
    /// The backup has all events of the project up to this position, and none after it.
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
    pub fn new(version: &str, created_at: String, projects: Vec<BackupProject>) -> Self {
        Self { format: FORMAT.to_owned(), version: version.to_owned(), created_at, projects, files: Vec::new() }
    }

    /// The last position of the backup. For each project, the backup has all events up to it and
    /// none after it.
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

    /// The contents of the file of checksums, given the encoded list.
    fn sums(&self, list: &[u8]) -> Vec<u8> {
        let files = self.files.iter().map(|file| (file.sha256.clone(), file.name.as_str()));
        let lines = files.chain([(sha256(list), MANIFEST_NAME)]).map(|(sha256, name)| format!("{sha256}  {name}\n"));
        lines.collect::<String>().into_bytes()
    }

    /// Decodes the list, and checks that the checksums match the list and its files.
    pub(super) fn decode(list: &[u8], sums: &[u8]) -> Result<Self, BackupError> {
        let unreadable = |error| BackupError::damaged(MANIFEST_NAME, format!("can't be read: {error}"));
        let OnlyFormat { format } = serde_json::from_slice(list).map_err(unreadable)?;
        if format != FORMAT {
            return Err(BackupError::OtherFormat { found: format, supported: FORMAT });
        }
        let manifest: Self = serde_json::from_slice(list).map_err(unreadable)?;
        for pair in manifest.files.windows(2) {
            if pair[0].name >= pair[1].name {
                return Err(BackupError::damaged(MANIFEST_NAME, "does not list the files in order"));
            }
        }
        if let Some(file) = manifest.files.iter().find(|file| !is_allowed(&file.name)) {
            return Err(BackupError::damaged(
                MANIFEST_NAME,
                format!("contains {:?}, which is not a file of a backup", file.name),
            ));
        }
        if !manifest.files.iter().any(|file| file.name == LAYOUT_NAME) {
            return Err(BackupError::damaged(MANIFEST_NAME, format!("does not contain {LAYOUT_NAME}")));
        }
        // Encode the checksums again and compare them, so that neither file can change unnoticed.
        if manifest.sums(list) != sums {
            return Err(BackupError::damaged(SUMS_NAME, format!("does not match {MANIFEST_NAME}")));
        }
        Ok(manifest)
    }
}

/// Whether a backup may contain a file with this name. Only files that are useful in another data
/// directory: no locks, no visitor salts, no plain tokens, nothing outside the directory.
pub(super) fn is_allowed(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'=');
    let parts: Vec<&str> = name.split('/').collect();
    if parts.iter().any(|part| part.is_empty() || part.bytes().all(|byte| byte == b'.') || !part.bytes().all(is_plain)) {
        return false;
    }
    match parts[..] {
        ["FORMAT" | "dead-letters.ndjson"] | ["keys", "hash.key"] => true,
        [first, _, ..] => matches!(first, "log" | "control" | "imports" | "archive"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_layout_are_allowed() {
        for name in [
            "FORMAT",
            "keys/hash.key",
            "log/00000000000000000001.seg",
            "log/floor",
            "control/snapshot-00000000000000000256.json",
            "control/log/00000000000000000001.seg",
            "archive/project=proj_1/month=2026-11/00000000000000000001-00000000000000000009.parquet",
            "dead-letters.ndjson",
            "imports/17.ndjson",
        ] {
            assert!(is_allowed(name), "{name}");
        }
        for name in [
            "",
            "/etc/passwd",
            "log",
            "log/",
            "log//x",
            "log/../../x",
            "../log/x",
            "log/./x",
            "log/...",
            "FORMAT/x",
            "keys/salts",
            "credentials.json",
            "operator-token",
            "LOCK",
            "starts",
            "store/db",
            "log/a b",
            "log/a\nb",
            "log/a\\b",
            "manifest.json",
            "SHA256SUMS",
        ] {
            assert!(!is_allowed(name), "{name}");
        }
    }
}
