//! Checks the free space of the disk before events are taken, so that a full disk never cuts the
//! log off.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant as Stopwatch};

use crate::free_space::free_bytes;

/// How long an answer of the operating system is valid.
const FRESH_FOR: Duration = Duration::from_millis(500);

/// Watches the free space of one file system.
#[derive(Debug)]
pub(crate) struct DiskGuard {
    path: PathBuf,
    min_free_bytes: u64,
    began: Stopwatch,
    /// The time of the last check, in milliseconds since `began`.
    asked_ms: AtomicU64,
    free_bytes: AtomicU64,
    /// Whether the last check found too little space.
    is_low: AtomicBool,
}

impl DiskGuard {
    pub(crate) fn new(path: &Path, min_free_bytes: u64) -> Self {
        let guard = Self {
            path: path.to_owned(),
            min_free_bytes,
            began: Stopwatch::now(),
            asked_ms: AtomicU64::new(0),
            free_bytes: AtomicU64::new(u64::MAX),
            is_low: AtomicBool::new(false),
        };
        guard.note(free_bytes(path));
        guard
    }

    /// Whether there is room for `bytes` of what gives way to events: it leaves twice of what these
    /// need, so that it alone never makes the disk too full for them.
    pub(crate) fn has_spare(&self, bytes: u64) -> bool {
        self.free_bytes() >= self.min_free_bytes.saturating_mul(2).saturating_add(bytes)
    }

    /// Returns the free space in bytes, at most half a second old.
    pub(crate) fn free_bytes(&self) -> u64 {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let asked_ms = self.asked_ms.load(Ordering::Relaxed);
        let stale = now_ms.saturating_sub(asked_ms) >= FRESH_FOR.as_millis().try_into().unwrap_or(u64::MAX);
        if stale && self.asked_ms.compare_exchange(asked_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            self.note(free_bytes(&self.path));
        }
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Records the free space. Logs when it falls below the minimum or recovers, and returns
    /// whether it did.
    fn note(&self, free_bytes: u64) -> bool {
        self.free_bytes.store(free_bytes, Ordering::Relaxed);
        let is_low = free_bytes < self.min_free_bytes;
        if self.is_low.swap(is_low, Ordering::Relaxed) == is_low {
            return false;
        }
        let min_free_bytes = self.min_free_bytes;
        if is_low {
            tracing::error!(free_bytes, min_free_bytes, "the disk is nearly full: no event is taken until there is room");
        } else {
            tracing::info!(free_bytes, min_free_bytes, "the disk has room again: events are taken");
        }
        true
    }

    /// Whether events can be taken.
    pub(crate) fn has_space(&self) -> bool {
        self.free_bytes() >= self.min_free_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nearly_full_disk_is_logged_once_and_so_is_its_end() {
        let guard = DiskGuard::new(Path::new("."), 1);
        assert!(!guard.note(100));
        let changed: Vec<bool> = [0, 0, 1, 5, 0].into_iter().map(|free_bytes| guard.note(free_bytes)).collect();
        assert_eq!(changed, [true, false, true, false, true]);
    }
}
