//! The window of days that a query covers.

use super::{Day, Instant, Timezone};
use serde::{Deserialize, Serialize};

/// The number of days in the default window: the 30 days before today, and today.
pub const DEFAULT_WINDOW_DAYS: u32 = 31;
/// The maximum number of days in a window.
pub const MAX_WINDOW_DAYS: i64 = 3_660;

/// A range of whole days, both ends inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Window {
    /// The first day.
    pub start: Day,
    /// The last day, not before the first.
    pub end: Day,
}

/// The reason why the requested bounds are not a valid window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A bound is neither a date nor a date and time.
    #[error("must be a date (YYYY-MM-DD) or an RFC 3339 date and time, not {given:?}")]
    NotADate {
        /// `start_date` or `end_date`.
        param: &'static str,
        /// The given value, truncated to 64 characters.
        given: String,
    },
    /// The window would start after its end.
    #[error("the window would start on {start}, after its end on {end}")]
    StartAfterEnd {
        /// The parameter at fault: `end_date` if the start is the default, else `start_date`.
        param: &'static str,
        /// The day of the start.
        start: Day,
        /// The day of the end.
        end: Day,
    },
    /// The window has more than [`MAX_WINDOW_DAYS`] days.
    #[error("the window would have {days} days; at most 3660 are allowed")]
    TooLong {
        /// The number of days, both ends included.
        days: i64,
    },
}

/// The error for a question that needs events of days below the floor of its project.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("events before {floor} are not kept")]
pub struct BeforeFloor {
    /// `start_date`, or `end_date` if the start is the default.
    pub param: &'static str,
    /// The first day with events.
    pub floor: Day,
}

impl WindowError {
    /// The parameter at fault: `start_date` or `end_date`.
    pub const fn param(&self) -> &'static str {
        match self {
            WindowError::NotADate { param, .. } | WindowError::StartAfterEnd { param, .. } => param,
            WindowError::TooLong { .. } => "start_date",
        }
    }
}

impl Window {
    /// All days.
    pub const ALL: Window = Window { start: Day(i32::MIN), end: Day(i32::MAX) };

    /// Resolves the window from the day of `start` to the day of `end`. Each is a date or an RFC
    /// 3339 date and time; the start defaults to 30 days before today, and the end to today.
    ///
    /// # Errors
    /// [`WindowError`] names the parameter. The default start is checked too: an end before it is
    /// an error.
    pub fn resolve(start: Option<&str>, end: Option<&str>, timezone: Timezone, now: Instant) -> Result<Window, WindowError> {
        let default = Window::last_days(DEFAULT_WINDOW_DAYS, timezone, now);
        let window = Window {
            start: start.map_or(Ok(default.start), |text| read_day("start_date", text, timezone))?,
            end: end.map_or(Ok(default.end), |text| read_day("end_date", text, timezone))?,
        };
        for (param, given, day) in [("start_date", start, window.start), ("end_date", end, window.end)] {
            // An instant at the edge of the calendar can fall on a day without a four-digit year.
            if !(0..=9999).contains(&day.ymd().0) {
                return Err(WindowError::NotADate { param, given: given.unwrap_or_default().to_owned() });
            }
        }
        if window.start > window.end {
            let param = if start.is_none() { "end_date" } else { "start_date" };
            return Err(WindowError::StartAfterEnd { param, start: window.start, end: window.end });
        }
        let days = window.end.since(window.start) + 1;
        if days > MAX_WINDOW_DAYS { Err(WindowError::TooLong { days }) } else { Ok(window) }
    }

    /// Whether a window with these bounds changes from day to day, because one of them is a
    /// default.
    pub const fn depends_on_today(start: Option<&str>, end: Option<&str>) -> bool {
        start.is_none() || end.is_none()
    }

    /// Whether a question may have this window: it is not reversed, and not too long.
    pub fn is_allowed(self) -> bool {
        (1..=MAX_WINDOW_DAYS).contains(&(i64::from(self.end.0) - i64::from(self.start.0) + 1))
    }

