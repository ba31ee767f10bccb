//! Instants, days and windows.

use crate::json::Json;
use chrono::{DateTime, Days, NaiveDate, SecondsFormat};
use chrono_tz::Tz;

/// The number of milliseconds by which an event may be ahead of its time of receipt before it is
/// clamped to it.
pub const AHEAD_MS: i64 = 5 * 60 * 1000;

/// The timezone of confirmations, salts and instants.
pub const UTC: Tz = Tz::UTC;

/// 1990-01-01, the earliest accepted time.
pub const OLDEST_MS: i64 = 631_152_000_000;

/// Parses an RFC 3339 instant as milliseconds since the epoch; finer digits are dropped.
#[must_use]
pub fn instant_ms(text: &str) -> Option<i64> {
    Some(DateTime::parse_from_rfc3339(text).ok()?.timestamp_millis())
}

/// Returns the calendar day of an instant in a timezone.
#[must_use]
pub fn day_of(at_ms: i64, timezone: Tz) -> NaiveDate {
    DateTime::from_timestamp_millis(at_ms).unwrap_or_default().with_timezone(&timezone).date_naive()
}

/// Formats an instant as answers show it: RFC 3339, UTC, milliseconds.
#[must_use]
pub fn shown(at_ms: i64) -> Json {
    let at = DateTime::from_timestamp_millis(at_ms).unwrap_or_default();
    Json::from(at.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// A range of whole days, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The first day.
    pub first: NaiveDate,
    /// The last day.
    pub last: NaiveDate,
}

impl Window {
    /// Returns the last `days` calendar days, including `today`.
    #[must_use]
    pub fn last_days(today: NaiveDate, days: u64) -> Window {
        Window { first: today - Days::new(days - 1), last: today }
    }

    /// Whether the window contains the day.
    #[must_use]
    pub fn holds(&self, day: NaiveDate) -> bool {
        self.first <= day && day <= self.last
    }

    /// Returns the days, in order.
    pub fn days(&self) -> impl Iterator<Item = NaiveDate> + use<> {
        let last = self.last;
        self.first.iter_days().take_while(move |day| *day <= last)
    }
}

/// Parses a bound of a window: a day, or an instant, which stands for its day.
#[must_use]
pub fn bound(text: &str, timezone: Tz) -> Option<NaiveDate> {
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return (text.len() == 10).then_some(day);
    }
    Some(day_of(instant_ms(text)?, timezone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_the_timezones() {
        let new_york = chrono_tz::America::New_York;
        let day = |text| day_of(instant_ms(text).unwrap(), new_york).to_string();
        assert_eq!(day("2024-03-10T04:59:59.999Z"), "2024-03-09");
        assert_eq!(day("2024-03-10T05:00:00Z"), "2024-03-10");
        assert_eq!(day("2024-03-11T03:59:59.9999Z"), "2024-03-10");
        assert_eq!(bound("2024-03-10T03:00:00Z", new_york).unwrap().to_string(), "2024-03-09");
        assert_eq!(bound("2024-3-1", new_york), None);
    }
}
