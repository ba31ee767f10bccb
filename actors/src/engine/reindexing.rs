//! Counts the days of an organization again in another timezone.
//!
//! The day of an event is decided when it is recorded, and all figures use it. So reindexing seals
//! all events, rewrites the files of the archive with other days, and discards the store. The next
//! start rebuilds it. From the first change to the last, a file in the data directory records the
//! reindexing, and nothing else opens the directory. An attempt may end anywhere; the next one
//! repeats it.

use std::path::Path;

use headcount_archive::{Archive, ArchiveError, Catalog, MAX_FILE_ROWS, SealOptions, replace_file, rewrite_rows};
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_control::{Author, Registry, RegistryError};
use headcount_domain::{OrganizationId, ProjectId, Timezone};
use headcount_storage::files::{self, PRIVATE_FILE, write_atomically};
use headcount_storage::format::{Format, REINDEXING_NAME};
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogOptions};
use thiserror::Error;

use super::config::{EngineConfig, OpenError};
use super::derived::Derived;
use super::handle::Engine;
use super::open::store_options;
use crate::archiver::writer_options;
use crate::fault;

/// The reason why days were not counted again.
#[derive(Debug, Error)]
pub enum ReindexError {
    /// The data directory can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A part of it can't be used or changed.
    #[error("{0}; nothing was removed")]
    Directory(String),
    /// The project no longer keeps the events behind its figures of early days.
    #[error("{0} has figures of days whose events it no longer keeps, which can't be counted in another timezone")]
    LacksEvents(ProjectId),
    /// The reindexing of another organization was interrupted.
    #[error("the reindex {0:?} was interrupted: finish it first")]
    Other(String),
    /// The organization can't be changed.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl ReindexError {
    fn of(error: impl std::fmt::Display) -> Self {
        Self::Directory(error.to_string())
    }
}

impl From<ArchiveError> for ReindexError {
    fn from(error: ArchiveError) -> Self {
        Self::of(fault::of_archive(error).message)
    }
}

/// The result of counting days again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reindexed {
    /// The number of rewritten files of the archive.
    pub files: u64,
    /// The number of their events.
    pub events: u64,
}

/// Changes the days of `organization` to those of `timezone`. The directory must be closed. The
/// next start takes as long as a rebuild.
///
/// # Errors
/// Returns a [`ReindexError`]. If some days are already counted in the new timezone, nothing opens
/// the directory until this call is repeated.
pub async fn reindex(
    config: EngineConfig,
    organization: OrganizationId,
    timezone: Timezone,
    by: Author,
) -> Result<Reindexed, ReindexError> {
    let dir = config.data_dir.clone();
    if !dir.join(REINDEXING_NAME).exists() && !prepare(config.clone(), organization, timezone).await? {
        return Ok(Reindexed::default());
    }
    let lock = DirLock::acquire(&dir).map_err(ReindexError::of)?;
    let format = Format::open_for_reindex(&dir).map_err(ReindexError::of)?;
    let secrets = Secrets::open(&dir.join(KEYS_DIR)).map_err(ReindexError::of)?;
    let registry = Registry::open(&dir)?;
    let sealed = Archives::open(&config, &registry, organization)?;
    begin(&dir, organization, timezone)?;
    let reindexed = sealed.rewrite(timezone)?;
    let derived = Derived { dir: &dir, options: store_options(&config), hasher: secrets.hasher(), is_shared: false };
    derived.discard(format, "days are counted in another timezone")?;
    registry.set_reindexed_timezone(organization, timezone, by)?;
    files::remove_file(&dir.join(REINDEXING_NAME)).and_then(|()| files::sync_dir(&dir)).map_err(ReindexError::of)?;
    drop(lock);
    Ok(reindexed)
}

/// Seals all events. Returns whether there is anything to do.
async fn prepare(config: EngineConfig, organization: OrganizationId, timezone: Timezone) -> Result<bool, ReindexError> {
    let engine = Engine::open(config)?;
    let ready = seal(&engine, organization, timezone).await;
    engine.close().await;
    ready
}

async fn seal(engine: &Engine, organization: OrganizationId, timezone: Timezone) -> Result<bool, ReindexError> {
    if engine.registry().organization(organization)?.timezone == timezone {
        return Ok(false);
    }
    for project in engine.registry().projects(organization)? {
        if engine.floor(project.id).await.map_err(ReindexError::of)?.is_some() {
            return Err(ReindexError::LacksEvents(project.id));
        }
    }
    let sealed = engine.seal_archive().await.map_err(ReindexError::of)?;
    match sealed.waiting.first() {
        Some(project) => Err(ReindexError::Directory(format!("the list of files of {project} is damaged"))),
        None => Ok(true),
    }
}

/// Records the reindexing. A former attempt may have been for another timezone.
fn begin(dir: &Path, organization: OrganizationId, timezone: Timezone) -> Result<(), ReindexError> {
    let path = dir.join(REINDEXING_NAME);
    let found = files::read_if_there(&path).map_err(ReindexError::of)?;
    let found = found.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    if let Some(found) = found.filter(|found| !found.starts_with(&organization.to_string())) {
        return Err(ReindexError::Other(found));
    }
    let text = format!("{organization} {}\n", timezone.name());
    write_atomically(&path, text.as_bytes(), PRIVATE_FILE).map_err(ReindexError::of)
}

/// The archives of an organization.
struct Archives {
    archives: Vec<Archive>,
    options: SealOptions,
}

impl Archives {
    /// Opens the archives. All their files were read before, and the log has no events that they
    /// lack.
    fn open(config: &EngineConfig, registry: &Registry, organization: OrganizationId) -> Result<Self, ReindexError> {
        let dir = &config.data_dir;
        let catalog = Catalog::read(&dir.join("archive"))?;
        let (log, _) = Log::open(dir.join("log"), LogOptions { prepare_ahead: false, ..config.log.clone() })
            .map_err(|error| ReindexError::of(fault::of_log(error).message))?;
        if log.last_position() > catalog.sealed_until() || !catalog.waiting().is_empty() {
            return Err(ReindexError::Directory("there are events that are not sealed".to_owned()));
        }
        let mut archives = Vec::new();
        for project in registry.projects(organization)? {
            if catalog.last_of(project.id).is_none() {
                continue;
            }
            let archive = Archive::existing(&dir.join("archive"), project.id)?;
            if archive.base()?.is_some() {
                return Err(ReindexError::LacksEvents(project.id));
            }
            if let Some(damaged) = archive.damaged_files(true)?.into_iter().next() {
                return Err(damaged.into());
            }
            archives.push(archive);
        }
        let writer = writer_options(config.memory_bytes, config.archive.level);
        Ok(Self { archives, options: SealOptions { writer, file_rows: config.archive.file_rows.unwrap_or(MAX_FILE_ROWS) } })
    }

    /// Rewrites all files, one after another.
    fn rewrite(self, timezone: Timezone) -> Result<Reindexed, ReindexError> {
        let mut done = Reindexed::default();
        for mut archive in self.archives {
            for entry in archive.manifest().files().to_vec() {
                let mut events = 0;
                let rewritten = rewrite_rows(&archive, &entry, self.options, &mut |mut row| {
                    row.event.day = timezone.day_of(row.event.time);
                    events += 1;
                    Ok(Some(row))
                })?;
                replace_file(&mut archive, &entry, &rewritten)?;
                archive.remove_left_overs()?;
                (done.files, done.events) = (done.files + 1, done.events + events);
            }
        }
        Ok(done)
    }
}
