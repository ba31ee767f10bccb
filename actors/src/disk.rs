//! Whether the disk has room: asked before events are taken, so that the log is never cut off half-way.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant as Stopwatch};

/// How long an answer of the operating system is good for.
const FRESH_FOR: Duration = Duration::from_millis(500);

/// Watches the free space of one file system.
#[derive(Debug)]
pub(crate) struct DiskGuard {
    path: PathBuf,
    min_free_bytes: u64,
    began: Stopwatch,
    /// Milliseconds since `began` at which it was asked last.
    asked_ms: AtomicU64,
    free_bytes: AtomicU64,
}

impl DiskGuard {
    pub(crate) fn new(path: &Path, min_free_bytes: u64) -> Self {
        let free_bytes = AtomicU64::new(ask(path));
        Self { path: path.to_owned(), min_free_bytes, began: Stopwatch::now(), asked_ms: AtomicU64::new(0), free_bytes }
    }

    /// Free space in bytes, at most half a second old.
    pub(crate) fn free_bytes(&self) -> u64 {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let asked_ms = self.asked_ms.load(Ordering::Relaxed);
        let stale = now_ms.saturating_sub(asked_ms) >= FRESH_FOR.as_millis().try_into().unwrap_or(u64::MAX);
        if stale && self.asked_ms.compare_exchange(asked_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.free_bytes.store(ask(&self.path), Ordering::Relaxed);
        }
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Whether events can be taken.
    pub(crate) fn has_space(&self) -> bool {
        self.free_bytes() >= self.min_free_bytes
    }
}

/// What the operating system says; where it says nothing, the log's own errors have to do.
fn ask(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}
