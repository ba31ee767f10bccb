//! Allows one verification at a time, and ends it when the engine closes. Also keeps the one that
//! another node has requested.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::verify::{VerifyError, VerifyReport};

/// How long a verification continues after the other node's last question, and how long its result
/// is kept.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The progress of a verification for another node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum VerifyProgress {
    UnderWay,
    Done(NodeReport),
    /// The verification failed for this reason.
    Failed(String),
    /// The verification is unknown.
    Unknown,
}

/// The result of a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct NodeReport {
    pub(super) verified: BTreeSet<u16>,
    pub(super) report: VerifyReport,
}

/// The verification that another node has requested.
#[derive(Debug)]
pub(super) struct RequestedVerification {
    pub(super) run: u64,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) asked: Stopwatch,
    /// The result; `None` while it is in progress.
    pub(super) ended: Option<VerifyProgress>,
}

impl RequestedVerification {
    /// Whether the other node has stopped asking for it.
    pub(super) fn is_forgotten(&self) -> bool {
        self.asked.elapsed() > FORGOTTEN_AFTER
    }
}

/// The permit for the verification of an engine.
#[derive(Debug)]
pub(super) struct Verifications {
    permits: Arc<Semaphore>,
    /// Stops the verification in progress.
    stop: Mutex<Arc<AtomicBool>>,
    is_closed: AtomicBool,
    /// The verification that another node has requested.
    requested: Mutex<Option<RequestedVerification>>,
}

impl Default for Verifications {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(1)),
            stop: Mutex::default(),
            is_closed: AtomicBool::new(false),
            requested: Mutex::default(),
        }
    }
}

impl Verifications {
    /// Begins a verification that ends when `stop` is set.
    pub(super) fn begin(&self, stop: &Arc<AtomicBool>) -> Result<OwnedSemaphorePermit, VerifyError> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| VerifyError::Running)?;
        *self.stop.lock() = Arc::clone(stop);
        if self.is_closed() { Err(VerifyError::Stopped) } else { Ok(permit) }
    }

    /// Begins a requested verification, which ends when `stop` is set. Returns its progress if it
    /// has begun or can't begin.
    pub(super) fn request(&self, run: u64, stop: &Arc<AtomicBool>) -> Option<VerifyProgress> {
        let mut requested = self.requested.lock();
        match &*requested {
            Some(known) if known.run == run => return Some(VerifyProgress::UnderWay),
            Some(known) if known.ended.is_none() => return Some(VerifyProgress::Failed(VerifyError::Running.to_string())),
            _ => {}
        }
        *requested = Some(RequestedVerification { run, stop: Arc::clone(stop), asked: Stopwatch::now(), ended: None });
        None
    }

    /// The requested verification with this number, if it is the current one.
    pub(super) fn requested(&self, run: u64) -> Option<MappedMutexGuard<'_, RequestedVerification>> {
        let is_it = |requested: &&mut RequestedVerification| requested.run == run;
        MutexGuard::try_map(self.requested.lock(), |requested| requested.as_mut().filter(is_it)).ok()
    }

    /// Ends and forgets the requested verification with this number if `is_over`.
    pub(super) fn end(&self, run: u64, is_over: impl FnOnce(&RequestedVerification) -> bool) {
        let mut requested = self.requested.lock();
        if let Some(ended) = requested.take_if(|requested| requested.run == run && is_over(requested)) {
            ended.stop.store(true, Ordering::Relaxed);
        }
    }

    /// Whether no more verifications can begin.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Stops the verification in progress, allows no more, and waits until it has ended.
    pub(super) async fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.stop.lock().store(true, Ordering::Relaxed);
        let _ = self.permits.acquire().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_runs_at_a_time_and_none_after_the_end() {
        let verifications = Arc::<Verifications>::default();
        let stop = Arc::<AtomicBool>::default();
        let permit = verifications.begin(&stop).unwrap();
        assert!(matches!(verifications.begin(&Arc::default()), Err(VerifyError::Running)));
        assert!(!stop.load(Ordering::Relaxed));
        let closing = tokio::spawn({
            let verifications = Arc::clone(&verifications);
            async move { verifications.close().await }
        });
        tokio::task::yield_now().await;
        assert!(stop.load(Ordering::Relaxed) && !closing.is_finished(), "it waits for the one that runs");
        drop(permit);
        closing.await.unwrap();
        assert!(matches!(verifications.begin(&Arc::default()), Err(VerifyError::Stopped)));
    }
}
