//! The files of a data directory at one moment.

use std::path::Path;

use headcount_common::DOCUMENT_KINDS;
use headcount_control::Registry;
use headcount_domain::{Instant, Position};
use headcount_storage::backup::{BackupError, BackupManifest, BackupProject, BackupTarget, BackupWriter};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogHold, LogOptions};
use tokio::sync::OwnedSemaphorePermit;

use super::collector::{CollectedFile, Collector};
use super::error::BackupFailure;
use super::staging::Staging;
use crate::clock_guard::CLOCK_FILE;

/// The files of a data directory at one moment.
#[derive(Debug)]
pub struct BackupSnapshot {
    files: Vec<CollectedFile>,
    list: BackupManifest,
    _staging: Option<Staging>,
    /// The permit for the only backup of a running engine.
    _permit: Option<OwnedSemaphorePermit>,
    /// The lock of a directory that no process has open.
    _lock: Option<DirLock>,
}

impl BackupSnapshot {
    /// Takes the files of a data directory that an engine has open.
    pub(crate) fn of_engine(
        data_dir: &Path,
        log: LogHold,
        registry: &Registry,
        now: Instant,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self, BackupFailure> {
        let staging = Staging::create(data_dir)?;
        let mut collector = Collector::new(data_dir, Some(&staging));
        let position = collect(&mut collector, Some(&log), registry)?;
        let files = collector.files;
        drop(log);
        Ok(Self { files, list: list(registry, position, now)?, _staging: Some(staging), _permit: Some(permit), _lock: None })
    }

    /// Takes the files of a data directory that no process has open, and keeps it locked.
    ///
    /// # Errors
    /// Returns [`BackupFailure::InUse`] if a process has it open; any other but
    /// [`BackupFailure::Running`].
    pub fn of_directory(data_dir: &Path, now: Instant) -> Result<Self, BackupFailure> {
        let lock = DirLock::acquire(data_dir)?;
        Format::open(data_dir)?;
        let registry = Registry::open(data_dir)?;
        let log_dir = data_dir.join("log");
        // A directory without events may have no log, and needs none then.
        let log = match log_dir.exists() {
            true => Some(Log::open(log_dir, LogOptions { prepare_ahead: false, ..LogOptions::default() })?.0),
            false => None,
        };
        let mut collector = Collector::new(data_dir, None);
        let position = collect(&mut collector, log.map(|log| log.reader().hold()).as_ref(), &registry)?;
        let files = collector.files;
        Ok(Self { files, list: list(&registry, position, now)?, _staging: None, _permit: None, _lock: Some(lock) })
    }

    /// Writes the backup.
    ///
    /// # Errors
    /// The errors of reading the files and of `target`; [`BackupError::Damaged`] if a file of the
    /// archive differs from its list.
    pub fn write(self, target: &mut impl BackupTarget) -> Result<BackupManifest, BackupError> {
        let mut writer = BackupWriter::new(target, self.list);
        self.files.iter().try_for_each(|file| file.add_to(&mut writer))?;
        writer.finish()
    }
}

/// Takes all files. Returns the last position of the backup's events.
fn collect(collector: &mut Collector<'_>, log: Option<&LogHold>, registry: &Registry) -> Result<Position, BackupFailure> {
    collector.take("FORMAT", None, None)?;
    collector.take("keys/hash.key", None, None)?;
    collector.take(CLOCK_FILE, None, None)?;
    collector.copy("dead-letters.ndjson")?;
    collector.copy_imports()?;
    DOCUMENT_KINDS.iter().try_for_each(|kind| collector.take_documents(kind))?;
    collector.take_archive()?;
    let position = match log {
        Some(log) => {
            let log = log.files()?;
            collector.take_log(&log.files)?;
            log.last_position
        }
        None => 0,
    };
    registry.hold_files(|files| collector.take_log(files))??;
    Ok(position)
}

/// Returns the list of the backup, without files.
fn list(registry: &Registry, position: Position, now: Instant) -> Result<BackupManifest, BackupFailure> {
    Ok(BackupManifest::new(env!("CARGO_PKG_VERSION"), now.to_string(), projects(registry, position)?))
}

/// Returns all projects, each with its events up to a position.
pub(super) fn projects(registry: &Registry, position: Position) -> Result<Vec<BackupProject>, BackupFailure> {
    let mut projects = Vec::new();
    for organization in registry.organizations() {
        for project in registry.projects(organization.id)? {
            projects.push(BackupProject { project_id: project.id.to_string(), position });
        }
    }
    Ok(projects)
}
