//! Difficult instants: clustered, around midnight, on days when the clocks change, at exact gaps.

use crate::rng::Rng;
use chrono::{Days, NaiveDate, NaiveTime, SecondsFormat, TimeZone};
use chrono_tz::Tz;
use headcount_model::time::day_of;

const SECOND_MS: i64 = 1000;
const MINUTE_MS: i64 = 60 * SECOND_MS;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// The instants of one history.
#[derive(Debug)]
pub(crate) struct Times {
    timezone: Tz,
    days: Vec<NaiveDate>,
    /// The spread of instants over milliseconds, so that they tie only where intended.
    spread: i64,
}

/// Days on which the clocks change (America, Europe, Lord Howe Island), and ends of months.
const SPECIAL_DAYS: [(i32, u32, u32); 8] =
    [(2024, 3, 10), (2024, 11, 3), (2024, 3, 31), (2024, 10, 27), (2024, 4, 7), (2024, 2, 29), (2023, 12, 31), (2024, 1, 31)];

impl Times {
    /// Picks three to six days: some special days with the day after, the others in the year before
    /// today.
    pub(crate) fn new(rng: &mut Rng, timezone: Tz, now_ms: i64) -> Times {
        let today = day_of(now_ms, timezone);
        let mut days = Vec::new();
        for _ in 0..rng.below(2) + 1 {
            let &(year, month, day) = rng.pick(&SPECIAL_DAYS);
            let day = NaiveDate::from_ymd_opt(year, month, day).expect("a day");
            days.extend([day, day + Days::new(1)]);
        }
        for _ in 0..rng.below(3) + 1 {
            let ago = *rng.pick(&[1, 1, 2, 3, 7, 29, 30, 31, 60, 200]);
            days.push(today - Days::new(ago));
        }
        days.sort_unstable();
        days.dedup();
        Times { timezone, days, spread: 0 }
    }

    /// The days.
    pub(crate) fn days(&self) -> &[NaiveDate] {
        &self.days
    }

    /// Picks a new instant on one of the days, at one of a few hours, at a unique millisecond.
    pub(crate) fn fresh(&mut self, rng: &mut Rng) -> i64 {
        let day = *rng.pick(&self.days);
        let hour = *rng.pick(&[9, 9, 10, 10, 15, 1, 2, 3, 23, 0]);
        let minute = *rng.pick(&[0, 5, 20, 30, 45]);
        self.spread += 1;
        self.start_of(day) + hour * HOUR_MS + minute * MINUTE_MS + self.spread % 997 + 1
    }

    /// Returns the first millisecond of a day, the last of the day before, or the second of a day.
    /// Each project has its own, so that no two projects have events at the same instant.
    pub(crate) fn midnight(&mut self, rng: &mut Rng, project: usize) -> i64 {
        let day = *rng.pick(&self.days);
        self.start_of(day) + [0, -1, 1][project % 3]
    }

    /// Returns an instant before or after another one, at a gap that matters to sessions.
    pub(crate) fn near(rng: &mut Rng, other_ms: i64) -> i64 {
        let gap = *rng.pick(&[
            29 * MINUTE_MS + 59 * SECOND_MS,
            30 * MINUTE_MS,
            30 * MINUTE_MS,
            30 * MINUTE_MS + SECOND_MS,
            30 * MINUTE_MS + 1,
            10 * MINUTE_MS,
            SECOND_MS,
        ]);
        if rng.chance(30) { other_ms - gap } else { other_ms + gap }
    }

    fn start_of(&self, day: NaiveDate) -> i64 {
        let midnight = day.and_time(NaiveTime::MIN);
        let start = self.timezone.from_local_datetime(&midnight).earliest();
        // Where the clocks go forward at midnight, the day starts an hour later.
        let later = || self.timezone.from_local_datetime(&(midnight + chrono::TimeDelta::hours(1))).earliest();
        start.or_else(later).expect("a start of the day").timestamp_millis()
    }

    /// Formats an instant for sending: RFC 3339 at some offset, with finer digits, or milliseconds
    /// since the epoch.
    pub(crate) fn spelled(rng: &mut Rng, at_ms: i64) -> String {
        let at = chrono::DateTime::from_timestamp_millis(at_ms).expect("an instant");
        let offset = *rng.pick(&["Asia/Kolkata", "America/New_York", "Europe/Berlin"]);
        let zone: Tz = offset.parse().expect("a timezone");
        match rng.below(6) {
            0 => at_ms.to_string(),
            1 => format!("\"{}\"", at.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Millis, false)),
            2 => format!("\"{}456Z\"", at.to_rfc3339_opts(SecondsFormat::Millis, true).trim_end_matches('Z')),
            _ => format!("\"{}\"", at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        }
    }
}
