//! The exports that are being made: a few at a time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use headcount_control::PrivacyRequestId;
use headcount_domain::OrganizationId;
use parking_lot::{Mutex, MutexGuard};

use super::request::PrivacyRequest;

/// How many exports are made at once, each of another organization.
const MAX_RUNNING: usize = 2;

/// The exports that are being made.
#[derive(Debug, Default)]
pub(crate) struct ExportJobs {
    state: Mutex<JobsState>,
    /// Held while an artifact is completed, and while those of an erased identity are withdrawn:
    /// the later of both sees the earlier.
    publishing: Mutex<()>,
}

#[derive(Debug, Default)]
struct JobsState {
    running: HashMap<PrivacyRequestId, (OrganizationId, Arc<AtomicBool>)>,
    /// Those that this process has begun.
    begun: HashSet<PrivacyRequestId>,
    not_before: HashMap<PrivacyRequestId, Stopwatch>,
}

impl ExportJobs {
    /// Takes a place for an export. Returns what ends it, and whether it is the first attempt of
    /// this process; `None` if it has to wait, or is being made.
    pub(crate) fn begin(&self, request: &PrivacyRequest) -> Option<(Arc<AtomicBool>, bool)> {
        let mut state = self.state.lock();
        let has_turn = state.running.len() < MAX_RUNNING
            && state.running.values().all(|(organization, _)| *organization != request.organization)
            && state.not_before.get(&request.id).is_none_or(|at| Stopwatch::now() >= *at);
        if !has_turn {
            return None;
        }
        let is_over = Arc::<AtomicBool>::default();
        state.running.insert(request.id.clone(), (request.organization, Arc::clone(&is_over)));
        let is_first = state.begun.insert(request.id.clone());
        Some((is_over, is_first))
    }

    /// Has the next attempt wait.
    pub(crate) fn pause(&self, id: &PrivacyRequestId, pause: Duration) {
        self.state.lock().not_before.insert(id.clone(), Stopwatch::now() + pause);
    }

    /// Gives the place of an export back. Forgets it unless it is open.
    pub(crate) fn end(&self, id: &PrivacyRequestId, is_open: bool) {
        let mut state = self.state.lock();
        state.running.remove(id);
        if !is_open {
            state.begun.remove(id);
            state.not_before.remove(id);
        }
    }

    /// Ends those of the exports that are being made.
    pub(crate) fn stop(&self, is_meant: impl Fn(&PrivacyRequestId, OrganizationId) -> bool) {
        let state = self.state.lock();
        let meant = state.running.iter().filter(|(id, (organization, _))| is_meant(id, *organization));
        meant.for_each(|(_, (_, is_over))| is_over.store(true, Ordering::Release));
    }

    /// Whether no export is being made.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.lock().running.is_empty()
    }

    /// Whether an export is being made.
    pub(crate) fn is_running(&self, id: &PrivacyRequestId) -> bool {
        self.state.lock().running.contains_key(id)
    }

    /// Has nothing completed or withdrawn while the result exists.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.publishing.lock()
    }
}
