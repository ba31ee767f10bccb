//! The timezone of an organization, which defines its days.

use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, LocalResult, NaiveDateTime, Offset, TimeZone as _};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Day, Instant, MS_PER_DAY};

/// An IANA timezone. Serialized by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timezone(chrono_tz::Tz);

/// The error for text that is not a name of the IANA timezone database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not an IANA timezone name, such as Europe/Berlin")]
pub struct UnknownTimezone;

impl Timezone {
    /// Coordinated universal time, the default.
    pub const UTC: Timezone = Timezone(chrono_tz::Tz::UTC);

    /// Parses an IANA name, in its exact spelling: `Europe/Berlin`.
    ///
    /// # Errors
    /// [`UnknownTimezone`] if the database has no such name.
    pub fn parse(name: &str) -> Result<Timezone, UnknownTimezone> {
        name.parse().map(Timezone).map_err(|_| UnknownTimezone)
    }

    /// The IANA name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the local calendar day at an instant.
    pub fn day_of(self, instant: Instant) -> Day {
        let local_ms = instant.0.saturating_add(self.offset_ms(instant));
        let days = local_ms.div_euclid(MS_PER_DAY);
        // Days outside the calendar's range saturate.
        Day(i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }))
    }

    /// Returns the first instant of a day. For a day that the timezone skipped, returns the first
    /// instant of the next day.
    pub fn start_of(self, day: Day) -> Instant {
        self.midnight(day, LocalResult::earliest)
    }

    /// Returns the instant after the last one of a day. If clocks are set back over midnight, it is
    /// later than the start of the next day.
    pub fn end_of(self, day: Day) -> Instant {
        self.midnight(day.next(), LocalResult::latest)
    }

    /// Returns an instant at which a day begins. If clocks skip midnight, returns the first instant
    /// after the jump.
    fn midnight(self, day: Day, pick: fn(LocalResult<DateTime<chrono_tz::Tz>>) -> Option<DateTime<chrono_tz::Tz>>) -> Instant {
        let local_ms = i64::from(day.0) * MS_PER_DAY;
        if let Some(at) = naive(local_ms).and_then(|local| pick(self.0.from_local_datetime(&local))) {
            return Instant(at.timestamp_millis());
        }
        // Local time is at most a day from UTC, and always rises around a forward jump.
        let (mut before, mut after) = (local_ms - 2 * MS_PER_DAY, local_ms + 2 * MS_PER_DAY);
        while after - before > 1 {
            let middle = before + (after - before) / 2;
            if self.day_of(Instant(middle)) < day { before = middle } else { after = middle }
        }
        Instant(after)
    }

    /// The number of milliseconds by which local time is ahead of UTC.
    fn offset_ms(self, instant: Instant) -> i64 {
        if self == Timezone::UTC {
            return 0;
        }
        naive(instant.0).map_or(0, |utc| seconds_east(&self.0.offset_from_utc_datetime(&utc)) * 1000)
    }
}

fn naive(epoch_ms: i64) -> Option<NaiveDateTime> {
    DateTime::from_timestamp_millis(epoch_ms).map(|utc| utc.naive_utc())
}

fn seconds_east(offset: &impl Offset) -> i64 {
    i64::from(offset.fix().local_minus_utc())
}

impl Default for Timezone {
    fn default() -> Timezone {
        Timezone::UTC
    }
}

impl FromStr for Timezone {
    type Err = UnknownTimezone;

    fn from_str(name: &str) -> Result<Timezone, UnknownTimezone> {
        Timezone::parse(name)
    }
}

impl fmt::Display for Timezone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Timezone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Timezone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timezone, D::Error> {
        Timezone::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zone(name: &str) -> Timezone {
        Timezone::parse(name).unwrap_or_else(|_| panic!("{name}"))
    }

