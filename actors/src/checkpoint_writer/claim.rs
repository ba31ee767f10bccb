//! Who decides whether a piece of work is still wanted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Shared by who asked for a piece of work and the thread that does it.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    stop: AtomicBool,
    running: Mutex<bool>,
    idle: Condvar,
}

/// Work that is under way; it is over when this is dropped.
pub(super) struct Running<'c>(&'c Claim);

impl Claim {
    /// Begins the work. `None`: it was taken back.
    pub(super) fn begin(&self) -> Option<Running<'_>> {
        let mut running = self.lock();
        if self.stop.load(Ordering::Acquire) {
            return None;
        }
        *running = true;
        Some(Running(self))
    }

    /// Set when the work should end early.
    pub(super) fn stopped(&self) -> &AtomicBool {
        &self.stop
    }

    /// Takes the work back without waiting for its end.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Takes the work back: it does not begin any more, and if it is under way, this waits for its end. It never waits for
    /// the work of others.
    pub(crate) fn take_back(&self) {
        self.stop();
        let mut running = self.lock();
        while *running {
            running = self.idle.wait(running).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.idle.notify_all();
    }
}
