//! Exact decimals for money and every other summed number; never floats.
//!
//! An [`Amount`] is an integer number of millionths, so 0.1 + 0.2 is 0.3 and a sum does not depend
//! on its order. Figures that need rounding (ratios, conversions) are rounded once, to 6 places,
//! halves away from zero.

mod currency;
mod decimal;
mod rate;

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

use serde::{Deserialize, Serialize};

pub use currency::{Currency, CurrencyError};
pub use decimal::AmountError;
pub use rate::{MAX_CONVERTED_UNITS, Rate, RateError, convert};

/// The number of decimal places of an [`Amount`].
pub const AMOUNT_DECIMALS: u32 = 6;
/// Millionths in one unit of a currency.
pub const MICROS_PER_UNIT: i128 = 1_000_000;
/// The largest absolute value of an event's amount, in whole units: 1e12.
pub const MAX_UNITS: i128 = 1_000_000_000_000;

/// An exact amount in millionths of its unit: a currency, or the unit of a metadata field.
///
/// Sums never panic. 1.7e20 amounts of the maximum size fit; larger sums wrap, so removing a
/// contribution always undoes adding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Amount(pub i128);

impl Amount {
    /// An amount of zero.
    pub const ZERO: Amount = Amount(0);

    /// Creates an amount from whole units.
    pub const fn from_units(units: i64) -> Amount {
        // An i64 times a million is at most 1e25.
        Amount(units as i128 * MICROS_PER_UNIT)
    }

    /// Creates an amount from millionths.
    pub const fn from_micros(micros: i128) -> Amount {
        Amount(micros)
    }

    /// The amount in millionths.
    pub const fn micros(self) -> i128 {
        self.0
    }

    /// Parses the text of a JSON number exactly, including exponents, without converting it to a
    /// float.
    ///
    /// # Errors
    /// [`AmountError::NotANumber`] if the text is not a JSON number,
    /// [`AmountError::TooManyDecimals`] if its *value* needs more than 6 decimals (`1.0000000` does
    /// not), [`AmountError::OutOfRange`] beyond ±1e12.
    pub fn parse(json_number_text: &str) -> Result<Amount, AmountError> {
        let micros = decimal::parse_scaled(json_number_text, AMOUNT_DECIMALS, MAX_UNITS)?;
        Ok(Amount(micros))
    }

    /// Parses the text of a JSON number, and rounds it to 6 decimals, halves away from zero.
    ///
    /// # Errors
    /// Same as [`Amount::parse`], except for the number of decimals.
    pub(crate) fn parse_rounded(json_number_text: &str) -> Result<Amount, AmountError> {
        decimal::parse_rounded(json_number_text, AMOUNT_DECIMALS, MAX_UNITS).map(Amount)
    }

    /// Parses an amount as people write it (`" 49.90"`, `"+5"`, `".5"`), and rounds it like
    /// [`Amount::parse_rounded`].
    ///
    /// # Errors
    /// Same as [`Amount::parse_rounded`].
    pub(crate) fn parse_written(text: &str) -> Result<Amount, AmountError> {
        decimal::parse_written(text, AMOUNT_DECIMALS, MAX_UNITS).map(Amount)
    }

    /// Whether the amount is zero, which is neither an order nor a refund.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// Whether the amount is greater than zero, which makes it an order.
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }
}

impl fmt::Display for Amount {
    /// Writes the shortest exact decimal, which is also a JSON number: `0.3`, `-30`, `2500315.63`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::write_scaled(f, self.0, AMOUNT_DECIMALS)
    }
}

impl Add for Amount {
    type Output = Amount;

    fn add(self, other: Amount) -> Amount {
        Amount(self.0.wrapping_add(other.0))
    }
}

impl Sub for Amount {
    type Output = Amount;

    fn sub(self, other: Amount) -> Amount {
        Amount(self.0.wrapping_sub(other.0))
    }
}

impl Neg for Amount {
    type Output = Amount;

    fn neg(self) -> Amount {
        Amount(self.0.wrapping_neg())
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        *self = *self + other;
    }
}

