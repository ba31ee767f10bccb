//! Verifications of a running engine, and of a data directory that no process has open.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::PARTITIONS;
use headcount_common::secrets::{KEYS_DIR, Secrets};
use headcount_control::{Registry, RegistryError};
use headcount_domain::fault::{Fault, FaultKind};
use headcount_domain::ids::ProjectId;
use headcount_domain::intake::event::Position;
use headcount_storage::external_ids::{ExternalIds, ExternalIdsOptions, ExternalIdsView};
use headcount_storage::format::Format;
use headcount_storage::lock::DirLock;
use headcount_storage::log::{Log, LogError, LogOptions};
use parking_lot::Mutex;

use super::config::EngineConfig;
use super::derived::Derived;
use super::handle::Engine;
use super::open::{check_reaches, store_options};
use crate::dead_letters::DeadLetters;
use crate::deleted_projects::DeletedProjects;
use crate::erasures::Erasures;
use crate::fault;
use crate::history::{History, LoggedEvents, PartitionArchives, Past, SealedEvents};
use crate::memory_budget::{MemoryShares, recomputation_bytes};
use crate::recompute::remove_scratch;
use crate::shard::Shard;
use crate::verify::{HeldCheck, StoredPlaces, VerifiedEvents, VerifyError, VerifyReport, VerifySources, verify};

/// How long a verification waits for checkpoints.
const CHECKPOINTS_TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// The time before checkpoints are requested again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    /// Recomputes the state of each project from its recorded events and compares it with the
    /// stored state, after saving the events recorded before the call. Recording continues
    /// meanwhile. `quick` checks only files. It ends early when `stop` is set.
    ///
    /// A node of a cluster verifies its own partitions. [`Engine::verify_everywhere`] verifies
    /// those of all nodes.
    ///
    /// Blocking; takes as long as replaying all events, on threads of the lowest priority.
    ///
    /// # Errors
    /// Returns [`VerifyError::Running`] while another verification is in progress; others if the
    /// data could not be checked.
    pub fn verify(&self, quick: bool, stop: &Arc<AtomicBool>) -> Result<VerifyReport, VerifyError> {
        Ok(self.verify_held(quick, stop)?.1)
    }

    /// Like [`Engine::verify`], and also returns the verified partitions.
    pub(super) fn verify_held(&self, quick: bool, stop: &Arc<AtomicBool>) -> Result<(BTreeSet<u16>, VerifyReport), VerifyError> {
        let _permit = self.inner.verifications.begin(stop)?;
        let partitions: Vec<u16> = (0..PARTITIONS).filter(|number| self.owners().is_here(*number)).collect();
        let events = match self.inner.local_log.as_ref().map(|log| log.reader().clone()) {
            Some(log) => VerifiedEvents::Together { log, sealed: Arc::clone(&self.inner.sealed) },
            None => VerifiedEvents::Apart {
                archives: Arc::clone(&self.inner.archives),
                shared: self.inner.archiver.shared(),
                is_held: self.held_check(&partitions),
            },
        };
        let sources = VerifySources {
            data_dir: self.data_dir().to_owned(),
            history: Arc::clone(&self.inner.history),
            events,
            partitions,
            dead: Arc::clone(&self.inner.dead),
            deleted: Arc::clone(&self.inner.deleted),
            hasher: self.hasher().clone(),
            // Without a store, the engine is closing.
            store: Some(self.inner.damage.store().ok_or(VerifyError::Stopped)?),
            places: self,
            projects: projects(self.registry())?,
            record_bytes: recomputation_bytes(self.inner.config.memory_bytes),
            min_free_bytes: self.inner.config.min_free_bytes,
            stop: Arc::clone(stop),
        };
        let report = std::thread::scope(|scope| {
            let work = || {
                // On Linux this is the priority of the thread, and of the threads that it starts.
                if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
                    tracing::debug!(%error, "the verification runs at the usual priority");
                }
                verify(&sources, quick)
            };
            let thread = std::thread::Builder::new().name("verify".into()).spawn_scoped(scope, work);
            let thread = thread.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?;
            thread.join().unwrap_or_else(|_| Err(Fault::defect("the verification panicked").into()))
        })?;
        let is_verified = |number: &u16| !report.not_verified.contains_key(number);
        let verified = sources.partitions.iter().copied().filter(is_verified).collect();
        Ok((verified, report))
    }

    /// Returns a check whether partitions have been on this machine ever since this call.
    fn held_check(&self, partitions: &[u16]) -> HeldCheck {
        let (archives, owners) = (Arc::clone(&self.inner.archives), Arc::clone(&self.questions.owners));
        let given_up: BTreeMap<u16, u64> = partitions.iter().map(|number| (*number, archives.times_given_up(*number))).collect();
        // A lease may expire for a moment before it is renewed. Work that checked it in that moment
        // has stopped.
        let lost = Mutex::new(BTreeSet::new());
        Arc::new(move |number| {
            let is_unchanged = || given_up.get(&number).is_some_and(|times| *times == archives.times_given_up(number));
            let mut lost = lost.lock();
            if !(owners.is_here(number) && is_unchanged()) {
                lost.insert(number);
            }
            !lost.contains(&number)
        })
    }

    /// Waits until all applied events of partitions are saved, unless these are given up or
    /// rebuilt.
    fn save_partitions(&self, partitions: &[u16]) -> Result<(), VerifyError> {
        let shards = &self.questions.shards;
        let applied = |number: &u16| Some((*number, shards.applied_until_of(*number)?));
        let mut waiting: BTreeMap<u16, Position> = partitions.iter().filter_map(applied).collect();
        self.save_until(&mut || {
            waiting.retain(|number, until| {
                let is_saved = shards.durable_until_of(*number).is_some_and(|durable| durable >= *until);
                !is_saved && !self.is_rebuilding(*number)
            });
            waiting.is_empty()
        })
    }

    /// Requests checkpoints until `is_saved`.
    fn save_until(&self, is_saved: &mut dyn FnMut() -> bool) -> Result<(), VerifyError> {
        let began = Stopwatch::now();
        let mut asked: Option<Stopwatch> = None;
        loop {
            // Once is not enough: a round does not save events that are still queued when it
            // begins.
            if asked.is_none_or(|at| at.elapsed() >= ASK_AGAIN) {
                self.questions.shards.want_checkpoints();
                asked = Some(Stopwatch::now());
            }
            if is_saved() {
                return Ok(());
            }
            if self.inner.verifications.is_closed() {
                return Err(VerifyError::Stopped);
            }
            if began.elapsed() > CHECKPOINTS_TIMEOUT {
                return Err(VerifyError::NotSaved);
            }
            std::thread::sleep(POLL);
        }
    }

    fn is_rebuilding(&self, partition: u16) -> bool {
        self.inner.admission.health.check(partition).is_err()
    }
}

