//! The list of the contents of a partition's archive.

use std::collections::BTreeMap;

use headcount_archive::{ArchiveError, Catalog, ListedFile, Manifest};
use headcount_domain::ProjectId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::bucket::sha256_of;

/// The version of new lists.
const VERSION: u32 = 1;

/// The reason why a list can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The list differs from the list that was written, or contradicts itself.
    #[error("a list of what is published is damaged: {0}")]
    Damaged(String),
    /// A later version of the program wrote the list.
    #[error("a list of what is published has the format {0}, which this version of headcount does not read: use a later one")]
    Newer(u32),
}

/// The object that lists an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ArchiveList {
    version: u32,
    /// The catalog of the archive, in the format of its file.
    pub(super) catalog: String,
    /// The SHA-256 of the list of files of each project.
    pub(super) projects: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct ListVersion {
    version: u32,
}

impl ArchiveList {
    pub(super) fn new(catalog: String, projects: &BTreeMap<ProjectId, String>) -> Self {
        let projects = projects.iter().map(|(project, sha256)| (project.to_string(), sha256.clone())).collect();
        Self { version: VERSION, catalog, projects }
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>, ListError> {
        serde_json::to_vec(self).map_err(|error| ListError::Damaged(error.to_string()))
    }

    /// Decodes a list that must have this SHA-256.
    pub(super) fn decode(bytes: &[u8], sha256: &str) -> Result<Self, ListError> {
        decode_list(bytes, sha256, VERSION)
    }

    /// The projects, each with the SHA-256 of its list of files.
    pub(super) fn projects(&self) -> Result<BTreeMap<ProjectId, String>, ListError> {
        let parse = |(project, sha256): (&String, &String)| {
            let project = project.parse().map_err(|_| ListError::Damaged(format!("{project} is not the id of a project")))?;
            Ok((project, sha256.clone()))
        };
        self.projects.iter().map(parse).collect()
    }

    /// The catalog of the archive.
    pub(super) fn catalog(&self) -> Result<Catalog, ArchiveError> {
        Catalog::from_bytes(self.catalog.as_bytes())
    }
}

/// Decodes a list of the version `known` that must have this SHA-256.
pub(super) fn decode_list<T: DeserializeOwned>(bytes: &[u8], sha256: &str, known: u32) -> Result<T, ListError> {
    if sha256_of(bytes) != sha256 {
        return Err(ListError::Damaged("its SHA-256 differs from that of its pointer".to_owned()));
    }
    let damaged = |error: serde_json::Error| ListError::Damaged(error.to_string());
    let ListVersion { version } = serde_json::from_slice(bytes).map_err(damaged)?;
    if version == known { serde_json::from_slice(bytes).map_err(damaged) } else { Err(ListError::Newer(version)) }
}

/// The list of files of one project in a published archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProjectList {
    pub(super) sha256: String,
    pub(super) files: Vec<ListedFile>,
}

impl ProjectList {
    pub(super) fn of(bytes: &[u8], project: ProjectId) -> Result<Self, ArchiveError> {
        let manifest = Manifest::from_bytes(bytes, project)?;
        Ok(Self { sha256: sha256_of(bytes), files: manifest.listed().collect() })
    }

    /// The names of the project's objects: the list and the files.
    pub(super) fn objects(&self, project: ProjectId) -> impl Iterator<Item = String> {
        self.objects_with_hashes(project).map(|(object, _)| object)
    }

    /// The names of the project's objects, each with its SHA-256.
    pub(super) fn objects_with_hashes(&self, project: ProjectId) -> impl Iterator<Item = (String, String)> {
        let files = self.files.iter().map(move |file| (object_of(project, file), file.sha256.clone()));
        files.chain([(list_object(project, &self.sha256), self.sha256.clone())])
    }
}

/// The name of the folder with all objects of a project.
pub(super) fn folder_of(project: ProjectId) -> String {
    format!("project={project}")
}

/// The name of the object with a file of a project.
pub(super) fn object_of(project: ProjectId, file: &ListedFile) -> String {
    format!("{}/{}.{}", folder_of(project), file.name, file.sha256)
}

/// The name of the object with the list of a project's files.
pub(super) fn list_object(project: ProjectId, sha256: &str) -> String {
    format!("{}/files.{sha256}.json", folder_of(project))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written_and_any_flipped_byte_is_noticed() {
        let list = ArchiveList::new("catalog".to_owned(), &BTreeMap::from([(ProjectId(3), "ab".to_owned())]));
        let bytes = list.encode().unwrap();
        let sha256 = sha256_of(&bytes);
        assert_eq!(ArchiveList::decode(&bytes, &sha256).unwrap(), list);
        assert_eq!(list.projects().unwrap(), BTreeMap::from([(ProjectId(3), "ab".to_owned())]));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(ArchiveList::decode(&damaged, &sha256).is_err(), "byte {at}");
        }
        let later = br#"{"version":2}"#;
        assert!(matches!(ArchiveList::decode(later, &sha256_of(later)), Err(ListError::Newer(2))));
    }
}
