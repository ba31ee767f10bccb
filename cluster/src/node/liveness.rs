//! The time until which a node answers requests.

use std::sync::Arc;
use std::time::Duration;

use headcount_common::Owners;
use headcount_storage::boot_time::boot_time;
use parking_lot::Mutex;

/// The time until which a node answers requests: a while after it began to read the control log to
/// its end, and a while after it sent its last sign of life that a majority of brokers confirmed,
/// whichever is earlier. Reading the log is not enough, since a deposed leader may deliver it.
#[derive(Debug)]
pub(super) struct Liveness {
    owners: Arc<Owners>,
    held: Duration,
    moments: Mutex<Moments>,
}

/// Moments, as the time since the machine was started.
#[derive(Debug, Default)]
struct Moments {
    followed: Option<Duration>,
    announced: Option<Duration>,
    /// The last moment at which a read began, even if it does not count.
    read: Option<Duration>,
    /// A read that began before this moment does not count. `None`: no read counts.
    counts_from: Option<Duration>,
    has_ended: bool,
}

impl Liveness {
    pub(super) fn new(owners: Arc<Owners>, held: Duration) -> Self {
        let moments = Moments { counts_from: Some(Duration::ZERO), ..Moments::default() };
        Self { owners, held, moments: Mutex::new(moments) }
    }

    /// Records that all changes in the control log at a moment are applied.
    pub(super) fn followed(&self, began: Duration) {
        self.note(|moments| {
            moments.read = Some(began);
            if moments.counts_from.is_some_and(|from| began >= from) {
                moments.followed = Some(began);
            }
        });
    }

    /// Whether the control log was not read to its end for so long that the node answers no
    /// requests.
    pub(super) fn is_behind(&self) -> bool {
        self.moments.lock().read.is_none_or(|read| boot_time() - read >= self.held)
    }

    /// Answers no requests until [`Self::resume`].
    pub(super) fn suspend(&self) {
        self.note(|moments| (moments.followed, moments.counts_from) = (None, None));
    }

    /// Whether the node answers no requests until [`Self::resume`].
    pub(super) fn is_suspended(&self) -> bool {
        self.moments.lock().counts_from.is_none()
    }

    /// Answers requests again, as soon as the control log has been read from this moment on.
    pub(super) fn resume(&self) {
        self.note(|moments| moments.counts_from = Some(boot_time()));
    }

    /// Records that a sign of life was confirmed, which was sent at a moment.
    pub(super) fn announced(&self, sent: Duration) {
        self.note(|moments| moments.announced = Some(sent));
    }

    /// Answers no more requests.
    pub(super) fn end(&self) {
        self.note(|moments| moments.has_ended = true);
    }

    fn note(&self, change: impl FnOnce(&mut Moments)) {
        let mut moments = self.moments.lock();
        change(&mut moments);
        let since = moments.followed.min(moments.announced).filter(|_| !moments.has_ended);
        self.owners.live(since.map_or(Duration::ZERO, |since| since + self.held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_needed_and_the_end_is_the_end() {
        let owners = Arc::new(Owners::unknown());
        let liveness = Liveness::new(Arc::clone(&owners), Duration::from_secs(600));
        liveness.followed(boot_time());
        assert!(!owners.is_live());
        liveness.announced(boot_time());
        assert!(owners.is_live());
        liveness.announced(boot_time().saturating_sub(Duration::from_secs(601)));
        assert!(!owners.is_live());
        liveness.announced(boot_time());
        liveness.end();
        liveness.followed(boot_time());
        assert!(!owners.is_live());
    }

    #[test]
    fn after_a_suspension_what_was_read_before_does_not_count() {
        let owners = Arc::new(Owners::unknown());
        let liveness = Liveness::new(Arc::clone(&owners), Duration::from_secs(600));
        assert!(liveness.is_behind());
        let before = boot_time();
        liveness.announced(before);
        liveness.followed(before);
        assert!(owners.is_live() && !liveness.is_behind());
        liveness.suspend();
        assert!(!owners.is_live() && liveness.is_suspended());
        liveness.followed(boot_time());
        assert!(!owners.is_live() && !liveness.is_behind());
        std::thread::sleep(Duration::from_millis(2));
        liveness.resume();
        liveness.followed(before);
        assert!(!owners.is_live() && !liveness.is_suspended());
        liveness.followed(boot_time());
        assert!(owners.is_live());
    }
}
