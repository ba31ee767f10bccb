//! The known time, for decisions that destroy data if the time is wrong: raising floors, and
//! removing expired data.
//!
//! A clock may be years ahead after a start. So it is believed only up to [`MAX_JUMP_MS`] after the
//! known time: the latest believed time, plus the time since by the monotonic clock. A running
//! process advances the known time, and keeps it in `control/clock.json`. If the clock is further
//! ahead, time continues from the known time until an operator confirms the clock. A clock that is
//! behind removes nothing too early.
//!
//! A project that keeps events for a few days would lose all of them by a smaller jump. So jumps of
//! more than a day are recorded, too, and [`ClockGuard::now_for`] stops at them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant as Stopwatch;

use headcount_common::checked_json;
use headcount_common::clock::Clock;
use headcount_domain::time::MS_PER_DAY;
use headcount_domain::{Day, Instant, Timezone};
use headcount_storage::files::{PRIVATE_FILE, create_private_dir, read_if_there, rename, write_atomically};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The file in a data directory.
pub(crate) const CLOCK_FILE: &str = "control/clock.json";
/// The longest jump that is believed.
const MAX_JUMP_MS: i64 = 30 * MS_PER_DAY;
/// The longest jump that affects no retention: the shortest retention.
const MIN_GAP_MS: i64 = MS_PER_DAY;
/// How far the time advances before the file is written again.
const SAVE_EVERY_MS: i64 = 10 * 60 * 1000;
/// The number of kept confirmations.
const MAX_CONFIRMED: usize = 100;
const VERSION: u8 = 1;

/// A jump of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockJump {
    /// The time before it.
    pub from: Instant,
    /// The time that the clock showed after it.
    pub to: Instant,
}

impl ClockJump {
    /// Whether floors of projects that keep `days` stop before the jump, because they would rise
    /// past recently received events.
    fn holds(&self, days: u32) -> bool {
        self.to.0.saturating_sub(self.from.0) > i64::from(days.saturating_sub(1).max(1)).saturating_mul(MS_PER_DAY)
    }
}

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Known {
    /// The known time.
    reached: Instant,
    /// The believed and unconfirmed jumps of more than a day, as a single jump.
    jump: Option<ClockJump>,
    /// The last jumps that an operator confirmed, oldest first.
    confirmed: Vec<ClockJump>,
}

#[derive(Debug)]
struct GuardState {
    known: Known,
    /// The time when `known.reached` was reached.
    since: Stopwatch,
    /// The contents of the file.
    saved: Option<Known>,
    is_doubted: bool,
}

/// The time of the clock, and the believed time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockState {
    /// The time of the clock.
    pub shown: Instant,
    /// The believed time.
    pub believed: Instant,
    /// Whether the clock is too far ahead to be believed.
    pub is_doubted: bool,
    /// The jump at which the floors of projects with a shorter retention stop.
    pub jump: Option<ClockJump>,
    /// The last jumps that an operator confirmed, oldest first.
    pub confirmed: Vec<ClockJump>,
}

/// The reason why a clock is not confirmed.
#[derive(Debug, thiserror::Error)]
pub enum ConfirmClockError {
    /// The clock shows another day.
    #[error("the clock shows {0}: set it first, or give the day that it shows")]
    OtherDay(Instant),
    /// The confirmation can't be written.
    #[error("the confirmation can't be written: {0}")]
    Io(#[from] io::Error),
}

/// The known time of a data directory.
#[derive(Debug)]
pub(crate) struct ClockGuard {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<GuardState>,
}

impl ClockGuard {
    /// Opens the file of a data directory. Without the file, the known time is `last_receipt`, or
    /// the time of the clock if no event was received.
    ///
    /// # Errors
    /// The file can't be read, or a damaged file can't be set aside.
    pub(crate) fn open(
        data_dir: &Path,
        clock: Arc<dyn Clock>,
        last_receipt: impl FnOnce() -> Option<Instant>,
    ) -> io::Result<Self> {
        let path = data_dir.join(CLOCK_FILE);
        path.parent().map_or(Ok(()), create_private_dir)?;
        let found = match read_if_there(&path)?.map(|bytes| checked_json::decode::<Known>(VERSION, &bytes)) {
            Some(None) => {
                tracing::error!(path = %path.display(), "a damaged file, which says when the program last ran, is set aside");
                rename(&path, &path.with_extension("json.damaged"))?;
                None
            }
            found => found.flatten(),
        };
        let shown = clock.now();
        let begin = || Known { reached: last_receipt().unwrap_or(shown).min(shown), jump: None, confirmed: Vec::new() };
        let state =
            GuardState { saved: found.clone(), known: found.unwrap_or_else(begin), since: Stopwatch::now(), is_doubted: false };
        let guard = Self { path, clock, state: Mutex::new(state) };
        guard.now();
        Ok(guard)
    }

    /// Returns the known time, as of which data may be removed.
    pub(crate) fn now(&self) -> Instant {
        self.look(&mut self.state.lock()).1
    }

