//! Exchange rates, and conversion with them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::decimal::{self, AmountError};
use super::{AMOUNT_DECIMALS, Amount, MAX_UNITS, MICROS_PER_UNIT};

/// The number of decimal places of a [`Rate`].
const RATE_DECIMALS: u32 = 12;
/// The largest rate, in whole units. An ounce of gold is worth a few thousand dollars.
const MAX_RATE_UNITS: i128 = 1_000_000;
/// The smallest rate, in units of 1e-12: 1e-9. The weakest currencies are worth about 1e-6 dollars.
const MIN_RATE_PICOS: u64 = 1_000;
const PICOS_PER_UNIT: u64 = 1_000_000_000_000;
/// The maximum value of one unit in another currency: 1e15.
const MAX_QUOTIENT: i128 = MAX_RATE_UNITS * PICOS_PER_UNIT as i128 / MIN_RATE_PICOS as i128;
/// The maximum converted amount, in whole units: the largest amount, between the currencies that
/// are furthest apart (1e6 and 1e-9 dollars per unit). Imports accept every recorded amount, so
/// only the bounds of rates matter.
pub const MAX_CONVERTED_UNITS: i128 = MAX_UNITS * MAX_QUOTIENT;

/// The value of one unit of a currency in US dollars: an exact decimal with at most 12 places, from
/// 1e-9 to 1e6.
///
/// The bounds limit the conversion of the largest amount (1e12) to 1e33 millionths, so sums of
/// converted amounts fit an `i128`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rate(u64);

impl Amount {
    /// Parses a JSON number as a converted amount.
    ///
    /// # Errors
    /// Same as [`Amount::parse`], with the range of conversions.
    pub fn parse_converted(json_number_text: &str) -> Result<Amount, AmountError> {
        decimal::parse_scaled(json_number_text, AMOUNT_DECIMALS, MAX_CONVERTED_UNITS).map(Amount)
    }
}

/// The reason why a text is not a valid rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The text is not a JSON number.
    #[error("a rate must be a JSON number")]
    NotANumber,
    /// More than 12 decimals.
    #[error("a rate has at most 12 decimals")]
    TooManyDecimals,
    /// Outside 1e-9 to 1e6; includes zero and negative numbers.
    #[error("a rate is from 0.000000001 to 1000000")]
    OutOfRange,
}

impl Rate {
    /// The rate of the US dollar.
    pub const ONE: Rate = Rate(PICOS_PER_UNIT);

    /// Parses the text of a JSON number exactly.
    ///
    /// # Errors
    /// [`RateError`] names the broken rule.
    pub fn parse(json_number_text: &str) -> Result<Rate, RateError> {
        let picos = decimal::parse_scaled(json_number_text, RATE_DECIMALS, MAX_RATE_UNITS).map_err(|e| match e {
            AmountError::NotANumber => RateError::NotANumber,
            AmountError::TooManyDecimals => RateError::TooManyDecimals,
            AmountError::OutOfRange => RateError::OutOfRange,
        })?;
        match u64::try_from(picos) {
            Ok(picos) if picos >= MIN_RATE_PICOS => Ok(Rate(picos)),
            _ => Err(RateError::OutOfRange),
        }
    }
}

impl fmt::Display for Rate {
    /// Writes the shortest exact decimal, which is also a JSON number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        decimal::write_scaled(f, i128::from(self.0), RATE_DECIMALS)
    }
}

/// Converts an amount with `amount × from / to`, where `from` and `to` are the rates of its current
/// and its new currency. Rounds once, to 6 places, halves away from zero.
///
/// Exact for every result that fits an [`Amount`]. Larger results, which no event can cause,
/// saturate.
pub fn convert(amount: Amount, from: Rate, to: Rate) -> Amount {
    let (from, to) = (i128::from(from.0), i128::from(to.0.max(1)));
    // amount = whole × to + rest keeps the products small; the first part needs no rounding.
    let (whole, rest) = (amount.0 / to, amount.0 % to);
    let rounded = decimal::divide_half_away(rest * from, to);
    Amount(whole.saturating_mul(from).saturating_add(rounded))
}

