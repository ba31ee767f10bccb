//! Instants in milliseconds, and the rules for timestamps that clients send.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::MS_PER_DAY;
use super::calendar::civil_from_days;

/// The number of milliseconds by which an event's timestamp may be ahead of the server: 5 minutes.
pub const MAX_AHEAD_MS: i64 = 5 * 60 * 1000;

/// The earliest accepted timestamp of an event: 1990-01-01T00:00:00.000Z.
pub const EARLIEST: Instant = Instant(631_152_000_000);

/// A point in time, as milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Instant(pub i64);

impl Instant {
    /// Returns the UTC day, counted from 1970-01-01.
    pub const fn utc_day(self) -> i64 {
        self.0.div_euclid(MS_PER_DAY)
    }

    /// Milliseconds since the epoch.
    pub const fn epoch_ms(self) -> i64 {
        self.0
    }

    /// Parses the text of a JSON number as milliseconds since the epoch. Fractions are rounded
    /// towards the past; numbers out of range saturate.
    pub(crate) fn parse_epoch_ms(json_number_text: &str) -> Option<Instant> {
        if let Ok(epoch_ms) = json_number_text.parse() {
            // `parse` accepts a plus sign, JSON doesn't.
            return (!json_number_text.starts_with('+')).then_some(Instant(epoch_ms));
        }
        let is_numeric = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'e' | b'E' | b'+');
        if !json_number_text.bytes().all(is_numeric) || json_number_text.starts_with('+') {
            return None;
        }
        // An f64 represents milliseconds exactly for 285,000 years, and the cast saturates.
        let number: f64 = json_number_text.parse().ok()?;
        Some(Instant(number.floor() as i64))
    }

    /// Parses the text of a JSON number as seconds since the epoch; digits beyond milliseconds are
    /// dropped.
    pub(crate) fn parse_epoch_seconds(json_number_text: &str) -> Option<Instant> {
        let (whole, fraction) = json_number_text.split_once('.').unwrap_or((json_number_text, ""));
        if fraction.bytes().all(|byte| byte.is_ascii_digit()) && whole.parse::<i64>().is_ok() {
            let milliseconds = fraction.get(..3).unwrap_or(fraction);
            return Self::parse_epoch_ms(&format!("{whole}{milliseconds:0<3}"));
        }
        // With an exponent, which is never used in practice.
        let seconds: f64 = json_number_text.parse().ok()?;
        Some(Instant((seconds * 1000.0).floor() as i64))
    }

    /// Parses an RFC 3339 date and time. Digits beyond milliseconds are dropped; a leap second
    /// becomes the following second.
    pub fn parse_rfc3339(text: &str) -> Option<Instant> {
        // `chrono` also takes U+2212 as the sign of an offset.
        let time = chrono::DateTime::parse_from_rfc3339(text).ok().filter(|_| text.is_ascii())?;
        Some(Instant(time.timestamp_millis()))
    }

    /// Adds `ms` milliseconds, which may be negative; saturates.
    #[must_use]
    pub const fn plus_ms(self, ms: i64) -> Instant {
        Instant(self.0.saturating_add(ms))
    }

    /// Returns the time by the receiver's clock, if this time and `sent_at` come from the sender's.
    /// A clock may be wrong, but the difference between two of its times is right.
    #[must_use]
    pub const fn corrected(self, sent_at: Instant, received: Instant) -> Instant {
        received.plus_ms(self.0.saturating_sub(sent_at.0))
    }
}

impl fmt::Display for Instant {
    /// Writes RFC 3339 in UTC with milliseconds: `2024-04-12T10:05:00.000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, of_day) = (self.0.div_euclid(MS_PER_DAY), self.0.rem_euclid(MS_PER_DAY));
        let (year, month, day) = civil_from_days(days);
        let (seconds, millisecond) = (of_day / 1000, of_day % 1000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
    }
}

/// The time of an event, resolved from its timestamp and its time of receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClampedTime {
    /// The resolved time.
    pub at: Instant,
    /// Whether the time of receipt replaced the timestamp, which was too far in the future.
    pub clamped: bool,
}

/// The error for a timestamp before [`EARLIEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is before 1990-01-01")]
pub struct TooEarly;

