//! Downloads the lists of an archive from the bucket to a node's disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use headcount_archive::{Archive, CATALOG_NAME, MANIFEST_NAME};
use headcount_domain::ProjectId;
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};

use super::bucket::{Bucket, BucketError, FETCHED_PREFIX, sha256_of};
use super::list::{ArchiveList, ProjectList, list_object};
use super::{FilesError, Result};

/// The number of lists downloaded at once.
const AT_ONCE: usize = 16;

/// Makes the directory `root` list exactly what `list` does. Keeps existing files that are the
/// same. Returns the lists of the projects.
pub(super) async fn fetch_lists(bucket: &Bucket, list: &ArchiveList, root: &Path) -> Result<BTreeMap<ProjectId, ProjectList>> {
    let projects = list.projects()?;
    if let Some(parent) = root.parent() {
        files::create_private_dir(parent).map_err(BucketError::from)?;
    }
    files::create_private_dir(root).map_err(BucketError::from)?;
    remove_others(root, &projects.keys().copied().collect())?;
    let fetch = |(project, sha256): (ProjectId, String)| async move {
        Ok::<_, FilesError>((project, fetch_list(bucket, root, project, &sha256).await?))
    };
    let lists = stream::iter(projects).map(fetch).buffer_unordered(AT_ONCE).try_collect().await?;
    // Written last, as the archive itself does.
    write(&root.join(CATALOG_NAME), list.catalog.as_bytes())?;
    files::sync_dir(root).map_err(BucketError::from)?;
    Ok(lists)
}

/// Removes the lists of a directory, for an archive of which nothing is published.
pub(super) fn remove_all(root: &Path) -> Result<()> {
    match root.exists() {
        true => Ok(files::remove_dir_all(root).map_err(BucketError::from)?),
        false => Ok(()),
    }
}

async fn fetch_list(bucket: &Bucket, root: &Path, project: ProjectId, sha256: &str) -> Result<ProjectList> {
    let dir = dir_of(root, project);
    let path = dir.join(MANIFEST_NAME);
    let here = files::read_if_there(&path).map_err(BucketError::from)?;
    remove_unfinished(&dir)?;
    if let Some(bytes) = here.as_ref().filter(|bytes| sha256_of(bytes) == sha256) {
        return Ok(ProjectList::of(bytes, project)?);
    }
    let object = list_object(project, sha256);
    let bytes = bucket.get(&object).await?;
    if sha256_of(&bytes) != sha256 {
        return Err(BucketError::Damaged(object).into());
    }
    let wanted = ProjectList::of(&bytes, project)?;
    // A list that can't be read doesn't describe the files beside it.
    let here = here.and_then(|bytes| ProjectList::of(&bytes, project).ok()).map(|list| list.files).unwrap_or_default();
    for file in wanted.files.iter().filter(|file| !here.contains(file)) {
        // A file with this name may have other contents: this node sealed it, and never published
        // it.
        files::remove_if_there(&dir.join(&file.name)).map_err(BucketError::from)?;
    }
    files::create_private_dir(&dir).map_err(BucketError::from)?;
    write(&path, &bytes)?;
    Ok(wanted)
}

pub(super) fn dir_of(root: &Path, project: ProjectId) -> PathBuf {
    root.join(format!("project={project}"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically(path, bytes, PRIVATE_FILE).map_err(|error| BucketError::from(error).into())
}

/// Removes the archives of other projects.
fn remove_others(root: &Path, projects: &BTreeSet<ProjectId>) -> Result<()> {
    for path in files::list(root).map_err(BucketError::from)? {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let project = name.strip_prefix("project=").and_then(|project| project.parse().ok());
        if let Some(project) = project.filter(|project| !projects.contains(project)) {
            Archive::remove(root, project)?;
        }
    }
    Ok(())
}

/// Removes unfinished downloads of an earlier process.
fn remove_unfinished(dir: &Path) -> Result<()> {
    if !dir.exists() {
        return Ok(());
    }
    let is_unfinished = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(FETCHED_PREFIX));
    for path in files::list(dir).map_err(BucketError::from)? {
        let inside = if path.is_dir() { files::list(&path).map_err(BucketError::from)? } else { vec![path] };
        for path in inside.iter().filter(|path| is_unfinished(path)) {
            files::remove_file(path).map_err(BucketError::from)?;
        }
    }
    Ok(())
}