impl SubAssign for Amount {
    fn sub_assign(&mut self, other: Amount) {
        *self = *self - other;
    }
}

impl Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(amounts: I) -> Amount {
        amounts.fold(Amount::ZERO, Add::add)
    }
}

/// Divides `amount` by `divisor`, rounding to 6 places, halves away from zero. Returns 0 if the
/// divisor is 0.
pub fn ratio(amount: Amount, divisor: u64) -> Amount {
    Amount(decimal::divide_half_away(amount.0, i128::from(divisor)))
}

/// Divides the count `n` by the count `d`, rounding to 6 places, halves away from zero. Returns 0
/// if `d` is 0.
pub fn ratio_of_counts(n: u64, d: u64) -> Amount {
    ratio(Amount(i128::from(n) * MICROS_PER_UNIT), d)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn reads_json_numbers_exactly_and_prints_the_shortest_decimal() {
        let table = [
            // text, printed
            ("0", "0"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("0e999999999999999999999999", "0"),
            ("0.3", "0.3"),
            ("-30", "-30"),
            ("2500315.63", "2500315.63"),
            ("1.50e1", "15"),
            ("1E-6", "0.000001"),
            ("100e-2", "1"),
            ("100E+2", "10000"),
            ("1.0000000", "1"),
            ("0.0000010", "0.000001"),
            ("-0.5", "-0.5"),
            ("12.345600", "12.3456"),
            ("1e12", "1000000000000"),
            ("-1000000000000", "-1000000000000"),
            ("999999999999.999999", "999999999999.999999"),
            ("0.00000000000000000000000000000000001e35", "1"),
            ("100000000000000000000000000000000000e-35", "1"),
        ];
        for (text, printed) in table {
            assert_eq!(amount(text).to_string(), printed, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_amount() {
        use AmountError::{NotANumber, OutOfRange, TooManyDecimals};
        let table = [
            ("", NotANumber),
            ("-", NotANumber),
            ("+1", NotANumber),
            ("01", NotANumber),
            ("1.", NotANumber),
            (".5", NotANumber),
            ("1e", NotANumber),
            ("1e+", NotANumber),
            ("1 ", NotANumber),
            ("0x10", NotANumber),
            ("NaN", NotANumber),
            ("1,5", NotANumber),
            ("٣", NotANumber),
            ("0.0000001", TooManyDecimals),
            ("1.0000005", TooManyDecimals),
            ("1e-7", TooManyDecimals),
            ("1e-400", TooManyDecimals),
            ("1e-99999999999999999999", TooManyDecimals),
            ("1000000000000.000001", OutOfRange),
            ("1000000000001", OutOfRange),
            ("-1e13", OutOfRange),
            ("1e400", OutOfRange),
            ("1e99999999999999999999", OutOfRange),
        ];
        for (text, error) in table {
            assert_eq!(Amount::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn sums_carry_no_float_noise() {
        let sum: Amount = ["0.1", "0.2"].into_iter().map(amount).sum();
        assert_eq!(sum, amount("0.3"));
        assert_eq!((amount("10") - amount("40")).to_string(), "-30");
        assert_eq!(-amount("1.5"), amount("-1.5"));
    }

    #[test]
    fn ratios_round_half_away_from_zero() {
        let table = [
            // amount, divisor, ratio
            ("10", 4, "2.5"),
            ("1", 3, "0.333333"),
            ("2", 3, "0.666667"),
            ("-2", 3, "-0.666667"),
            ("0.000001", 2, "0.000001"),
            ("-0.000001", 2, "-0.000001"),
            ("0.000001", 3, "0"),
            ("7", 0, "0"),
            ("5", u64::MAX, "0"),
        ];
        for (text, divisor, expected) in table {
            assert_eq!(ratio(amount(text), divisor).to_string(), expected, "{text} / {divisor}");
        }
        assert_eq!(ratio_of_counts(1, 3).to_string(), "0.333333");
        assert_eq!(ratio_of_counts(1, 0).to_string(), "0");
        assert_eq!(ratio_of_counts(u64::MAX, 1).to_string(), u64::MAX.to_string());
    }

    #[test]
    fn more_decimals_can_be_rounded() {
        for (text, printed) in [
            ("0.30000000000000004", "0.3"),
            ("59.970000000000006", "59.97"),
            ("-0.0000005", "-0.000001"),
            ("0.00000049", "0"),
            ("4.9e-7", "0"),
            ("5e-7", "0.000001"),
            ("5e-8", "0"),
            ("1e-999999999999999", "0"),
            ("0.9999999", "1"),
            ("999999999999.9999999", "1000000000000"),
            ("12.5", "12.5"),
        ] {
            assert_eq!(Amount::parse_rounded(text).unwrap().to_string(), printed, "{text}");
        }
        for text in ["1000000000000.0000005", "1e13", "", "1.", "a"] {
            assert!(Amount::parse_rounded(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
        for (text, printed) in [
            ("49.90", "49.9"),
            (" 49.90\n", "49.9"),
            ("+5", "5"),
            ("-.5", "-0.5"),
            ("5.", "5"),
            ("007", "7"),
            ("00000000000000000000000000000000000000000000000000.10000005", "0.1"),
            ("1e3", "1000"),
            ("3.3000000000000003", "3.3"),
            ("-0.0000005", "-0.000001"),
        ] {
            assert_eq!(Amount::parse_written(text).unwrap().to_string(), printed, "{text}");
        }
        for text in [
            "",
            " ",
            ".",
            "-",
            "+",
            "--5",
            "+-5",
            "12,50 €",
            "1,000",
            "1 000",
            "0x10",
            "NaN",
            "inf",
            "1e",
            "1e5.",
            "5€",
            "1.2.3",
            "٣",
        ] {
            assert_eq!(Amount::parse_written(text), Err(AmountError::NotANumber), "{text}");
        }
        assert_eq!(Amount::parse_written("1000000000001"), Err(AmountError::OutOfRange));
    }

    #[test]
    fn extremes_print_and_add_without_panicking() {
        assert_eq!(Amount(i128::MIN).to_string(), "-170141183460469231731687303715884.105728");
        assert_eq!(Amount(i128::MAX) + Amount(1) - Amount(1), Amount(i128::MAX));
        assert_eq!(ratio(Amount(i128::MIN), 1), Amount(i128::MIN));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(micros in -1_000_000_000_000_000_000i128..=1_000_000_000_000_000_000) {
            prop_assert_eq!(Amount::parse(&Amount(micros).to_string()), Ok(Amount(micros)));
        }

        #[test]
        fn moving_the_point_by_an_exponent_changes_nothing(micros in -999_999_999i128..=999_999_999, shift in 0i32..40) {
            let text = format!("{micros}e{}", -6);
            let shifted = format!("{micros}{}e{}", "0".repeat(shift as usize), -6 - shift);
            // A plain zero followed by zeros is not a JSON number.
            prop_assume!(micros != 0);
            prop_assert_eq!(Amount::parse(&text), Ok(Amount(micros)));
            prop_assert_eq!(Amount::parse(&shifted), Ok(Amount(micros)));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", number in "-?[0-9]{0,30}(\\.[0-9]{0,30})?([eE][+-]?[0-9]{0,25})?") {
            let _ = Amount::parse(&text);
            let _ = Amount::parse(&number);
            let _ = Amount::parse_rounded(&number);
            let _ = Amount::parse_written(&text);
            prop_assert!(Amount::parse_rounded(&number).is_err() || Amount::parse_written(&number) == Amount::parse_rounded(&number));
        }

        #[test]
        fn a_ratio_is_off_by_at_most_half_a_millionth(micros in any::<i64>(), divisor in 1u64..) {
            let rounded = ratio(Amount(i128::from(micros)), divisor).0 * i128::from(divisor);
            let error = (rounded - i128::from(micros)).unsigned_abs();
            prop_assert!(error * 2 <= u128::from(divisor));
        }
    }
}