/// Resolves the time of an event: its timestamp, or the time of receipt if the timestamp is missing
/// or more than [`MAX_AHEAD_MS`] ahead.
///
/// # Errors
/// [`TooEarly`] if the timestamp is before [`EARLIEST`].
pub fn clamp_timestamp(timestamp: Option<Instant>, received: Instant) -> Result<ClampedTime, TooEarly> {
    match timestamp {
        None => Ok(ClampedTime { at: received, clamped: false }),
        Some(timestamp) if timestamp < EARLIEST => Err(TooEarly),
        Some(timestamp) if timestamp > received.plus_ms(MAX_AHEAD_MS) => Ok(ClampedTime { at: received, clamped: true }),
        Some(timestamp) => Ok(ClampedTime { at: timestamp, clamped: false }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wrong_clock_is_corrected() {
        let received = Instant(1_700_000_000_000);
        for (stated, sent_at, corrected) in
            [(5, 7, received.0 - 2), (7, 7, received.0), (8, 7, received.0 + 1), (i64::MIN, 0, i64::MIN + received.0)]
        {
            assert_eq!(Instant(stated).corrected(Instant(sent_at), received), Instant(corrected));
        }
    }

    #[test]
    fn rfc3339_is_read_and_printed_in_utc() {
        let table = [
            ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
            ("2024-04-12T10:05:00Z", "2024-04-12T10:05:00.000Z"),
            ("2024-04-12t10:05:00z", "2024-04-12T10:05:00.000Z"),
            ("2024-04-12 10:05:00Z", "2024-04-12T10:05:00.000Z"),
            ("2024-04-12T10:05:00+02:00", "2024-04-12T08:05:00.000Z"),
            ("2024-01-01T00:30:00.5+05:30", "2023-12-31T19:00:00.500Z"),
            ("2023-12-31T23:59:59.999999999-00:00", "2023-12-31T23:59:59.999Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ];
        for (text, printed) in table {
            let instant = Instant::parse_rfc3339(text).map(|instant| instant.to_string());
            assert_eq!(instant.as_deref(), Some(printed), "{text}");
        }
        assert_eq!(EARLIEST.to_string(), "1990-01-01T00:00:00.000Z");
    }

    #[test]
    fn other_texts_are_no_rfc3339() {
        for text in [
            "",
            "2024-04-12",
            "2024-04-12T10:05:00",
            "2024-04-12T10:05Z",
            "2024-04-12T10:05:00.Z",
            "2024-04-12T24:00:00Z",
            "2024-04-12T10:60:00Z",
            "2024-02-30T10:00:00Z",
            "2024-04-12T10:05:00+0200",
            "2024-04-12T10:05:00+24:00",
            "2024-04-12T10:05:00Z ",
            "2024-04-12T10:05:00é",
            "1712916300000",
        ] {
            assert_eq!(Instant::parse_rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn epoch_milliseconds_are_cut_to_whole_ones() {
        let table = [
            ("0", Some(0)),
            ("1712916300000", Some(1_712_916_300_000)),
            ("1712916300000.9", Some(1_712_916_300_000)),
            ("1.7129163e12", Some(1_712_916_300_000)),
            ("-0.5", Some(-1)),
            ("1e400", Some(i64::MAX)),
            ("-1e400", Some(i64::MIN)),
            ("99999999999999999999999", Some(i64::MAX)),
            ("", None),
            ("+5", None),
            ("inf", None),
            ("NaN", None),
            ("1-2", None),
        ];
        for (text, expected) in table {
            assert_eq!(Instant::parse_epoch_ms(text).map(Instant::epoch_ms), expected, "{text}");
        }
    }

    #[test]
    fn epoch_seconds_are_read_exactly() {
        for (text, expected) in [
            ("1714989600", Some(1_714_989_600_000)),
            ("1714989600.5", Some(1_714_989_600_500)),
            ("1714989600.123", Some(1_714_989_600_123)),
            ("1714989600.1239999", Some(1_714_989_600_123)),
            ("1.7149896e9", Some(1_714_989_600_000)),
            ("0", Some(0)),
            ("-5", Some(-5_000)),
            ("99999999999999999999", Some(i64::MAX)),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(Instant::parse_epoch_seconds(text).map(Instant::epoch_ms), expected, "{text}");
        }
    }

    #[test]
    fn the_reported_time_counts_unless_it_lies_too_far_ahead() {
        let received = Instant(1_712_916_300_000);
        let clamp = |ms| clamp_timestamp(Some(received.plus_ms(ms)), received);
        assert_eq!(clamp_timestamp(None, received), Ok(ClampedTime { at: received, clamped: false }));
        assert_eq!(clamp(-1000), Ok(ClampedTime { at: Instant(received.0 - 1000), clamped: false }));
        assert_eq!(clamp(MAX_AHEAD_MS), Ok(ClampedTime { at: Instant(received.0 + MAX_AHEAD_MS), clamped: false }));
        assert_eq!(clamp(MAX_AHEAD_MS + 1), Ok(ClampedTime { at: received, clamped: true }));
        assert_eq!(clamp_timestamp(Some(EARLIEST), received), Ok(ClampedTime { at: EARLIEST, clamped: false }));
        assert_eq!(clamp_timestamp(Some(EARLIEST.plus_ms(-1)), received), Err(TooEarly));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(ms in -62_167_219_200_000i64..=253_402_300_799_999) {
            prop_assert_eq!(Instant::parse_rfc3339(&Instant(ms).to_string()), Some(Instant(ms)));
        }

        #[test]
        fn chrono_agrees(ms in -62_167_219_200_000i64..=253_402_300_799_999, minutes in -1439i32..=1439) {
            let zone = chrono::FixedOffset::east_opt(minutes * 60).unwrap();
            let there = chrono::DateTime::from_timestamp_millis(ms).unwrap().with_timezone(&zone);
            let text = there.to_rfc3339();
            prop_assume!(text.len() < 32 && !text.starts_with(['-', '+']));
            prop_assert_eq!(Instant::parse_rfc3339(&text), Some(Instant(ms)));
        }

        #[test]
        fn nothing_panics(
            text in ".{0,40}",
            shaped in "[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.]{8,14}[Zz+-]?[0-9:]{0,5}",
            ms in any::<i64>(),
        ) {
            let _ = (Instant::parse_rfc3339(&text), Instant::parse_rfc3339(&shaped), Instant::parse_epoch_ms(&text));
            let _ = (Instant(ms).to_string(), clamp_timestamp(Some(Instant(ms)), Instant(i64::MAX)));
        }
    }
}
