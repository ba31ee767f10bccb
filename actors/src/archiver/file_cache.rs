//! Keeps the files of a node within its share of the disk. Its archives are a cache: published
//! files are fetched again when they are read.
//!
//! The thread that writes archives also removes excess files, so that no file changes meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::{ArchiveError, CachedFile, ListedFile, Manifest, cached_files};
use headcount_common::{PARTITIONS, SharedArchive};
use headcount_domain::ProjectId;

use super::sources::EngineSources;
use super::work::ArchiveWork;

/// How often files are counted.
const INTERVAL: Duration = Duration::from_secs(60);

/// The files of a node, as a cache.
#[derive(Debug, Default)]
pub(super) struct FileCache {
    counted: Option<Stopwatch>,
}

/// A file, and the partition of its archive.
struct Counted {
    partition: u16,
    file: CachedFile,
}

/// The directory of a partition's archive.
pub(crate) fn archive_dir(data_dir: &Path, partition: u16) -> PathBuf {
    data_dir.join("archive").join(format!("partition={partition:02}"))
}

impl FileCache {
    /// Regularly removes excess files: first those of other nodes' partitions, then published
    /// files, the oldest first.
    pub(super) fn step(&mut self, engine: &EngineSources, works: &BTreeMap<u16, ArchiveWork>) {
        // Without a source, these files are the only ones.
        if self.counted.is_some_and(|at| at.elapsed() < INTERVAL) || engine.files.source(0).is_none() {
            return;
        }
        self.counted = Some(Stopwatch::now());
        if let Err(error) = keep_within(engine, &*engine.files, &works.keys().copied().collect()) {
            tracing::warn!(%error, "files that other nodes can read, too, could not be removed from this disk yet");
        }
    }
}

fn keep_within(engine: &EngineSources, shared: &dyn SharedArchive, here: &BTreeSet<u16>) -> Result<(), ArchiveError> {
    let mut counted = Vec::new();
    for partition in 0..PARTITIONS {
        let files = cached_files(&archive_dir(&engine.settings.data_dir, partition))?;
        counted.extend(files.into_iter().map(|file| Counted { partition, file }));
    }
    let bytes: u64 = counted.iter().map(|counted| counted.file.bytes).sum();
    // Below the minimum, events are refused. Fetched files are removed before.
    let wanted_free = engine.settings.min_free_bytes.saturating_mul(2);
    let excess = bytes.saturating_sub(engine.settings.policy.cache_bytes).max(wanted_free.saturating_sub(engine.free_bytes()));
    if excess == 0 {
        return Ok(());
    }
    counted.sort_by_key(|counted| (here.contains(&counted.partition), counted.file.written));
    let (mut lists, mut removed, mut files) = (BTreeMap::new(), 0, 0_u64);
    for Counted { partition, file } in counted {
        if removed >= excess {
            break;
        }
        let of_project = || Published::of(engine, shared, partition, file.project);
        let is_published = !here.contains(&partition)
            || lists
                .entry(file.project)
                .or_insert_with(of_project)
                .as_ref()
                .is_ok_and(|published| published.0.contains(&file.name));
        if is_published {
            file.remove()?;
            removed += file.bytes;
            files += 1;
        }
    }
    tracing::info!(files, bytes = removed, "files that the other nodes can read, too, left this disk");
    Ok(())
}

/// The files of a project that are published under the same name as in its folder's list.
struct Published(BTreeSet<String>);

impl Published {
    fn of(engine: &EngineSources, shared: &dyn SharedArchive, partition: u16, project: ProjectId) -> Result<Self, ArchiveError> {
        let dir = archive_dir(&engine.settings.data_dir, partition).join(format!("project={project}"));
        let listed = Manifest::read(&dir, project)?;
        let listed: BTreeSet<ListedFile> = listed.iter().flat_map(Manifest::listed).collect();
        let published = shared.published_files(partition, project);
        Ok(Self(published.into_iter().filter(|file| listed.contains(file)).map(|file| file.name).collect()))
    }
}
