//! The time that is believed, and the floors that follow it (ADR 11).
//!
//! The known time is the latest that was believed, and what has passed since by a steady clock. A
//! clock up to 30 days ahead of it is believed. A jump of more than a day that is believed is kept,
//! and holds the floors of projects that keep their events for less than the jump and a day.
//!
//! When a running process writes the known time, and forgets a jump that holds nobody, is its own
//! affair. So several states may be possible, until it says what it believes: see [`KnownTimes`].

use crate::time::day_of;
use chrono::{Days, NaiveDate};
use chrono_tz::Tz;

const DAY_MS: i64 = 86_400_000;
/// The longest jump that is believed.
const MAX_JUMP_MS: i64 = 30 * DAY_MS;
/// How much of the known time may not be written yet when a process stops, and a little more.
const UNWRITTEN_MS: i64 = 11 * 60_000;

/// A jump of the clock: the time before it, and the time that the clock showed after it.
pub type Jump = (i64, i64);

/// What a process says of its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Believed {
    /// The time that is believed.
    pub at_ms: i64,
    /// Whether the clock is so far ahead that it is not.
    pub is_doubted: bool,
    /// The jump that is kept.
    pub jump: Option<Jump>,
}

impl Believed {
    /// Returns the first day that a project keeps, by what is believed now.
    #[must_use]
    pub fn floor(&self, days: u32, timezone: Tz) -> NaiveDate {
        let held = self.jump.filter(|jump| holds(*jump, days));
        let at_ms = held.map_or(self.at_ms, |(from, _)| from.min(self.at_ms));
        day_of(at_ms, timezone) - Days::new(u64::from(days) - 1)
    }

    fn is_about(&self, other: &Believed) -> bool {
        let near = |one: i64, other: i64| one.abs_diff(other) < UNWRITTEN_MS.unsigned_abs();
        let jumps = match (self.jump, other.jump) {
            (Some(one), Some(other)) => near(one.0, other.0) && near(one.1, other.1),
            (one, other) => one == other,
        };
        jumps && self.is_doubted == other.is_doubted && near(self.at_ms, other.at_ms)
    }
}

fn holds((from, to): Jump, days: u32) -> bool {
    to - from > i64::from(days.max(2) - 1) * DAY_MS
}

/// One state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KnownTime {
    reached_ms: i64,
    /// When it was reached, by the steady clock.
    steady_ms: i64,
    jump: Option<Jump>,
}

impl KnownTime {
    fn look(&mut self, shown_ms: i64, steady_ms: i64) -> Believed {
        let expected_ms = self.reached_ms + steady_ms - self.steady_ms;
        let ahead_ms = shown_ms - expected_ms;
        if ahead_ms > MAX_JUMP_MS {
            return Believed { at_ms: expected_ms, is_doubted: true, jump: self.jump };
        }
        if ahead_ms > DAY_MS {
            let first_ms = self.jump.map_or(expected_ms, |(from, _)| from.min(expected_ms));
            self.jump = Some((first_ms, shown_ms));
        }
        if shown_ms > self.reached_ms {
            (self.reached_ms, self.steady_ms) = (shown_ms, steady_ms);
        }
        Believed { at_ms: shown_ms, is_doubted: false, jump: self.jump }
    }
}

/// The states that are possible, of which one is true.
#[derive(Clone, Debug)]
pub struct KnownTimes {
    possible: Vec<KnownTime>,
    /// What may be in the file, if the process is killed.
    written: Vec<KnownTime>,
}

impl KnownTimes {
    /// Begins with the first start of a process.
    #[must_use]
    pub fn begin(shown_ms: i64, steady_ms: i64) -> KnownTimes {
        let first = KnownTime { reached_ms: shown_ms, steady_ms, jump: None };
        KnownTimes { possible: vec![first], written: vec![first] }
    }

    /// How far a clock would be ahead, for those who keep away from the bounds.
    #[must_use]
    pub fn ahead_ms(&self, shown_ms: i64, steady_ms: i64) -> Vec<i64> {
        self.possible.iter().map(|known| shown_ms - (known.reached_ms + steady_ms - known.steady_ms)).collect()
    }

    /// Takes in what a process says after it has looked at its clock. `shortest` is the shortest
    /// retention of a project.
    ///
    /// # Errors What it may say instead.
    pub fn saw(
        &mut self,
        (shown_ms, steady_ms): (i64, i64),
        said: &Believed,
        shortest: Option<u32>,
    ) -> Result<(), Vec<Believed>> {
        let is_free = |jump: &Jump| shortest.is_none_or(|days| !holds(*jump, days));
        let mut tried = Vec::new();
        let mut agreeing: Vec<KnownTime> = Vec::new();
        for mut known in std::mem::take(&mut self.possible) {
            // A jump that holds nobody may be forgotten before this look, and after it.
            let mut before = vec![known];
            if known.jump.as_ref().is_some_and(is_free) {
                known.jump = None;
                before.push(known);
            }
            for mut known in before {
                let mut believed = known.look(shown_ms, steady_ms);
                let mut after = vec![(known, believed)];
                if known.jump.as_ref().is_some_and(is_free) {
                    (known.jump, believed.jump) = (None, None);
                    after.push((known, believed));
                }
                for (known, believed) in after {
                    if said.is_about(&believed) && !agreeing.contains(&known) {
                        agreeing.push(known);
                    }
                    tried.push(believed);
                }
            }
        }
        if agreeing.is_empty() {
            return Err(tried);
        }
        self.written.extend(&agreeing);
        self.possible = agreeing;
        Ok(())
    }

