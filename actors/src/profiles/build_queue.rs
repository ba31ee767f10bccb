//! Which builds are running.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use headcount_control::{BuildRun, BuildRunId, Registry};
use headcount_domain::ids::OrganizationId;
use parking_lot::{Mutex, RwLock};
use tokio::sync::Notify;

/// Builds since the start, and those under way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildFigures {
    /// How many succeeded.
    pub succeeded: u64,
    /// How many failed.
    pub failed: u64,
    /// How many are reading a website.
    pub running: usize,
}

/// What of the runs is in memory alone: which are reading a website.
#[derive(Debug, Default)]
pub(crate) struct BuildQueue {
    /// Notified when a run may begin.
    pub(crate) work: Notify,
    stopped: AtomicBool,
    /// Read while a result is saved.
    saving: RwLock<()>,
    running: Mutex<HashMap<BuildRunId, OrganizationId>>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl BuildQueue {
    /// Ends the building.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.work.notify_one();
    }

    /// Waits for the results that are being saved. After [`BuildQueue::stop`], no more are saved.
    pub(crate) fn wait(&self) {
        drop(self.saving.write());
    }

    /// Saves a result, unless the building has ended.
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

    /// Takes the run that is next: of the organizations with the fewest that are running, the oldest. `None` if `most` are running, or `most_of_one` of each
    /// organization that has more.
    /// A member works on those that `is_own` alone.
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

    /// Notes the end of a run, if it ended.
    pub(crate) fn end(&self, id: &BuildRunId, ended: Option<&BuildRun>) {
        self.running.lock().remove(id);
        match ended.and_then(|run| run.outcome.as_ref()) {
            Some(outcome) if outcome.result.is_ok() => self.succeeded.fetch_add(1, Ordering::Relaxed),
            Some(_) => self.failed.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
    }

    pub(crate) fn figures(&self) -> BuildFigures {
        BuildFigures {
            succeeded: self.succeeded.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            running: self.running.lock().len(),
        }
    }
}