    /// Returns the days of the window that are not below `floor`, whose events can be read. A
    /// default start moves up.
    ///
    /// # Errors
    /// [`BeforeFloor`] if a given start lies below the floor, or if all days do.
    pub fn above(self, floor: Option<Day>, has_start: bool) -> Result<Window, BeforeFloor> {
        match floor.filter(|floor| *floor > self.start) {
            None => Ok(self),
            Some(floor) if !has_start && floor <= self.end => Ok(Window { start: floor, ..self }),
            Some(floor) => Err(BeforeFloor { param: if has_start { "start_date" } else { "end_date" }, floor }),
        }
    }

    /// Returns the last `days` calendar days including today, at least today.
    pub fn last_days(days: u32, timezone: Timezone, now: Instant) -> Window {
        let today = timezone.day_of(now);
        let before = i32::try_from(days.saturating_sub(1)).unwrap_or(i32::MAX);
        Window { start: today.plus(-before), end: today }
    }

    /// Returns the window of the same length that ends the day before.
    #[must_use]
    pub fn previous_period(self) -> Window {
        let days = i32::try_from(self.len()).unwrap_or(i32::MAX);
        Window { start: self.start.plus(-days), end: self.start.plus(-1) }
    }

    /// Returns the window of the same dates a year earlier. 29 February becomes the 28th.
    #[must_use]
    pub fn previous_year(self) -> Window {
        let year_before = |day: Day| {
            let (year, month, of_month) = day.ymd();
            Day::from_ymd(year - 1, month, of_month).or_else(|| Day::from_ymd(year - 1, month, 28)).unwrap_or(day)
        };
        Window { start: year_before(self.start), end: year_before(self.end) }
    }

    /// Iterates over the days in order.
    pub fn days(self) -> impl DoubleEndedIterator<Item = Day> + Clone {
        (self.start.0..=self.end.0).map(Day)
    }

    /// Returns the number of days.
    #[expect(clippy::len_without_is_empty, reason = "a window has at least one day")]
    pub fn len(self) -> usize {
        usize::try_from(self.end.since(self.start) + 1).unwrap_or(0)
    }

    /// Whether the window contains the day.
    pub fn contains(self, day: Day) -> bool {
        self.start <= day && day <= self.end
    }
}

fn read_day(param: &'static str, text: &str, timezone: Timezone) -> Result<Day, WindowError> {
    let text = text.trim();
    Day::parse(text)
        .or_else(|| Instant::parse_rfc3339(text).map(|instant| timezone.day_of(instant)))
        .or_else(|| parse_with_lost_plus(text).map(|instant| timezone.day_of(instant)))
        .ok_or_else(|| WindowError::NotADate { param, given: text.chars().take(64).collect() })
}

