//! Verifies a data directory that no process has open.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use headcount_common::PARTITIONS;
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_control::Registry;
use headcount_domain::{Fault, FaultKind, ProjectId};
use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions, ExternalIdsView};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogOptions};

use super::config::EngineConfig;
use super::derived::Derived;
use super::open::{check_reaches, store_options};
use super::verified_here::projects;
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::fault;
use crate::history::{History, LoggedEvents, PartitionArchives, Past, SealedEvents};
use crate::memory_budget::MemoryShares;
use crate::recompute::remove_scratch;
use crate::verify::{StoredPlaces, VerifiedRange, VerifyError, VerifyReport, VerifySources, verify};

/// Verifies a data directory that no process has open, like
/// [`Engine::verify`](super::Engine::verify). Changes nothing in it, except an unfinished write at
/// the end of the log.
///
/// # Errors
/// Returns a [`VerifyError`]: the data could not be checked.
pub fn verify_directory(config: &EngineConfig, quick: bool, stop: &Arc<AtomicBool>) -> Result<VerifyReport, VerifyError> {
    let dir = config.data_dir.clone();
    for name in ["FORMAT", "keys/hash.key"] {
        if !dir.join(name).exists() {
            return Err(VerifyError::Directory(format!("{} is not a data directory: it has no {name}", dir.display())));
        }
    }
    let _lock = DirLock::acquire(&dir).map_err(VerifyError::directory)?;
    let format = Format::open(&dir).map_err(VerifyError::directory)?;
    remove_scratch(&dir).map_err(VerifyError::directory)?;
    let secrets = Secrets::open(&dir.join(KEYS_DIR)).map_err(VerifyError::directory)?;
    let registry = Registry::open(&dir).map_err(VerifyError::directory)?;
    let dead = DeadLetters::open(&dir.join("dead-letters.ndjson")).map_err(VerifyError::directory)?;
    let (deleted, mut report) = (Arc::new(DeletedProjects::new(registry.deletions())), VerifyReport::default());
    let Some(sealed) = found(
        SealedEvents::open(&dir.join("archive"), Arc::clone(&deleted)).map_err(fault::of_archive),
        "archive/sealed.json",
        &mut report,
    )?
    else {
        return Ok(report);
    };
    let options = LogOptions { prepare_ahead: false, ..config.log.clone() };
    let log = match Log::open(dir.join("log"), options) {
        Ok((log, _)) => log,
        Err(error) if report.take_log_damage(&error) => return Ok(report),
        Err(error) => return Err(fault::of_log(error).into()),
    };
    check_reaches(log.last_position(), sealed.catalog().sealed_until()).map_err(VerifyError::directory)?;
    let derived = Derived { dir: &dir, options: store_options(config), hasher: secrets.hasher(), is_shared: false };
    let Some(store) = found(derived.open_as_it_is(format), "store/", &mut report)? else { return Ok(report) };
    let (archives, logged) = (Arc::new(PartitionArchives::new(Arc::new(sealed))), LoggedEvents::new(log.reader()));
    let erasures = Arc::new(Erasures::new(secrets.hasher().clone(), &registry.erasures()));
    let history: Arc<dyn History> = Arc::new(Past::new(Arc::clone(&archives), logged.clone(), erasures));
    let places = StoppedDirectory { registry: &registry, index_dir: derived.index_dir(), index: derived.index(format) };
    let sources = VerifySources {
        data_dir: dir.clone(),
        history,
        logged,
        archives,
        shared: None,
        ranges: vec![VerifiedRange { partitions: 0..PARTITIONS, is_held: Arc::new(|| true) }],
        dead: Arc::new(dead),
        deleted,
        hasher: secrets.hasher().clone(),
        store: store.map(Arc::new),
        places: &places,
        projects: projects(&registry)?,
        record_bytes: MemoryShares::of(config.memory_bytes).records,
        min_free_bytes: config.min_free_bytes,
        stop: Arc::clone(stop),
    };
    verify(&sources, quick)
}

/// Returns the opened value; damage goes to the report.
fn found<T>(opened: Result<T, Fault>, file: &str, report: &mut VerifyReport) -> Result<Option<T>, VerifyError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Fault { kind: FaultKind::DamagedArchive | FaultKind::DamagedStore, message }) => {
            report.is_damaged(file, message);
            Ok(None)
        }
        Err(fault) => Err(fault.into()),
    }
}

/// The derived data of a directory that no process has open.
struct StoppedDirectory<'d> {
    registry: &'d Registry,
    index_dir: PathBuf,
    index: ExternalIdsOptions,
}

impl StoredPlaces for StoppedDirectory<'_> {
    fn save(&self, _: &[u16]) -> Result<(), VerifyError> {
        Ok(())
    }

    fn stored_as(&self, partition: u16) -> Result<Option<u16>, VerifyError> {
        Ok(Some(partition))
    }

    fn begun_erasures(&self, _: u16) -> u64 {
        0
    }

    fn external_ids(&self, partition: u16) -> Result<Option<ExternalIdsView>, VerifyError> {
        let dir = self.index_dir.join(partition.to_string());
        if !dir.exists() {
            return Ok(None);
        }
        Ok(Some(ExternalIds::open(&dir, self.index).map_err(fault::of_index)?.view()))
    }

    fn exists(&self, project: ProjectId) -> bool {
        self.registry.policy(project).is_some()
    }

    fn note_damage(&self, _: Fault) {
        // The next start finds it, too. Nothing is changed here.
    }
}
