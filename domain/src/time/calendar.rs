//! Days and months of the proleptic Gregorian calendar.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The days in 400 years, the period of the calendar.
const DAYS_PER_ERA: i64 = 146_097;
/// The days from 0000-03-01, the origin of the arithmetic, to 1970-01-01.
const EPOCH_OFFSET_DAYS: i64 = 719_468;

/// A calendar day, as days since 1970-01-01. The timezone decides which instants it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Day(pub i32);

impl Day {
    /// Parses exactly `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Day> {
        let bytes = text.as_bytes();
        if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
            return None;
        }
        Day::from_ymd(number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..])?)
    }

    /// Returns the day of a date; `None` if the date does not exist.
    pub fn from_ymd(year: i32, month: i32, day: i32) -> Option<Day> {
        if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
            return None;
        }
        i32::try_from(days_from_civil(year, month, day)).ok().map(Day)
    }

    /// Returns year, month (1–12) and day of the month (1–31).
    pub fn ymd(self) -> (i32, i32, i32) {
        let (year, month, day) = civil_from_days(i64::from(self.0));
        // The years of an `i32` of days are within ±5.9 million.
        (year as i32, month as i32, day as i32)
    }

    /// Returns the next day. Saturates at the last representable day.
    #[must_use]
    pub const fn next(self) -> Day {
        self.plus(1)
    }

    /// Adds `days`, which may be negative.
    #[must_use]
    pub const fn plus(self, days: i32) -> Day {
        Day(self.0.saturating_add(days))
    }

    /// Returns the number of days from `other` to this day; negative if this day is earlier.
    pub const fn since(self, other: Day) -> i64 {
        self.0 as i64 - other.0 as i64
    }

    /// Returns the month of the day.
    pub fn month(self) -> Month {
        let (year, month, _) = self.ymd();
        Month(year * 12 + month - 1)
    }
}

impl fmt::Display for Day {
    /// Writes `YYYY-MM-DD`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.ymd();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

/// A calendar month, as `year × 12 + (month − 1)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Month(pub i32);

impl Month {
    /// Parses exactly `YYYY-MM`.
    pub fn parse(text: &str) -> Option<Month> {
        let bytes = text.as_bytes();
        if bytes.len() != 7 || bytes[4] != b'-' {
            return None;
        }
        let (year, month): (i32, i32) = (number(&bytes[..4])?, number(&bytes[5..])?);
        (1..=12).contains(&month).then(|| Month(year * 12 + month - 1))
    }

    /// Returns the year.
    pub const fn year(self) -> i32 {
        self.0.div_euclid(12)
    }

    /// Returns the month of the year, 1–12.
    pub(crate) const fn of_year(self) -> i32 {
        self.0.rem_euclid(12) + 1
    }

    /// Returns the first day of the month. Saturates at the last representable day.
    pub fn first_day(self) -> Day {
        let days = days_from_civil(self.year(), self.of_year(), 1);
        Day(i32::try_from(days).unwrap_or(if days < 0 { i32::MIN } else { i32::MAX }))
    }

    /// Returns the next month.
    #[must_use]
    pub const fn next(self) -> Month {
        Month(self.0.saturating_add(1))
    }
}

impl fmt::Display for Month {
    /// Writes `YYYY-MM`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year(), self.of_year())
    }
}

/// Parses ASCII digits, and nothing else.
fn number(digits: &[u8]) -> Option<i32> {
    digits.iter().try_fold(0i32, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| i32::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

fn days_in_month(year: i32, month: i32) -> i32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970-01-01 to a date. Years start in March, so that the leap day comes
/// last. The arithmetic follows Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
fn days_from_civil(year: i32, month: i32, day: i32) -> i64 {
    let (month, day) = (i64::from(month), i64::from(day));
    let year = i64::from(year) - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - EPOCH_OFFSET_DAYS
}

/// Returns the date that lies `days` after 1970-01-01; the inverse of [`days_from_civil`].
pub(super) fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_OFFSET_DAYS;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn days_are_read_and_printed() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1969-12-31", -1),
            ("2000-02-29", 11_016),
            ("2024-04-12", 19_825),
            ("0000-01-01", -719_528),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(Day::parse(text), Some(Day(days)), "{text}");
            assert_eq!(Day(days).to_string(), text);
        }
        for text in [
            "",
            "2024-4-12",
            "2024-02-30",
            "2023-02-29",
            "1900-02-29",
            "2024-13-01",
            "2024-00-10",
            "2024-01-00",
            "2024/01/01",
            "2024-01-01T",
            "+024-01-01",
            "２024-01-1",
        ] {
            assert_eq!(Day::parse(text), None, "{text}");
        }
    }

    #[test]
    fn months_are_those_of_their_days() {
        let month = |text: &str| Day::parse(text).unwrap().month();
        assert_eq!(month("2024-12-31").to_string(), "2024-12");
        assert_eq!(month("2024-12-31").next(), month("2025-01-01"));
        assert_eq!(month("1969-12-31"), Month(1969 * 12 + 11));
        assert_eq!(Month::parse("2024-02"), Some(month("2024-02-29")));
        assert_eq!(Month::parse("2024-13"), None);
        assert_eq!(Month(-1).to_string(), "-001-12");
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        let day = Day::parse("2024-02-28").unwrap();
        assert_eq!(day.next().to_string(), "2024-02-29");
        assert_eq!(day.plus(-59).to_string(), "2023-12-31");
        assert_eq!(day.next().since(day), 1);
        assert_eq!(Day(i32::MAX).next(), Day(i32::MAX));
        assert_eq!(Day(i32::MIN).plus(-1), Day(i32::MIN));
    }

    proptest! {
        #[test]
        fn a_date_reads_back(days in -719_528i32..=2_932_896) {
            prop_assert_eq!(Day::parse(&Day(days).to_string()), Some(Day(days)));
            let month = Day(days).month();
            prop_assert_eq!(Month::parse(&month.to_string()), Some(month));
        }

        #[test]
        fn every_day_has_a_date(days in any::<i32>()) {
            let (year, month, day) = Day(days).ymd();
            prop_assert_eq!(Day::from_ymd(year, month, day), Some(Day(days)));
        }

        #[test]
        fn no_text_panics(text in ".{0,12}") {
            let _ = (Day::parse(&text), Month::parse(&text));
        }
    }
}