    /// Returns the time as of which events kept for `days` may be removed.
    pub(crate) fn now_for(&self, days: u32) -> Instant {
        let mut state = self.state.lock();
        let now = self.look(&mut state).1;
        state.known.jump.filter(|jump| jump.holds(days)).map_or(now, |jump| jump.from.min(now))
    }

    /// Whether floors of projects that keep `days` wait for a confirmation.
    pub(crate) fn holds(&self, days: u32) -> bool {
        let state = self.state.lock();
        state.is_doubted || state.known.jump.is_some_and(|jump| jump.holds(days))
    }

    pub(crate) fn state(&self) -> ClockState {
        let mut state = self.state.lock();
        let (shown, believed) = self.look(&mut state);
        let Known { jump, confirmed, .. } = state.known.clone();
        ClockState { shown, believed, is_doubted: state.is_doubted, jump, confirmed }
    }

    /// Forgets a jump that affects no project, and writes the file if it is due. `shortest` is the
    /// shortest retention of a project.
    ///
    /// # Errors
    /// The file can't be written. The next call tries again.
    pub(crate) fn keep(&self, shortest: Option<u32>) -> io::Result<()> {
        let mut state = self.state.lock();
        self.look(&mut state);
        state.known.jump = state.known.jump.filter(|jump| shortest.is_some_and(|days| jump.holds(days)));
        let known = Known { reached: state.reached_by_now(), ..state.known.clone() };
        let is_due = state.saved.as_ref().is_none_or(|saved| {
            known.jump != saved.jump || known.reached.0.saturating_sub(saved.reached.0).saturating_abs() >= SAVE_EVERY_MS
        });
        if is_due {
            self.save(&mut state, known)?;
        }
        Ok(())
    }

    /// Confirms the clock, durably. `day` is the day that it shows, in any timezone.
    ///
    /// # Errors
    /// Returns a [`ConfirmClockError`].
    pub(crate) fn confirm(&self, day: Day) -> Result<(), ConfirmClockError> {
        let mut state = self.state.lock();
        let (shown, believed) = self.look(&mut state);
        if Timezone::UTC.day_of(shown).0.abs_diff(day.0) > 1 {
            return Err(ConfirmClockError::OtherDay(shown));
        }
        let from = match state.known.jump {
            Some(jump) => jump.from,
            None if state.is_doubted => believed,
            None => return Ok(()),
        };
        let jump = ClockJump { from, to: shown };
        let mut known = Known { reached: shown, jump: None, ..state.known.clone() };
        known.confirmed.push(jump);
        known.confirmed.drain(..known.confirmed.len().saturating_sub(MAX_CONFIRMED));
        self.save(&mut state, known)?;
        state.is_doubted = false;
        tracing::warn!(%from, to = %shown, "an operator confirmed the clock: what has expired by it is removed");
        Ok(())
    }

    /// Advances the known time, as far as the clock is believed. Returns the time of the clock, and
    /// the believed time.
    fn look(&self, state: &mut GuardState) -> (Instant, Instant) {
        let (shown, expected) = (self.clock.now(), state.reached_by_now());
        let ahead = shown.0.saturating_sub(expected.0);
        let was_doubted = std::mem::replace(&mut state.is_doubted, ahead > MAX_JUMP_MS);
        if state.is_doubted {
            if !was_doubted {
                tracing::error!(
                    clock = %shown,
                    known = %expected,
                    "the clock is far ahead of the last known time: nothing is removed because of it until `headcount clock confirm`"
                );
            }
            return (shown, expected);
        }
        if ahead > MIN_GAP_MS {
            let jump = ClockJump { from: expected, to: shown };
            // Shown as one jump, from the first to the last.
            state.known.jump =
                Some(state.known.jump.map_or(jump, |former| ClockJump { from: former.from.min(expected), ..jump }));
        }
        if shown > state.known.reached {
            (state.known.reached, state.since) = (shown, Stopwatch::now());
        }
        (shown, shown)
    }

