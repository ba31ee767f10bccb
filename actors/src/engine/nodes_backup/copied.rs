//! Copies the files of projects some of whose events may have been removed.
//!
//! A base can't be computed from the remaining events, and its positions are those of the project's
//! partition. So all events of such a project are sealed, and keep their positions. The backup's
//! log, with the events of all other projects, begins after these positions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant as Stopwatch};

use headcount_archive::{CATALOG_NAME, Catalog, ListedFile, MANIFEST_NAME, Manifest};
use headcount_common::partition_of;
use headcount_domain::{Position, ProjectId};
use headcount_storage::backup::{BackupTarget, BackupWriter};
use headcount_storage::files::{File, create_private_dir, remove_if_there};
use tokio::runtime::Handle;

use super::begin::NodesBackup;
use super::error::NodesBackupError;
use super::questions::{SealedList, SealedListQuestion};
use crate::backup::BackupFailure;
use crate::engine::subjects::ask_patiently;

const ARCHIVE_DIR: &str = "archive";
/// The number and minimum duration of attempts to read a list while its files are being replaced.
const ATTEMPTS: usize = 16;
const REPLACED_WITHIN: Duration = Duration::from_secs(10 * 60);
/// How long to wait until all events of a project are sealed, and the pause between two questions.
const SEALED_WITHIN: Duration = Duration::from_secs(10 * 60);
const PAUSE: Duration = Duration::from_millis(200);

/// The projects whose files a backup copies.
#[derive(Debug, Default)]
pub(super) struct CopiedProjects {
    /// The position up to which the files of each project have its events; 0 without events.
    pub(super) until: BTreeMap<ProjectId, Position>,
    /// The position of each project's last event, if it has any.
    last: BTreeMap<ProjectId, Position>,
    /// The positions up to which partitions are sealed, at or beyond the end of the backup.
    sealed: BTreeMap<u16, Position>,
}

/// A project's list, and the position where its files end.
struct CopiedList {
    manifest: Manifest,
    until: Position,
    last: Position,
}

impl CopiedProjects {
    /// The first position of the following log.
    pub(super) fn first_logged(&self) -> Position {
        self.until.values().max().map_or(1, |until| until + 1)
    }
}

impl NodesBackup {
    /// Copies the files of all these projects.
    pub(super) fn copy_projects<T: BackupTarget>(
        &self,
        writer: &mut BackupWriter<'_, T>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<CopiedProjects, NodesBackupError> {
        let mut copied = CopiedProjects::default();
        for project in &self.copied {
            let list = self.copy_project(*project, &mut copied.sealed, writer, is_over)?;
            copied.until.insert(*project, list.as_ref().map_or(0, |list| list.until));
            if let Some(list) = list {
                copied.last.insert(*project, list.last);
            }
        }
        if !copied.last.is_empty() {
            let catalog = Catalog::default().advanced(copied.first_logged() - 1, &copied.last, BTreeMap::new());
            let root = self.directory.path().join(ARCHIVE_DIR);
            catalog.write(&root).map_err(BackupFailure::from)?;
            add(writer, &format!("{ARCHIVE_DIR}/{CATALOG_NAME}"), &root.join(CATALOG_NAME))?;
        }
        Ok(copied)
    }