    fn at(text: &str) -> Instant {
        Instant::parse_rfc3339(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn days_follow_the_wall_clock() {
        let table = [
            // zone, instant, day there
            ("UTC", "2024-04-12T23:59:59.999Z", "2024-04-12"),
            ("Europe/Berlin", "2024-03-30T22:59:59.999Z", "2024-03-30"),
            ("Europe/Berlin", "2024-03-30T23:00:00Z", "2024-03-31"),
            ("Europe/Berlin", "2024-03-31T21:59:59.999Z", "2024-03-31"),
            ("Europe/Berlin", "2024-03-31T22:00:00Z", "2024-04-01"),
            ("America/Los_Angeles", "2024-11-04T07:59:59Z", "2024-11-03"),
            ("Asia/Kolkata", "2024-01-01T18:30:00Z", "2024-01-02"),
            ("Pacific/Kiritimati", "2024-01-01T10:00:00Z", "2024-01-02"),
            ("Pacific/Apia", "2011-12-30T10:00:00Z", "2011-12-31"),
        ];
        for (name, instant, day) in table {
            assert_eq!(zone(name).day_of(at(instant)).to_string(), day, "{name} {instant}");
        }
    }

    #[test]
    fn days_start_at_midnight_or_after_the_jump_over_it() {
        let table = [
            // zone, day, its first instant
            ("UTC", "2024-04-12", "2024-04-12T00:00:00.000Z"),
            ("Europe/Berlin", "2024-03-31", "2024-03-30T23:00:00.000Z"),
            ("Europe/Berlin", "2024-04-01", "2024-03-31T22:00:00.000Z"),
            // 23:59:59 is followed by 01:00:00.
            ("America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00.000Z"),
            ("Africa/Cairo", "2024-04-26", "2024-04-25T22:00:00.000Z"),
            // 00:59:59 is followed by 00:00:00 of the same day.
            ("America/Havana", "2024-11-03", "2024-11-03T04:00:00.000Z"),
            // The day before was left out.
            ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00.000Z"),
        ];
        for (name, day, start) in table {
            let (day, start) = (Day::parse(day).unwrap(), Instant::parse_rfc3339(start).unwrap());
            assert_eq!(zone(name).day_of(start), day, "{name}");
            assert!(zone(name).day_of(start.plus_ms(-1)) < day, "{name} {day}");
            assert_eq!(zone(name).start_of(day), start, "{name} {day}");
        }
    }

    #[test]
    fn days_have_the_hours_of_their_clocks() {
        let table = [
            // zone, day, minutes
            ("UTC", "2024-04-12", 1_440),
            ("Europe/Berlin", "2024-03-31", 1_380),
            ("Europe/Berlin", "2024-10-27", 1_500),
            ("Australia/Lord_Howe", "2024-04-07", 1_470),
            ("America/Sao_Paulo", "2018-11-04", 1_380),
            ("America/Sao_Paulo", "2018-02-17", 1_500),
            ("Africa/Cairo", "2024-04-26", 1_380),
            ("America/Havana", "2024-11-03", 1_500),
            // At 00:01 the clocks were set back to 23:01 of the day before.
            ("America/St_Johns", "2010-11-06", 1_500),
            ("Pacific/Apia", "2011-12-30", 0),
        ];
        for (name, day, minutes) in table {
            let day = Day::parse(day).unwrap();
            let (start, end) = (zone(name).start_of(day), zone(name).end_of(day));
            assert_eq!(end.0 - start.0, minutes * 60_000, "{name} {day}");
        }
    }

    #[test]
    fn names_are_the_iana_ones() {
        assert_eq!(zone("America/Argentina/Ushuaia").to_string(), "America/Argentina/Ushuaia");
        for name in ["", "Mars/Olympus", "europe/berlin", "+02:00"] {
            assert_eq!(Timezone::parse(name), Err(UnknownTimezone), "{name}");
        }
        let json = serde_json::to_string(&zone("Europe/Berlin")).unwrap();
        assert_eq!(json, r#""Europe/Berlin""#);
        assert_eq!(serde_json::from_str::<Timezone>(&json).unwrap(), zone("Europe/Berlin"));
    }

    proptest! {
        #[test]
        fn nothing_panics(ms in any::<i64>()) {
            for name in ["UTC", "America/Sao_Paulo", "Asia/Kathmandu"] {
                let _ = zone(name).day_of(Instant(ms));
            }
        }
    }
}
