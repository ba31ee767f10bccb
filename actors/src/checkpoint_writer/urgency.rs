//! Whether a job waits for checkpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the jobs that wait for checkpoints. While there are any, checkpoints are written at full
/// speed.
#[derive(Debug, Clone, Default)]
pub(super) struct Urgency {
    waiting: Arc<AtomicUsize>,
}

impl Urgency {
    pub(super) fn is_urgent(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    pub(super) fn hurry(&self) -> Hurry {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Hurry { waiting: Arc::clone(&self.waiting) }
    }
}

/// A job that waits for checkpoints.
#[derive(Debug)]
pub(crate) struct Hurry {
    waiting: Arc<AtomicUsize>,
}

impl Drop for Hurry {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_urgent_while_anybody_waits() {
        let urgency = Urgency::default();
        assert!(!urgency.is_urgent());
        let (one, other) = (urgency.hurry(), urgency.clone().hurry());
        drop(one);
        assert!(urgency.is_urgent());
        drop(other);
        assert!(!urgency.is_urgent());
    }
}
