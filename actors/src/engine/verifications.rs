//! Allows one verification at a time, and ends it when the engine closes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::foreign_verification::ForeignVerification;
use crate::verify::VerifyError;

/// The permit for the verification of an engine.
#[derive(Debug)]
pub(super) struct Verifications {
    permits: Arc<Semaphore>,
    /// Stops the verification in progress.
    stop: Mutex<Arc<AtomicBool>>,
    is_closed: AtomicBool,
    /// The verification for another node.
    pub(super) foreign: Mutex<Option<ForeignVerification>>,
}

impl Default for Verifications {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(1)),
            stop: Mutex::default(),
            is_closed: AtomicBool::new(false),
            foreign: Mutex::default(),
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

    /// Whether the verification for another node has this number.
    pub(super) fn is_foreign(&self, run: u64) -> bool {
        self.foreign.lock().as_ref().is_some_and(|foreign| foreign.run == run)
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
