//! Verifies the partitions of this machine.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_common::PARTITIONS;
use headcount_control::{Registry, RegistryError};
use headcount_domain::{Fault, ProjectId};
use headcount_storage::external_ids::ExternalIdsView;
use tokio::sync::oneshot;

use super::handle::Engine;
use super::verifications::NodeReport;
use crate::memory_budget::recomputation_bytes;
use crate::shard::Shard;
use crate::verify::{StoredPlaces, VerifiedRange, VerifyError, VerifySources, verify};

/// How long a verification waits for checkpoints.
const CHECKPOINTS_TIMEOUT: Duration = Duration::from_secs(60);
const LOWEST_PRIORITY: i32 = 19;

impl Engine {
    /// Verifies the partitions of this machine on a new thread.
    pub(super) fn verify_here(
        &self,
        quick: bool,
        stop: &Arc<AtomicBool>,
    ) -> impl Future<Output = Result<NodeReport, VerifyError>> + use<> {
        let (engine, stop, (done, ended)) = (self.clone(), Arc::clone(stop), oneshot::channel());
        let work = move || {
            // On Linux this is the priority of the thread, and of the threads that it starts.
            if let Err(error) = rustix::process::setpriority_process(None, LOWEST_PRIORITY) {
                tracing::debug!(%error, "the verification runs at the usual priority");
            }
            drop(done.send(engine.verify_on_thread(quick, &stop)));
        };
        let spawned = std::thread::Builder::new().name("verify".into()).spawn(work);
        async move {
            spawned.map_err(|error| Fault::io(format!("could not start a thread: {error}")))?;
            ended.await.unwrap_or_else(|_| Err(Fault::defect("the verification panicked").into()))
        }
    }

    fn verify_on_thread(&self, quick: bool, stop: &Arc<AtomicBool>) -> Result<NodeReport, VerifyError> {
        let _permit = self.inner.verifications.begin(stop)?;
        let sources = VerifySources {
            data_dir: self.data_dir().to_owned(),
            history: Arc::clone(&self.scans.history),
            logged: self.questions.logged.clone(),
            archives: Arc::clone(&self.partitions.archives),
            shared: self.partitions.archiver.shared(),
            ranges: self.verified_ranges(),
            dead: Arc::clone(&self.partitions.dead),
            deleted: Arc::clone(&self.partitions.deleted),
            hasher: self.hasher().clone(),
            // Without a store, the engine is closing.
            store: Some(self.partitions.damage.store().ok_or(VerifyError::Stopped)?),
            places: self,
            projects: projects(self.registry())?,
            record_bytes: recomputation_bytes(self.inner.config.memory_bytes),
            min_free_bytes: self.inner.config.min_free_bytes,
            stop: Arc::clone(stop),
        };
        let report = verify(&sources, quick)?;
        let partitions = sources.ranges.iter().flat_map(|range| range.partitions.clone());
        let verified = partitions.filter(|number| !report.not_verified.contains_key(number)).collect();
        Ok(NodeReport { verified, report })
    }

    /// The partitions of this machine. If their log has one order, they have one archive.
    fn verified_ranges(&self) -> Vec<VerifiedRange> {
        if self.questions.logged.is_in_order() {
            return vec![self.verified_range(0..PARTITIONS)];
        }
        let here = (0..PARTITIONS).filter(|number| self.owners().is_here(*number));
        here.map(|number| self.verified_range(number..number + 1)).collect()
    }

    fn verified_range(&self, partitions: Range<u16>) -> VerifiedRange {
        let (archives, owners) = (Arc::clone(&self.partitions.archives), Arc::clone(&self.questions.owners));
        let given_up: Vec<u64> = partitions.clone().map(|number| archives.times_given_up(number)).collect();
        // A lease may expire for a moment before it is renewed. Work that checked it in that moment
        // has stopped.
        let (is_lost, numbers) = (AtomicBool::new(false), partitions.clone());
        let is_held = move || {
            let is_held = |(number, times): (u16, &u64)| owners.is_here(number) && archives.times_given_up(number) == *times;
            if !numbers.clone().zip(&given_up).all(is_held) {
                is_lost.store(true, Ordering::Relaxed);
            }
            !is_lost.load(Ordering::Relaxed)
        };
        VerifiedRange { partitions, is_held: Arc::new(is_held) }
    }

    fn is_rebuilding(&self, partition: u16) -> bool {
        self.questions.health.check(partition).is_err()
    }
}

impl StoredPlaces for Engine {
    fn save(&self, partitions: &[u16]) -> Result<(), VerifyError> {
        let applied = |number: &u16| Some((*number, self.questions.shards.applied_until_of(*number)?));
        let began = Stopwatch::now();
        self.save_until(partitions.iter().filter_map(applied).collect(), |left| {
            left.retain(|number, _| !self.is_rebuilding(*number));
            if self.inner.verifications.is_closed() {
                Err(VerifyError::Stopped)
            } else if began.elapsed() > CHECKPOINTS_TIMEOUT {
                Err(VerifyError::NotSaved)
            } else {
                Ok(())
            }
        })
    }

    fn stored_as(&self, partition: u16) -> Result<Option<u16>, VerifyError> {
        // History is read without erased identities, but a state may still have them.
        if self.is_rebuilding(partition) || !self.questions.erasures.stale(partition).is_empty() {
            return Ok(None);
        }
        let asked = self.questions.shards.ask_partition(partition, move |shard: &mut Shard| Ok(shard.stored_as(partition)));
        Ok(asked.map_err(|error| Fault::io(error.to_string()))?)
    }

    fn begun_erasures(&self, partition: u16) -> u64 {
        self.questions.erasures.begins_in(partition)
    }

    fn external_ids(&self, partition: u16) -> Result<Option<ExternalIdsView>, VerifyError> {
        let dir = self.data_dir().join("fingerprints").join(partition.to_string());
        if self.is_rebuilding(partition) || !dir.exists() {
            return Ok(None);
        }
        self.questions.shards.known_ids(partition).map(Some).ok_or(VerifyError::Rebuilding(partition))
    }

    fn exists(&self, project: ProjectId) -> bool {
        self.registry().policy(project).is_some()
    }

    fn note_damage(&self, fault: Fault) {
        self.partitions.damage.noted(fault);
    }
}

/// All projects.
pub(super) fn projects(registry: &Registry) -> Result<Vec<ProjectId>, VerifyError> {
    let mut projects = Vec::new();
    for organization in registry.organizations() {
        let found: Result<_, RegistryError> = registry.projects(organization.id);
        projects.extend(found.map_err(VerifyError::directory)?.into_iter().map(|project| project.id));
    }
    Ok(projects)
}
