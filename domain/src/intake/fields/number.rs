//! JSON numbers compared by exact value.

use std::cmp::Ordering;
use std::fmt;

use crate::json_number::JsonNumber;

/// The number of digits that always fit into an `i128`.
const MICROS_DIGITS: usize = 38;
/// The magnitudes that are written without an exponent.
const WRITTEN_OUT: std::ops::RangeInclusive<i64> = -7..=20;

/// The exact value of a JSON number: 5, 5.0 and 5e0 are equal; 9007199254740992 and
/// 9007199254740993 are not. Numbers smaller than 10^-10^12 compare by their digits.
///
/// Displayed as the shortest decimal, which is also a JSON number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Number {
    negative: bool,
    /// The power of ten of the first digit.
    magnitude: i64,
    /// The digits from the first to the last nonzero one; empty for zero.
    digits: Box<str>,
}

impl Number {
    /// Parses the text of a JSON number (RFC 8259 §6) of any length; `None` if it is not one.
    #[must_use]
    pub fn parse(json: &str) -> Option<Number> {
        let JsonNumber { negative, whole, fraction, exponent } = JsonNumber::parse(json)?;
        let written = [whole, fraction].concat();
        let significant = written.trim_start_matches('0');
        let zeros = written.len() - significant.len();
        let digits = significant.trim_end_matches('0');
        if digits.is_empty() {
            return Some(Number { negative: false, magnitude: i64::MIN, digits: "".into() });
        }
        let magnitude = whole.len() as i64 - 1 - zeros as i64 + exponent;
        Some(Number { negative, magnitude, digits: digits.into() })
    }

    /// Returns the number in millionths, rounded half away from zero; `None` if it needs more than
    /// 38 digits.
    pub(crate) fn rounded_micros(&self) -> Option<i128> {
        // The number of digits of the whole millionths.
        let whole = if self.digits.is_empty() { -1 } else { self.magnitude.saturating_add(7) };
        let Ok(whole) = usize::try_from(whole) else { return Some(0) };
        if whole > MICROS_DIGITS {
            return None;
        }
        let digits = self.digits.as_bytes();
        let digit = |place: usize| i128::from(digits.get(place).copied().unwrap_or(b'0') - b'0');
        let micros = (0..whole).fold(0, |micros, place| micros * 10 + digit(place)) + i128::from(digit(whole) >= 5);
        Some(if self.negative { -micros } else { micros })
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Number) -> Ordering {
        let size = (self.magnitude, &self.digits).cmp(&(other.magnitude, &other.digits));
        match (self.negative, other.negative) {
            (false, false) => size,
            (true, true) => size.reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let digits = &*self.digits;
        if digits.is_empty() {
            return f.write_str("0");
        }
        if !WRITTEN_OUT.contains(&self.magnitude) {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            return write!(f, "{sign}{first}{point}{rest}e{}", self.magnitude);
        }
        // The size is in `WRITTEN_OUT`, so the conversions keep the value.
        let size = self.magnitude.unsigned_abs() as usize;
        if self.magnitude < 0 {
            write!(f, "{sign}0.{}{digits}", "0".repeat(size - 1))
        } else if digits.len() <= size + 1 {
            write!(f, "{sign}{digits:0<width$}", width = size + 1)
        } else {
            let (whole, fraction) = digits.split_at(size + 1);
            write!(f, "{sign}{whole}.{fraction}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn spellings_of_one_value_are_one_number() {
        let table = [
            // shown, and other spellings
            ("0", "0.0 -0 0e7 0e999999999999999999999 -0.000"),
            ("5", "5 5.0 5e0 50e-1 0.5E+1 0.05e2"),
            ("-2.5", "-2.50 -25e-1 -0.25e1"),
            ("100", "1e2 1E+2 100.00"),
            ("0.000001", "1e-6 0.1e-5"),
            ("9007199254740993", "9007199254740993 9007199254740993.0 9.007199254740993e15"),
            ("100000000000000000000", "1e20"),
            ("1e21", "1000000000000000000000"),
            ("1.5e-8", "0.000000015"),
            ("1e1000000000000", "1e1000000000000 1e99999999999999999999"),
        ];
        for (shown, spellings) in table {
            for spelling in spellings.split(' ') {
                assert_eq!(number(spelling), number(shown), "{spelling}");
                assert_eq!(number(spelling).to_string(), shown, "{spelling}");
            }
        }
    }

    #[test]
    fn numbers_are_ordered_by_value() {
        let ascending = "-1e400 -100 -99.9 -5 -4.9 -1e-400 0 1e-400 0.049 0.05 0.5 4.9 5 5.01 10 12 120 123 \
                         9007199254740992 9007199254740993 1e400";
        let ascending: Vec<&str> = ascending.split(' ').collect();
        for (i, smaller) in ascending.iter().enumerate() {
            for (j, larger) in ascending.iter().enumerate() {
                assert_eq!(number(smaller).cmp(&number(larger)), i.cmp(&j), "{smaller} and {larger}");
            }
        }
    }

    #[test]
    fn what_json_does_not_call_a_number_is_none() {
        for text in
            ["", "-", "+1", "01", "-01", "1.", ".5", "1e", "1e+", "e5", "1.e5", "--1", "1 ", " 1", "0x1", "NaN", "٣", "1e1.5"]
        {
            assert_eq!(Number::parse(text), None, "{text}");
        }
    }

    #[test]
    fn millionths_are_rounded_half_away_from_zero() {
        let nines = "99999999999999999999999999999999";
        let table = [
            ("0", Some(0)),
            ("-0.0", Some(0)),
            ("12", Some(12_000_000)),
            ("0.1", Some(100_000)),
            ("-2.5", Some(-2_500_000)),
            ("0.0000005", Some(1)),
            ("-0.0000005", Some(-1)),
            ("0.00000049999", Some(0)),
            ("1.2345674999", Some(1_234_567)),
            ("1.2345675", Some(1_234_568)),
            ("5e-8", Some(0)),
            ("9e-400", Some(0)),
            ("1e31", Some(10_i128.pow(37))),
            (nines, Some(10_i128.pow(38) - 1_000_000)),
            (&format!("{nines}.9999999"), Some(10_i128.pow(38))),
            ("1e32", None),
            ("-1e400", None),
        ];
        for (text, micros) in table {
            assert_eq!(number(text).rounded_micros(), micros, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?") {
            let shown = number(&text).to_string();
            prop_assert_eq!(number(&shown), number(&text));
            prop_assert!(serde_json::from_str::<&serde_json::value::RawValue>(&shown).is_ok());
        }

        #[test]
        fn whole_numbers_compare_as_integers_do(a in any::<i64>(), b in any::<i64>()) {
            prop_assert_eq!(number(&a.to_string()).cmp(&number(&b.to_string())), a.cmp(&b));
        }

        #[test]
        fn no_text_panics(text in ".{0,20}", like in "[-+]?[0-9]{0,30}[.eE]?[-+]?[0-9]{0,30}[eE]?[0-9]{0,25}") {
            let _ = Number::parse(&text);
            let _ = Number::parse(&like).map(|number| number.to_string());
        }
    }
}