    /// Copies the files of a project. Does nothing if it has none, or is deleted.
    fn copy_project<T: BackupTarget>(
        &self,
        project: ProjectId,
        sealed: &mut BTreeMap<u16, Position>,
        writer: &mut BackupWriter<'_, T>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<CopiedList>, NodesBackupError> {
        // If a later list no longer names a file, it is left over, like replaced files on a server.
        let mut passed = BTreeSet::new();
        let name = format!("{ARCHIVE_DIR}/project={project}");
        let dir = self.directory.path().join(&name);
        create_private_dir(&dir).map_err(NodesBackupError::io("create", &dir))?;
        let began = Stopwatch::now();
        for attempt in 1.. {
            let Some(list) = self.list_of(project, sealed, is_over)? else { return Ok(None) };
            if self.copy_files(project, (&name, &list.manifest), &mut passed, writer, is_over)? {
                list.manifest.write(&dir).map_err(BackupFailure::from)?;
                add(writer, &format!("{name}/{MANIFEST_NAME}"), &dir.join(MANIFEST_NAME))?;
                return Ok(Some(list));
            }
            // During erasures, files are replaced one after the other.
            if attempt >= ATTEMPTS && began.elapsed() >= REPLACED_WITHIN {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Err(NodesBackupError::NotSealed(project))
    }

    /// Returns the list of a project whose files have all events up to the end of its partition;
    /// `None` if it has no events, or is deleted.
    fn list_of(
        &self,
        project: ProjectId,
        sealed: &mut BTreeMap<u16, Position>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<Option<CopiedList>, NodesBackupError> {
        let (partition, applied, began) = (partition_of(project), self.moment.applied, Stopwatch::now());
        let end = || self.ends.get(&partition).copied().unwrap_or(0);
        // The second project of a partition needs no further sealing.
        let until = sealed.get(&partition).copied().unwrap_or_else(end);
        let question = SealedListQuestion { partition, applied, project, until };
        // A deleted project gets no answer, and needs none.
        let is_in_vain = || self.engine.admission.is_deleted(project);
        loop {
            self.check_goes_on(0, is_over)?;
            let answer = ask_patiently(&|| is_over() || is_in_vain(), || self.engine.ask_about_partition(question.clone()));
            if is_in_vain() {
                return Ok(None);
            }
            match answer? {
                SealedList::NotYet if began.elapsed() > SEALED_WITHIN => return Err(NodesBackupError::NotSealed(project)),
                SealedList::NotYet => std::thread::sleep(PAUSE),
                SealedList::Nothing { until } => {
                    sealed.entry(partition).or_insert(until);
                    return Ok(None);
                }
                SealedList::Files { until, last, list } => {
                    sealed.entry(partition).or_insert(until);
                    let manifest = Manifest::from_bytes(&list, project).map_err(BackupFailure::from)?;
                    return Ok(Some(CopiedList { manifest, until, last }));
                }
            }
        }
    }

    /// Copies the files of a list that were not copied before. Returns `false` if one is replaced
    /// meanwhile.
    fn copy_files<T: BackupTarget>(
        &self,
        project: ProjectId,
        (name, manifest): (&str, &Manifest),
        passed: &mut BTreeSet<ListedFile>,
        writer: &mut BackupWriter<'_, T>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<bool, NodesBackupError> {
        let shared = self.engine.partitions.archiver.shared().ok_or(NodesBackupError::NotSealed(project))?;
        let source = shared.source(partition_of(project)).ok_or(NodesBackupError::NotSealed(project))?;
        for file in manifest.listed() {
            if passed.contains(&file) {
                continue;
            }
            self.check_goes_on(file.bytes, is_over)?;
            let path = self.directory.path().join(name).join(&file.name);
            match source.fetch(project, &file, &path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                fetched => fetched.map_err(NodesBackupError::io("fetch", &path))?,
            }
            add(writer, &format!("{name}/{}", file.name), &path)?;
            remove_if_there(&path).map_err(NodesBackupError::io("remove", &path))?;
            passed.insert(file);
        }
        Ok(true)
    }

    /// Checks that no event of a partition was removed while it was read, except events of copied
    /// projects.
    pub(super) fn check_has_all(&self, partition: u16, is_over: &dyn Fn() -> bool) -> Result<(), NodesBackupError> {
        let end = Handle::current().block_on(self.engine.end_of_partition(partition, self.moment.applied, is_over))?;
        let is_read = |project: &ProjectId| self.is_read(*project) && !self.engine.admission.is_deleted(*project);
        match end.with_bases.into_iter().find(is_read) {
            Some(project) => Err(NodesBackupError::Removed(project)),
            None => Ok(()),
        }
    }
}

/// Adds a file of the new directory.
fn add<T: BackupTarget>(writer: &mut BackupWriter<'_, T>, name: &str, path: &Path) -> Result<(), NodesBackupError> {
    let file = File::open(path).map_err(NodesBackupError::io("open", path))?;
    let bytes = file.len().map_err(NodesBackupError::io("inspect", path))?;
    writer.add(name, bytes, (&file).take(bytes))?;
    Ok(())
}
