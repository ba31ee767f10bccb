//! The buckets of a window: hours, days, weeks or months.

use serde::{Deserialize, Serialize};

use super::{Day, Instant, Timezone, Window};
use crate::named_values;

/// The maximum number of days of a window of hours.
pub const MAX_HOURLY_DAYS: usize = 14;
const HOUR_MS: i64 = 60 * 60 * 1000;
/// The weekday of 1970-01-01, counted from Monday.
const WEEKDAY_OF_DAY_0: i32 = 3;

named_values! {
    /// The length of the buckets of a window.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
    pub enum Interval by as_str {
        /// 60 minutes, counted from the first instant of each day. The last hour of a day ends with
        /// the day.
        Hour = "hour",
        /// A day.
        #[default]
        Day = "day",
        /// A week, which begins on Monday.
        Week = "week",
        /// A month.
        Month = "month",
    }
}

/// The start of a bucket, which identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketStart {
    /// The first day of a day, week or month, which may lie before the window.
    Day(Day),
    /// The first instant of an hour.
    Instant(Instant),
}

/// One bucket of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// The start.
    pub start: BucketStart,
    /// The instant at which it ends.
    pub end: Instant,
    /// Whether it lies entirely in the window.
    pub is_whole: bool,
}

impl Bucket {
    /// Whether it lies entirely in the window and has ended.
    pub fn is_complete(&self, now: Instant) -> bool {
        self.is_whole && self.end <= now
    }
}

/// The buckets of a window, and the lookup of an instant's bucket.
#[derive(Debug, Clone)]
pub struct Buckets {
    /// The window.
    pub window: Window,
    timezone: Timezone,
    interval: Interval,
    /// For each day of the window, the number of its first bucket, and its first instant if buckets
    /// are hours.
    days: Vec<(usize, Instant)>,
    /// The number of buckets.
    pub count: usize,
}

impl Interval {
    /// Returns all days of the bucket of a day.
    pub fn window_of(self, day: Day) -> Window {
        let start = self.first_day(day);
        Window { start, end: self.last_day(start) }
    }

    /// Returns the first day of the bucket of a day.
    fn first_day(self, day: Day) -> Day {
        match self {
            Self::Hour | Self::Day => day,
            Self::Week => day.plus(-(day.0.saturating_add(WEEKDAY_OF_DAY_0)).rem_euclid(7)),
            Self::Month => day.plus(1 - day.ymd().2),
        }
    }

    /// Returns the last day of the bucket that begins on a day.
    fn last_day(self, first: Day) -> Day {
        match self {
            Self::Hour | Self::Day => first,
            Self::Week => first.plus(6),
            // Every month has 28 days, and none has 32 or more.
            Self::Month => self.first_day(first.plus(31)).plus(-1),
        }
    }
}

impl Window {
    /// Returns the days of the window up to a day. The first day stays.
    pub fn until(self, day: Day) -> Window {
        Window { start: self.start, end: self.end.min(day).max(self.start) }
    }

    /// Returns the days of the window in each bucket, in order. Hours have the days that they
    /// belong to.
    pub fn divided(self, interval: Interval) -> Vec<Window> {
        let mut parts: Vec<Window> = Vec::new();
        for day in self.days() {
            match parts.last_mut().filter(|_| interval.first_day(day) != day) {
                Some(part) => part.end = day,
                None => parts.push(Window { start: day, end: day }),
            }
        }
        parts
    }
}

fn hours_of(timezone: Timezone, day: Day) -> usize {
    let ms = timezone.end_of(day).0 - timezone.start_of(day).0;
    usize::try_from((ms + HOUR_MS - 1) / HOUR_MS).unwrap_or_default()
}

impl Buckets {
    /// Divides a window into buckets.
    pub fn new(window: Window, interval: Interval, timezone: Timezone) -> Self {
        let (mut days, mut count) = (Vec::with_capacity(window.len()), 0);
        for day in window.days() {
            if interval == Interval::Hour {
                days.push((count, timezone.start_of(day)));
                count += hours_of(timezone, day);
                continue;
            }
            if day == window.start || interval.first_day(day) == day {
                count += 1;
            }
            days.push((count - 1, Instant(0)));
        }
        Self { window, timezone, interval, days, count }
    }

    /// Returns the number of the bucket of an instant on `day`; `None` outside of the window.
    pub fn of(&self, day: Day, at: Instant) -> Option<usize> {
        if !self.window.contains(day) {
            return None;
        }
        let (first, start) = *self.days.get(usize::try_from(day.since(self.window.start)).ok()?)?;
        match self.interval {
            Interval::Hour => Some(first + usize::try_from((at.0 - start.0).max(0) / HOUR_MS).ok()?),
            _ => Some(first),
        }
        .filter(|bucket| *bucket < self.count)
    }