    /// The process stops, and writes what it knows. `steady_ms`: when it stops.
    pub fn stop(&mut self, steady_ms: i64) {
        self.written = self.possible.iter().map(|known| at_rest(known, steady_ms)).collect();
    }

    /// It starts with what is written: what it knew when it stopped or, after a kill, at any time
    /// since the last start.
    pub fn start(&mut self, steady_ms: i64) {
        self.possible = self.written.iter().map(|known| KnownTime { steady_ms, ..*known }).collect();
        self.written = self.possible.clone();
    }

    /// An operator confirms the clock by a day. Returns whether it shows that day, or the one
    /// before or after it.
    ///
    /// What is confirmed is written. Where nothing is to be confirmed, nothing is.
    pub fn confirm(&mut self, (shown_ms, steady_ms): (i64, i64), day: NaiveDate) -> bool {
        if (day_of(shown_ms, Tz::UTC) - day).num_days().abs() > 1 {
            return false;
        }
        let mut is_written = true;
        for known in &mut self.possible {
            let believed = known.look(shown_ms, steady_ms);
            if believed.is_doubted || known.jump.is_some() {
                *known = KnownTime { reached_ms: shown_ms, steady_ms, jump: None };
            } else {
                is_written = false;
            }
        }
        if is_written {
            self.written.clear();
        }
        self.written.extend(&self.possible);
        true
    }
}

fn at_rest(known: &KnownTime, steady_ms: i64) -> KnownTime {
    KnownTime { reached_ms: known.reached_ms + steady_ms - known.steady_ms, steady_ms, ..*known }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_MS: i64 = 1_790_000_000_000;

    fn days(count: i64) -> i64 {
        START_MS + count * DAY_MS
    }

    fn said(at_ms: i64, is_doubted: bool, jump: Option<Jump>) -> Believed {
        Believed { at_ms, is_doubted, jump }
    }

    #[test]
    fn a_clock_is_believed_for_thirty_days_and_a_jump_holds_short_retentions() {
        let mut known = KnownTimes::begin(START_MS, 0);
        known.saw((days(3_650), 0), &said(START_MS, true, None), None).unwrap();
        assert!(known.saw((days(3_650), 0), &said(days(3_650), false, None), None).is_err(), "it is not believed");
        let mut known = KnownTimes::begin(START_MS, 0);
        let believed = said(days(6), false, Some((START_MS, days(6))));
        known.saw((days(6), 0), &believed, Some(5)).unwrap();
        let today = day_of(days(6), Tz::UTC);
        let floor = |kept| (today - believed.floor(kept, Tz::UTC)).num_days();
        assert_eq!([5, 6, 7, 30].map(floor), [10, 11, 6, 29]);
        assert!(!known.confirm((days(6), 0), day_of(days(8), Tz::UTC)));
        assert!(known.confirm((days(6), 0), day_of(days(7), Tz::UTC)));
        known.saw((days(6), 0), &said(days(6), false, None), Some(1)).unwrap();
    }

    #[test]
    fn a_confirmation_of_nothing_writes_nothing() {
        let mut known = KnownTimes::begin(START_MS, 0);
        let later = START_MS + 3_600_000;
        assert!(known.confirm((later, 0), day_of(later, Tz::UTC)));
        known.start(0);
        let expected = [START_MS, later].map(|at_ms| said(at_ms, true, None));
        for believed in expected {
            known.clone().saw((days(400), 0), &believed, None).unwrap();
        }
    }

    #[test]
    fn after_a_kill_several_states_are_possible() {
        let mut known = KnownTimes::begin(START_MS, 0);
        known.saw((days(20), 0), &said(days(20), false, Some((START_MS, days(20)))), Some(3)).unwrap();
        known.start(0);
        let mut other = known.clone();
        // The file has either, and the clock is 40 or 20 days ahead of it.
        known.saw((days(40), 0), &said(START_MS, true, None), Some(3)).unwrap();
        other.saw((days(40), 0), &said(days(40), false, Some((START_MS, days(40)))), Some(3)).unwrap();
        // A jump that holds nobody may be forgotten at any time, and is forgotten from then on.
        other.saw((days(40), 0), &said(days(40), false, None), Some(400)).unwrap();
        assert!(other.saw((days(40), 0), &said(days(40), false, Some((START_MS, days(40)))), Some(400)).is_err());
    }
}