    fn save(&self, state: &mut GuardState, known: Known) -> io::Result<()> {
        write_atomically(&self.path, &checked_json::encode(VERSION, &known)?, PRIVATE_FILE)?;
        (state.known, state.since, state.saved) = (known.clone(), Stopwatch::now(), Some(known));
        Ok(())
    }
}

impl GuardState {
    /// The known time, plus the time since.
    fn reached_by_now(&self) -> Instant {
        self.known.reached.plus_ms(i64::try_from(self.since.elapsed().as_millis()).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use headcount_storage::files::switch::{Plan, Switch};

    use super::*;
    use headcount_common::clock::FixedClock;

    const START: Instant = Instant(1_790_000_000_000);

    fn after(days: i64) -> Instant {
        START.plus_ms(days * MS_PER_DAY)
    }

    fn open(dir: &Path, clock: &FixedClock) -> ClockGuard {
        ClockGuard::open(dir, Arc::new(clock.clone()), || None).unwrap()
    }

    /// Whether two times are equal, except for the duration of the test.
    fn is_about(at: Instant, expected: Instant) -> bool {
        (expected.0..expected.0 + 600_000).contains(&at.0)
    }

    #[test]
    fn a_clock_that_is_far_ahead_is_believed_once_it_is_confirmed() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), FixedClock::at(START));
        let guard = open(dir.path(), &clock);
        guard.keep(None).unwrap();
        clock.set(after(3_650));
        assert!(is_about(guard.now(), START) && guard.state().is_doubted && guard.holds(3_660));
        drop(guard);
        // A start does not make it believed.
        let guard = open(dir.path(), &clock);
        guard.keep(None).unwrap();
        assert!(is_about(guard.now(), START) && guard.state().is_doubted);
        let today = |days| Timezone::UTC.day_of(after(days));
        assert!(matches!(guard.confirm(today(0)), Err(ConfirmClockError::OtherDay(shown)) if shown == after(3_650)));
        assert!(guard.state().is_doubted && guard.state().confirmed.is_empty());
        // A confirmation that can't be written does not count.
        let switch = Switch::arm(dir.path(), Plan { at: 1, ..Plan::default() });
        assert!(matches!(guard.confirm(today(3_650)), Err(ConfirmClockError::Io(_))));
        drop(switch);
        assert!(guard.state().is_doubted && is_about(guard.now(), START));
        guard.confirm(today(3_649)).unwrap();
        guard.confirm(today(3_651)).unwrap();
        drop(guard);
        let guard = open(dir.path(), &clock);
        assert_eq!(guard.now(), after(3_650));
        let ClockState { confirmed, is_doubted, .. } = guard.state();
        assert!(!is_doubted && !guard.holds(1));
        let [ClockJump { from, to }] = confirmed[..] else { panic!("{confirmed:?}") };
        assert!(is_about(from, START) && to == after(3_650));
    }

    #[test]
    fn time_that_passes_needs_no_confirmation() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), FixedClock::at(START));
        let mut guard = open(dir.path(), &clock);
        for day in 1..=200 {
            clock.set(after(day));
            assert_eq!(guard.now_for(1), after(day));
            if day % 25 == 0 {
                guard.keep(Some(1)).unwrap();
                drop(guard);
                guard = open(dir.path(), &clock);
            }
        }
        guard.keep(Some(1)).unwrap();
        drop(guard);
        // A clock that is behind is believed, and forgotten when it is right again.
        clock.set(Instant(0));
        let guard = open(dir.path(), &clock);
        guard.keep(None).unwrap();
        assert_eq!((guard.now(), guard.state().is_doubted), (Instant(0), false));
        drop(guard);
        clock.set(after(201));
        let guard = open(dir.path(), &clock);
        assert_eq!((guard.now_for(1), guard.state().is_doubted), (after(201), false));
        // As far ahead as is believed, and a moment more.
        clock.set(guard.now().plus_ms(MAX_JUMP_MS));
        assert_eq!(guard.now(), after(231));
        clock.set(guard.now().plus_ms(MAX_JUMP_MS + 60_000));
        assert!(guard.now() < after(232));
    }

    #[test]
    fn a_jump_stops_the_floors_of_those_who_keep_events_for_less() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), FixedClock::at(START));
        let guard = open(dir.path(), &clock);
        clock.set(after(6));
        assert_eq!(guard.now(), after(6), "it is believed");
        for (days, now) in [(1, START), (6, START), (7, after(6)), (8, after(6)), (30, after(6))] {
            assert!(is_about(guard.now_for(days), now), "{days}");
            assert_eq!(guard.holds(days), now == START, "{days}");
        }
        guard.keep(Some(6)).unwrap();
        drop(guard);
        clock.set(after(10));
        let guard = open(dir.path(), &clock);
        assert!(is_about(guard.now_for(7), START) && guard.now_for(11) == after(10), "the second is added to the first");
        // A clock that is right again removes no later event.
        clock.set(after(1));
        assert!(guard.now_for(7) <= after(1));
        clock.set(after(10));
        guard.confirm(Timezone::UTC.day_of(after(10))).unwrap();
        assert_eq!(guard.now_for(1), after(10));
        // A jump that affects no project is forgotten.
        clock.set(after(13));
        guard.keep(Some(4)).unwrap();
        assert_eq!((guard.state().jump, guard.now_for(1)), (None, after(13)));
    }

    #[test]
    fn without_the_file_the_last_receipt_is_known() {
        let (dir, clock) = (tempfile::tempdir().unwrap(), FixedClock::at(after(3_650)));
        let receipt = |at: Option<Instant>| ClockGuard::open(dir.path(), Arc::new(clock.clone()), move || at).unwrap();
        assert!(receipt(Some(START)).state().is_doubted);
        assert!(!receipt(Some(after(3_640))).state().is_doubted && !receipt(None).state().is_doubted);
        std::fs::write(dir.path().join(CLOCK_FILE), b"{}").unwrap();
        assert!(receipt(Some(START)).state().is_doubted);
        assert!(dir.path().join("control/clock.json.damaged").exists());
    }
}
