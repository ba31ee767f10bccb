//! The gate before the engine: how many bytes of events may be under way at once.
//!
//! Mailboxes are no bound (an actor's capacity is per sender), so the bound is here: whoever brings an event takes its
//! bytes from one pool first, and gives them back when it was answered. What finds the pool empty is told so.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A pool of bytes.
#[derive(Debug, Clone)]
pub struct Gate {
    free: Arc<AtomicUsize>,
    limit: usize,
}

/// Bytes taken from a [`Gate`]; given back when dropped.
#[derive(Debug)]
pub struct Permit {
    free: Arc<AtomicUsize>,
    bytes: usize,
}

impl Gate {
    /// A gate through which `limit_bytes` may be under way.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self { free: Arc::new(AtomicUsize::new(limit_bytes)), limit: limit_bytes }
    }

    /// Takes `bytes`, or `None` if so many are not free now.
    #[must_use]
    pub fn take(&self, bytes: usize) -> Option<Permit> {
        self.free
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |free| free.checked_sub(bytes))
            .ok()
            .map(|_| Permit { free: Arc::clone(&self.free), bytes })
    }

    /// How many bytes are under way.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        self.limit - self.free.load(Ordering::Relaxed).min(self.limit)
    }

    /// How many bytes may be under way.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.limit
    }
}

impl Permit {
    /// Takes `more` bytes into this permit. `false`: so many are not free, and nothing was taken.
    #[must_use]
    pub fn grow(&mut self, more: usize) -> bool {
        let taken = self.free.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |free| free.checked_sub(more)).is_ok();
        if taken {
            self.bytes += more;
        }
        taken
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.free.fetch_add(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let gate = Gate::new(100);
        let mut first = gate.take(60).unwrap();
        assert!(gate.take(41).is_none());
        assert!(first.grow(40) && !first.grow(1));
        assert_eq!(gate.used_bytes(), 100);
        drop(first);
        assert_eq!(gate.used_bytes(), 0);
        assert!(gate.take(100).is_some());
    }
}