const LOWEST_PRIORITY: i32 = 19;

impl StoredPlaces for Engine {
    fn save(&self, partitions: &[u16]) -> Result<(), VerifyError> {
        if !self.owners().is_alone() {
            return self.save_partitions(partitions);
        }
        let target = self.inner.delivered.load(Ordering::Acquire);
        self.save_until(&mut || {
            let until = self.questions.shards.durable_until(self.inner.delivered.load(Ordering::Acquire));
            // A partition that is being rebuilt saves nothing. The others have saved before, or
            // their last saved state is compared.
            until.is_some_and(|until| until >= target) || partitions.iter().any(|number| self.is_rebuilding(*number))
        })
    }

    fn stored_as(&self, partition: u16) -> Result<Option<u16>, VerifyError> {
        // History is read without erased identities, but a state may still have them.
        if self.is_rebuilding(partition) || !self.inner.erasures.stale(partition).is_empty() {
            return Ok(None);
        }
        let asked = self.questions.shards.ask_partition(partition, move |shard: &mut Shard| Ok(shard.stored_as(partition)));
        Ok(asked.map_err(|error| Fault::io(error.to_string()))?)
    }

    fn begun_erasures(&self, partition: u16) -> u64 {
        self.inner.erasures.begins_in(partition)
    }

    fn external_ids(&self, partition: u16) -> Result<Option<ExternalIdsView>, Fault> {
        let dir = self.data_dir().join("fingerprints").join(partition.to_string());
        if self.is_rebuilding(partition) || !dir.exists() {
            return Ok(None);
        }
        match self.questions.shards.known_ids(partition) {
            // The whole verification does not fail because of one partition of a node.
            None if !self.owners().is_alone() => Err(Fault::io("the external ids can't be read now")),
            known => Ok(known),
        }
    }

    fn exists(&self, project: ProjectId) -> bool {
        self.registry().policy(project).is_some()
    }

    fn note_damage(&self, fault: Fault) {
        self.inner.damage.noted(fault);
    }
}

/// Verifies a data directory that no process has open, like [`Engine::verify`]. Changes nothing in
/// it, except an unfinished write at the end of the log.
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
        Err(LogError::Damaged { segment, offset, reason }) => {
            report.is_damaged(format!("log/{segment:020}.seg"), format!("damaged at byte {offset}: {reason}"));
            return Ok(report);
        }
        Err(error) => return Err(fault::of_log(error).into()),
    };
    check_reaches(log.last_position(), sealed.catalog().sealed_until()).map_err(VerifyError::directory)?;
    let derived = Derived { dir: &dir, options: store_options(config), hasher: secrets.hasher(), is_shared: false };
    let Some(store) = found(derived.open_as_it_is(format), "store/", &mut report)? else { return Ok(report) };
    let sealed = Arc::new(sealed);
    let erasures = Arc::new(Erasures::new(secrets.hasher().clone(), registry.erasures()));
    let history: Arc<dyn History> =
        Arc::new(Past::new(Arc::new(PartitionArchives::new(Arc::clone(&sealed))), LoggedEvents::new(log.reader()), erasures));
    let places = StoppedDirectory { registry: &registry, index_dir: derived.index_dir(), index: derived.index(format) };
    let sources = VerifySources {
        data_dir: dir.clone(),
        history,
        events: VerifiedEvents::Together { log: log.reader(), sealed },
        partitions: (0..PARTITIONS).collect(),
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

    fn external_ids(&self, partition: u16) -> Result<Option<ExternalIdsView>, Fault> {
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

fn projects(registry: &Registry) -> Result<Vec<ProjectId>, VerifyError> {
    let mut projects = Vec::new();
    for organization in registry.organizations() {
        let found: Result<_, RegistryError> = registry.projects(organization.id);
        projects.extend(found.map_err(VerifyError::directory)?.into_iter().map(|project| project.id));
    }
    Ok(projects)
}