/// Parses `…T10:00:00 02:00`. In a query string, an unescaped `+` reads as a space, which has no
/// other meaning here.
fn parse_with_lost_plus(text: &str) -> Option<Instant> {
    let (time, offset) = text.rsplit_once(' ')?;
    (offset.len() == 5).then(|| Instant::parse_rfc3339(&format!("{time}+{offset}")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(start: Option<&str>, end: Option<&str>, zone: &str) -> Result<String, WindowError> {
        let now = Instant::parse_rfc3339("2024-04-12T23:30:00Z").unwrap();
        let window = Window::resolve(start, end, Timezone::parse(zone).unwrap(), now)?;
        Ok(format!("{} {}", window.start, window.end))
    }

    #[test]
    fn bounds_are_dates_or_times_and_have_defaults() {
        let table = [
            // start, end, timezone, window
            (None, None, "UTC", "2024-03-13 2024-04-12"),
            (None, None, "Europe/Berlin", "2024-03-14 2024-04-13"),
            (Some("2024-04-01"), None, "UTC", "2024-04-01 2024-04-12"),
            (None, Some("2024-03-13"), "UTC", "2024-03-13 2024-03-13"),
            (Some("2024-01-01"), Some("2024-01-31"), "Asia/Tokyo", "2024-01-01 2024-01-31"),
            (Some("2024-01-01T23:30:00Z"), Some("2024-01-31T22:30:00Z"), "Europe/Berlin", "2024-01-02 2024-01-31"),
            (Some("2024-01-01T00:30:00 02:00"), Some("2024-01-01"), "UTC", "2023-12-31 2024-01-01"),
            (Some("2025-01-01"), Some("2025-12-31"), "UTC", "2025-01-01 2025-12-31"),
            (Some("2014-04-06"), Some("2024-04-12"), "UTC", "2014-04-06 2024-04-12"),
        ];
        for (start, end, zone, expected) in table {
            assert_eq!(resolve(start, end, zone).as_deref(), Ok(expected), "{start:?} {end:?} {zone}");
        }
    }

    #[test]
    fn errors_name_the_parameter() {
        let table = [
            (Some("yesterday"), None, "start_date", "must be a date"),
            (Some(""), None, "start_date", "must be a date"),
            (None, Some("2024-02-30"), "end_date", "must be a date"),
            (None, Some("2024-04-01T10:00:00"), "end_date", "must be a date"),
            (Some("2024-04-02"), Some("2024-04-01"), "start_date", "would start on 2024-04-02"),
            (Some("2024-04-13"), None, "start_date", "would start on 2024-04-13"),
            (None, Some("2024-03-12"), "end_date", "would start on 2024-03-13"),
            (Some("2014-04-05"), Some("2024-04-12"), "start_date", "3661 days"),
            (Some("0000-01-01"), Some("9999-12-31"), "start_date", "at most 3660"),
        ];
        for (start, end, param, message) in table {
            let error = resolve(start, end, "UTC").unwrap_err();
            assert_eq!(error.param(), param, "{start:?} {end:?}");
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn windows_are_compared_with_earlier_ones() {
        let window = |start, end| Window { start: Day::parse(start).unwrap(), end: Day::parse(end).unwrap() };
        let table = [
            // window, previous period, previous year
            (("2024-03-01", "2024-03-31"), ("2024-01-30", "2024-02-29"), ("2023-03-01", "2023-03-31")),
            (("2024-02-29", "2024-02-29"), ("2024-02-28", "2024-02-28"), ("2023-02-28", "2023-02-28")),
            (("2024-02-01", "2024-03-01"), ("2024-01-02", "2024-01-31"), ("2023-02-01", "2023-03-01")),
        ];
        for ((start, end), period, year) in table {
            assert_eq!(window(start, end).previous_period(), window(period.0, period.1), "{start}");
            assert_eq!(window(start, end).previous_year(), window(year.0, year.1), "{start}");
        }
    }

    #[test]
    fn windows_know_their_days() {
        let now = Instant::parse_rfc3339("2024-03-01T12:00:00Z").unwrap();
        let window = Window::last_days(3, Timezone::UTC, now);
        let days: Vec<String> = window.days().map(|day| day.to_string()).collect();
        assert_eq!(days, ["2024-02-28", "2024-02-29", "2024-03-01"]);
        assert_eq!(window.len(), 3);
        assert!(window.contains(window.start) && window.contains(window.end));
        assert!(!window.contains(window.end.next()) && !window.contains(window.start.plus(-1)));
        assert_eq!(Window::last_days(0, Timezone::UTC, now).len(), 1);
        assert!(Window::depends_on_today(Some("2024-01-01"), None));
        assert!(!Window::depends_on_today(Some("2024-01-01"), Some("2024-01-02")));
    }

    #[test]
    fn days_have_four_digit_years() {
        let east = Timezone::parse("Pacific/Kiritimati").unwrap();
        let west = Timezone::parse("America/New_York").unwrap();
        let now = Instant(1_790_000_000_000);
        for (instant, timezone) in [("0000-01-01T00:00:00+23:00", west), ("9999-12-31T23:59:59-12:00", east)] {
            let refused = Window::resolve(Some(instant), Some(instant), timezone, now);
            assert!(matches!(refused, Err(WindowError::NotADate { .. })), "{instant}: {refused:?}");
        }
        assert!(Window::resolve(Some("9999-12-31"), Some("9999-12-31"), east, now).is_ok());
    }
}
