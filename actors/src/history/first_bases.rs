//! Whether projects may get their first bases.
//!
//! Once a project has a base, the events in it may be removed. A backup of a cluster reads the
//! events of projects without a base, so it holds their first bases back.

use std::time::{Duration, Instant as Stopwatch};

use parking_lot::{Mutex, MutexGuard};

/// Holds first bases back.
#[derive(Debug, Default)]
pub(crate) struct FirstBases {
    held_until: Mutex<Option<Stopwatch>>,
}

impl FirstBases {
    /// Holds first bases back for `time` from now on. If a base is being listed, this returns after
    /// that.
    pub(crate) fn hold(&self, time: Duration) {
        let until = Stopwatch::now() + time;
        let mut held = self.held_until.lock();
        *held = Some(held.map_or(until, |other| other.max(until)));
    }

    /// Allows a first base to be listed while the result exists. Returns `None` if they are held
    /// back.
    pub(crate) fn allow(&self) -> Option<MutexGuard<'_, Option<Stopwatch>>> {
        let held = self.held_until.lock();
        held.is_none_or(|until| Stopwatch::now() >= until).then_some(held)
    }

    /// Whether first bases are held back.
    pub(crate) fn are_held(&self) -> bool {
        self.allow().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bases_are_allowed_unless_the_longest_hold_has_not_ended() {
        let bases = FirstBases::default();
        assert!(bases.allow().is_some());
        bases.hold(Duration::from_secs(60));
        bases.hold(Duration::ZERO);
        assert!(bases.allow().is_none() && bases.are_held());
        let over = FirstBases::default();
        over.hold(Duration::ZERO);
        assert!(over.allow().is_some() && !over.are_held());
    }
}
