//! Until when a node answers requests.

use std::sync::Arc;
use std::time::Duration;

use headcount_common::Owners;
use headcount_storage::boot_time::boot_time;
use parking_lot::Mutex;

/// A node answers for a while after it began to read the control log to its end, and after it sent a sign of life that a majority of brokers confirmed: whichever is earlier. The
/// log alone can be read from a broker that leads no longer.
#[derive(Debug)]
pub(super) struct Liveness {
    owners: Arc<Owners>,
    held: Duration,
    moments: Mutex<Moments>,
}

/// Moments of the time since the machine was started.
#[derive(Debug, Default)]
struct Moments {
    followed: Option<Duration>,
    announced: Option<Duration>,
    /// The last moment at which reading began, whether or not it counts.
    read: Option<Duration>,
    /// Reading that began before this moment does not count; `None`: none does.
    counts_from: Option<Duration>,
    has_ended: bool,
}

impl Liveness {
    pub(super) fn new(owners: Arc<Owners>, held: Duration) -> Self {
        let moments = Moments { counts_from: Some(Duration::ZERO), ..Moments::default() };
        Self { owners, held, moments: Mutex::new(moments) }
    }

    /// Notes that everything in the control log was applied that was there at a moment.
    pub(super) fn followed(&self, began: Duration) {
        self.note(|moments| {
            moments.read = Some(began);
            if moments.counts_from.is_some_and(|from| began >= from) {
                moments.followed = Some(began);
            }
        });
    }

    /// Whether the control log has not been read to its end for so long that the node answers nobody.
    pub(super) fn is_behind(&self) -> bool {
        self.moments.lock().read.is_none_or(|read| boot_time() - read >= self.held)
    }

    /// Answers nobody until [`Self::resume`].
    pub(super) fn suspend(&self) {
        self.note(|moments| (moments.followed, moments.counts_from) = (None, None));
    }

    /// Whether it answers nobody until [`Self::resume`].
    pub(super) fn is_suspended(&self) -> bool {
        self.moments.lock().counts_from.is_none()
    }

    /// Answers again, once the control log has been read from this moment on.
    pub(super) fn resume(&self) {
        self.note(|moments| moments.counts_from = Some(boot_time()));
    }

    /// Notes that a sign of life was confirmed that was sent at a moment.
    pub(super) fn announced(&self, sent: Duration) {
        self.note(|moments| moments.announced = Some(sent));
    }

    /// Answers no more.
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
