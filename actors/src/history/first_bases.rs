//! Whether projects may get their first bases.
//!
//! Once a project has a base, events that the base has may be removed. A backup of several machines reads the events of projects without one, so it holds their first bases back.

use std::time::{Duration, Instant as Stopwatch};

use parking_lot::{Mutex, MutexGuard};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FirstBases {
    held_until: Mutex<Option<Stopwatch>>,
}

impl FirstBases {
    /// Holds first bases back for `time` from now on. One that is being listed is listed before this returns.
    pub(crate) fn hold(&self, time: Duration) {
        let until = Stopwatch::now() + time;
        let mut held = self.held_until.lock();
        *held = Some(held.map_or(until, |other| other.max(until)));
    }

    /// Allows a first base to be listed while the result exists. `None`: they are held back.
    pub(crate) fn allow(&self) -> Option<MutexGuard<'_, Option<Stopwatch>>> {
        let held = self.held_until.lock();
        held.is_none_or(|until| Stopwatch::now() >= until).then_some(held)
    }

    /// Whether they are held back.
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
