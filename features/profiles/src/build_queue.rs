//! The queue of builds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headcount_actors::FeatureFigure;
use headcount_control::{BuildRun, BuildRunId, Registry};
use headcount_domain::OrganizationId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

/// The state of runs that is only in memory: the runs that are reading a website.
#[derive(Debug, Default)]
pub(crate) struct BuildQueue {
    /// Notified when a run may begin.
    pub(crate) work: Notify,
    stopped: AtomicBool,
    /// Read-locked while a result is saved.
    saving: RwLock<()>,
    running: Mutex<HashMap<BuildRunId, OrganizationId>>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl BuildQueue {
    /// Ends building.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }

    /// Waits for results being saved. After [`BuildQueue::stop`], no more are saved.
    pub(crate) fn wait(&self) {
        drop(self.saving.write());
    }

    /// Saves a result, unless building has ended.
    pub(crate) fn save<R>(&self, save: impl FnOnce() -> R) -> Option<R> {
        let _saving = self.saving.read();
        (!self.is_stopped()).then(save)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub(crate) fn is_running(&self, id: &BuildRunId) -> bool {
        self.running.lock().contains_key(id)
    }

    /// Takes the next run: the oldest one of the organizations with the fewest running. Returns
    /// `None` if `most` are running, or `most_of_one` of each organization that has more. A node
    /// only takes runs that `is_own` selects.
    pub(crate) fn take_next(
        &self,
        registry: &Registry,
        is_own: impl Fn(&BuildRun) -> bool,
        (most, most_of_one): (usize, usize),
    ) -> Option<BuildRun> {
        let mut running = self.running.lock();
        if running.len() >= most {
            return None;
        }
        let mut counts: HashMap<OrganizationId, usize> = HashMap::new();
        running.values().for_each(|organization| *counts.entry(*organization).or_default() += 1);
        let count = |organization| counts.get(&organization).copied().unwrap_or(0);
        let rank = |run: &BuildRun| {
            let count = count(run.organization);
            (count < most_of_one && is_own(run) && !running.contains_key(&run.id)).then_some((count, run.at))
        };
        let run = registry.next_build(rank)?;
        running.insert(run.id.clone(), run.organization);
        Some(run)
    }

    /// Records the end of a run, if it ended.
    pub(crate) fn end(&self, id: &BuildRunId, ended: Option<&BuildRun>) {
        self.running.lock().remove(id);
        match ended.and_then(|run| run.outcome.as_ref()) {
            Some(outcome) if outcome.result.is_ok() => self.succeeded.fetch_add(1, Ordering::Relaxed),
            Some(_) => self.failed.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
    }

    /// The figures for `/metrics`: builds since the start, and builds in progress.
    pub(crate) fn figures(&self) -> Vec<FeatureFigure> {
        let of = |name, help, value| FeatureFigure { name, help, value };
        let (succeeded, failed) = (self.succeeded.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        let running = self.running.lock().len() as u64;
        vec![
            of("headcount_profile_builds_succeeded_total", "Builds of company profiles that succeeded.", succeeded),
            of("headcount_profile_builds_failed_total", "Builds of company profiles that failed.", failed),
            of("headcount_profile_builds_running", "Websites that are being read for company profiles.", running),
        ]
    }
}
