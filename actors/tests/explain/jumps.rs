//! A clock that jumps, and the times that an engine may believe.

use std::time::Instant as Stopwatch;

use headcount_actors::Engine;
use headcount_actors::domain::time::Day;
use headcount_histories::{Rng, dated, jumped};
use headcount_model::known_time::{Believed, KnownTimes};
use headcount_model::time::{UTC, day_of};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;
/// How far from a day's end, and from the limit of belief, the clock is set.
const MARGIN_MS: i64 = 30 * MINUTE_MS;

/// The jumps of a clock.
pub(super) struct Jumps {
    pub(super) rng: Rng,
    /// The retention of the project in days.
    pub(super) kept: Option<u32>,
    known: KnownTimes,
    since: Stopwatch,
    is_on: bool,
    right_ms: i64,
}

impl Jumps {
    pub(super) fn new(seed: u64, now_ms: i64, is_on: bool) -> Jumps {
        let known = KnownTimes::begin(now_ms, 0);
        Jumps { rng: Rng::new(seed ^ 0xc10c), kept: None, known, since: Stopwatch::now(), is_on, right_ms: now_ms }
    }

    fn steady_ms(&self) -> i64 {
        i64::try_from(self.since.elapsed().as_millis()).unwrap()
    }

    /// Checks that the engine believes a possible time, and returns it.
    pub(super) fn see(&mut self, engine: &Engine) -> Believed {
        let state = engine.clock_state();
        let jump = state.jump.map(|jump| (jump.from.0, jump.to.0));
        let said = Believed { at_ms: state.believed.0, is_doubted: state.is_doubted, jump };
        if let Err(possible) = self.known.saw((state.shown.0, self.steady_ms()), &said, self.kept) {
            panic!("{said:?} at {} with {:?}, and not one of {possible:?}", state.shown, self.kept);
        }
        said
    }

    pub(super) fn stop(&mut self) {
        self.known.stop(self.steady_ms());
    }

    pub(super) fn start(&mut self) {
        self.known.start(self.steady_ms());
    }

    /// An operator confirms the clock, by its day or by another one.
    pub(super) fn confirm(&mut self, engine: &Engine) {
        self.see(engine);
        let shown = engine.clock_state().shown.0;
        let day = day_of(shown + *self.rng.pick(&[0, 0, 0, 1, -1, 2, -3, 3_650]) * DAY_MS, UTC);
        let confirmed = engine.confirm_clock(Day::parse(&day.to_string()).unwrap());
        let is_right = self.known.confirm((shown, self.steady_ms()), day);
        assert_eq!(confirmed.is_ok(), is_right, "{day} at {shown}: {confirmed:?}");
    }

    /// Returns the next time of the clock: not near the limit of belief, nor near the end of a day.
    /// `is_one_day`: whether two times are on the same day.
    pub(super) fn next(&mut self, present_ms: i64, is_one_day: impl Fn(i64, i64) -> bool) -> i64 {
        let mut next = self.right_ms + jumped(&mut self.rng, present_ms - self.right_ms);
        let is_apart = |next: i64| {
            let is_far =
                |by: i64| by.abs() < DAY_MS / 2 || (by - (by + DAY_MS / 2).div_euclid(DAY_MS) * DAY_MS).abs() > MARGIN_MS;
            let is_utc_day = day_of(next - MARGIN_MS, UTC) == day_of(next + MARGIN_MS, UTC);
            let aheads = self.known.ahead_ms(next, self.steady_ms());
            is_utc_day && is_one_day(next - MARGIN_MS, next + MARGIN_MS) && aheads.into_iter().all(is_far)
        };
        while !is_apart(next) {
            next += 35 * MINUTE_MS;
        }
        next
    }

    /// Returns the event, sometimes with the time of the clock.
    pub(super) fn dated(&mut self, body: &str, shown_ms: i64) -> String {
        if self.is_on && self.rng.chance(30) { dated(&mut self.rng, body, shown_ms) } else { body.to_owned() }
    }
}
