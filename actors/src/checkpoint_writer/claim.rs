//! Cancelling jobs of the checkpoint writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use headcount_storage::keyspace::PartitionId;
use headcount_storage::store::Store;
use parking_lot::{Condvar, Mutex};

/// Shared by the shard that submitted a job, or has a state replaced, and the thread that performs
/// the job.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    stop: AtomicBool,
    running: Mutex<bool>,
    idle: Condvar,
}

/// A job in progress. Dropping it marks the end of the job.
pub(crate) struct Running<'c>(&'c Claim);

impl Claim {
    /// Begins the job. Returns `None` if it was cancelled.
    pub(crate) fn begin(&self) -> Option<Running<'_>> {
        let mut running = self.running.lock();
        if self.stop.load(Ordering::Acquire) {
            return None;
        }
        *running = true;
        Some(Running(self))
    }

    /// Set when the job should end early.
    pub(super) fn stopped(&self) -> &AtomicBool {
        &self.stop
    }

    /// Cancels the job without waiting for its end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Cancels the job. It will not begin any more; if it is in progress, this waits for its end.
    /// Never waits for other jobs.
    pub(crate) fn cancel_and_wait(&self) {
        self.stop();
        let mut running = self.running.lock();
        self.idle.wait_while(&mut running, |running| *running);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.running.lock() = false;
        self.0.idle.notify_all();
    }
}

/// Cancelled jobs of a partition.
#[must_use = "until it was waited for, the jobs may go on"]
#[derive(Default, Clone)]
pub(crate) struct CancelledJobs {
    pub(crate) claims: Vec<Arc<Claim>>,
    /// The parts of the store that a checkpoint was submitted for.
    pub(crate) stored_in: Vec<PartitionId>,
}

impl CancelledJobs {
    /// Waits until the jobs are over, and makes the store decide whether a failed commit counts,
    /// since the state to open next depends on it. Never waits for other jobs.
    pub(crate) fn wait(&self, store: &dyn Store) {
        self.claims.iter().for_each(|claim| claim.cancel_and_wait());
        for partition in &self.stored_in {
            if let Err(error) = store.recover(*partition) {
                tracing::warn!(%partition, %error, "a checkpoint that was taken back is still in doubt");
            }
        }
    }

    /// Adds other cancelled jobs.
    pub(crate) fn extend(&mut self, other: Self) {
        self.claims.extend(other.claims);
        self.stored_in.extend(other.stored_in);
    }
}