// `parse_scaled` needs three digits to spare.
const _: () = assert!(MAX_CONVERTED_UNITS * MICROS_PER_UNIT < i128::MAX / 1_000);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rates_read_and_print_exactly() {
        for (text, printed) in [
            ("1", "1"),
            ("1.08", "1.08"),
            ("1.080", "1.08"),
            ("6.7e-3", "0.0067"),
            ("0.000000712345", "0.000000712345"),
            ("1e6", "1000000"),
            ("1e-9", "0.000000001"),
        ] {
            assert_eq!(Rate::parse(text).map(|rate| rate.to_string()).as_deref(), Ok(printed), "{text}");
        }
        for (text, error) in [
            ("0", RateError::OutOfRange),
            ("-1", RateError::OutOfRange),
            ("1e-10", RateError::OutOfRange),
            ("1000000.1", RateError::OutOfRange),
            ("1e999999999999", RateError::OutOfRange),
            ("1e-13", RateError::TooManyDecimals),
            ("1.1.1", RateError::NotANumber),
            ("\"1\"", RateError::NotANumber),
        ] {
            assert_eq!(Rate::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn conversion_rounds_once_and_half_away_from_zero() {
        let table = [
            // amount, from, to, converted
            ("100", "1.08", "1", "108"),
            ("108", "1", "1.08", "100"),
            ("10", "1", "3", "3.333333"),
            ("20", "1", "3", "6.666667"),
            ("-20", "1", "3", "-6.666667"),
            ("0.000001", "0.5", "1", "0.000001"),
            ("-0.000001", "0.5", "1", "-0.000001"),
            ("0.000001", "0.49", "1", "0"),
            ("50", "1.08", "1.27", "42.519685"),
            ("1000000000000", "1000000", "0.000000001", "1000000000000000000000000000"),
        ];
        for (amount, from, to, expected) in table {
            let converted = convert(Amount::parse(amount).unwrap(), Rate::parse(from).unwrap(), Rate::parse(to).unwrap());
            assert_eq!(converted.to_string(), expected, "{amount} at {from} / {to}");
        }
    }

    proptest! {
        #[test]
        fn what_was_converted_reads_back(
            micros in -1_000_000_000_000_000_000i128..=1_000_000_000_000_000_000,
            from in MIN_RATE_PICOS..=1_000_000_000_000_000_000,
            to in prop_oneof![MIN_RATE_PICOS..=2_000, MIN_RATE_PICOS..=1_000_000_000_000_000_000],
        ) {
            let converted = convert(Amount(micros), Rate(from), Rate(to));
            prop_assert_eq!(Amount::parse_converted(&converted.to_string()), Ok(converted));
        }

        #[test]
        fn a_rate_reads_back(picos in MIN_RATE_PICOS..=1_000_000_000_000_000_000) {
            prop_assert_eq!(Rate::parse(&Rate(picos).to_string()), Ok(Rate(picos)));
        }

        #[test]
        fn equal_rates_change_nothing(micros in any::<i64>(), picos in MIN_RATE_PICOS..=1_000_000_000_000_000_000) {
            let amount = Amount(i128::from(micros) * 1_000_000_000);
            prop_assert_eq!(convert(amount, Rate(picos), Rate(picos)), amount);
        }

        #[test]
        fn conversion_never_panics_and_keeps_the_sign(micros in any::<i128>(), from in any::<u64>(), to in any::<u64>()) {
            let converted = convert(Amount(micros), Rate(from % 1_000_000_000_000_000_001), Rate(to % 1_000_000_000_000_000_001));
            prop_assert!(converted.0 == 0 || converted.0.signum() == micros.signum());
        }
    }
}