    /// Returns the buckets in order.
    pub fn list(&self) -> Vec<Bucket> {
        let mut list = Vec::with_capacity(self.count);
        for (day, (first, start)) in self.window.days().zip(&self.days) {
            if self.interval == Interval::Hour {
                let end = self.timezone.end_of(day);
                for hour in 0..hours_of(self.timezone, day) {
                    let at = start.plus_ms(i64::try_from(hour).unwrap_or_default() * HOUR_MS);
                    list.push(Bucket { start: BucketStart::Instant(at), end: end.min(at.plus_ms(HOUR_MS)), is_whole: true });
                }
            } else if *first == list.len() {
                let first_day = self.interval.first_day(day);
                let last_day = self.interval.last_day(first_day);
                let is_whole = self.window.contains(first_day) && self.window.contains(last_day);
                list.push(Bucket { start: BucketStart::Day(first_day), end: self.timezone.end_of(last_day), is_whole });
            }
        }
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        Day::parse(text).unwrap()
    }

    fn buckets(interval: Interval, start: &str, end: &str, zone: &str) -> Buckets {
        Buckets::new(Window { start: day(start), end: day(end) }, interval, Timezone::parse(zone).unwrap())
    }

    fn names(buckets: &Buckets) -> Vec<String> {
        let name = |bucket: &Bucket| match bucket.start {
            BucketStart::Day(day) => format!("{day}{}", if bucket.is_whole { "" } else { "…" }),
            BucketStart::Instant(at) => at.to_string(),
        };
        buckets.list().iter().map(name).collect()
    }

    #[test]
    fn weeks_and_months_are_cut_by_the_window() {
        let weeks = buckets(Interval::Week, "2024-02-28", "2024-03-12", "UTC");
        assert_eq!(names(&weeks), ["2024-02-26…", "2024-03-04", "2024-03-11…"]);
        let months = buckets(Interval::Month, "2024-01-31", "2024-03-31", "UTC");
        assert_eq!(names(&months), ["2024-01-01…", "2024-02-01", "2024-03-01"]);
        let of = |text: &str| months.of(day(text), Instant(0));
        assert_eq!(
            [of("2024-01-31"), of("2024-02-29"), of("2024-03-31"), of("2024-01-30"), of("2024-04-01")],
            [Some(0), Some(1), Some(2), None, None]
        );
        let before = buckets(Interval::Week, "1969-12-28", "1970-01-05", "UTC");
        assert_eq!(names(&before), ["1969-12-22…", "1969-12-29", "1970-01-05…"]);
    }

    #[test]
    fn hours_are_those_of_the_day() {
        for (date, zone, hours) in [
            ("2024-03-31", "Europe/Berlin", 23),
            ("2024-10-27", "Europe/Berlin", 25),
            ("2024-04-07", "Australia/Lord_Howe", 25),
            ("2024-10-06", "Australia/Lord_Howe", 24),
            ("2011-12-30", "Pacific/Apia", 0),
        ] {
            let hourly = buckets(Interval::Hour, date, date, zone);
            assert_eq!((hourly.count, hourly.list().len()), (hours, hours), "{date} {zone}");
            let zone = Timezone::parse(zone).unwrap();
            for (number, bucket) in hourly.list().iter().enumerate() {
                let BucketStart::Instant(at) = bucket.start else { panic!("an hour") };
                assert_eq!((hourly.of(day(date), at), zone.day_of(at)), (Some(number), day(date)));
                assert_eq!(hourly.of(day(date), bucket.end.plus_ms(-1)), Some(number));
            }
        }
    }

    #[test]
    fn a_bucket_is_complete_once_it_is_over() {
        let days = buckets(Interval::Day, "2024-03-30", "2024-04-01", "Europe/Berlin").list();
        let now = Instant::parse_rfc3339("2024-03-31T22:00:00Z").unwrap();
        let complete = |now| days.iter().map(|bucket| bucket.is_complete(now)).collect::<Vec<_>>();
        assert_eq!(complete(now), [true, true, false]);
        assert_eq!(complete(now.plus_ms(-1)), [true, false, false]);
        let weeks = buckets(Interval::Week, "2024-03-26", "2024-03-31", "UTC").list();
        assert!(!weeks[0].is_complete(Instant(i64::MAX)), "its Monday is not in the window");
    }
}
