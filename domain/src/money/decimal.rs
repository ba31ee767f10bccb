//! Exact conversion between decimal text and scaled integers.

use std::fmt;

use crate::json_number::JsonNumber;

/// The reason why a text is not a valid amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// The text is not a JSON number.
    #[error("is not a JSON number")]
    NotANumber,
    /// The value has more decimal places than the type stores.
    #[error("has too many decimals")]
    TooManyDecimals,
    /// The absolute value is larger than the type allows.
    #[error("is out of range")]
    OutOfRange,
}

/// Parses a JSON number as an integer multiple of `10^-decimals` whose absolute value is at most
/// `max_units`.
///
/// `max_units × 10^decimals` must fit an `i128` with three digits to spare. The running time
/// depends only on the length of the text, not on its exponent.
pub(super) fn parse_scaled(text: &str, decimals: u32, max_units: i128) -> Result<i128, AmountError> {
    scaled(&JsonNumber::parse(text).ok_or(AmountError::NotANumber)?, decimals, max_units)
}

fn scaled(number: &JsonNumber<'_>, decimals: u32, max_units: i128) -> Result<i128, AmountError> {
    let digits = || number.whole.bytes().chain(number.fraction.bytes());
    let Some(first) = digits().position(|digit| digit != b'0') else {
        return Ok(0);
    };
    let count = number.whole.len() + number.fraction.len();
    let last = count - 1 - digits().rev().position(|digit| digit != b'0').unwrap_or(0);

    // The power of ten of the digit at an index.
    let power_of = |index: usize| number.whole.len() as i64 - 1 - index as i64 + number.exponent;
    if power_of(first) > i64::from(max_units.ilog10()) {
        return Err(AmountError::OutOfRange);
    }
    let places = power_of(last) + i64::from(decimals);
    let Ok(places) = u32::try_from(places) else {
        return Err(AmountError::TooManyDecimals);
    };

    let significant = digits().skip(first).take(last - first + 1);
    let value = significant.fold(0i128, |value, digit| value * 10 + i128::from(digit - b'0')) * 10i128.pow(places);
    if value > max_units * 10i128.pow(decimals) {
        return Err(AmountError::OutOfRange);
    }
    Ok(if number.negative { -value } else { value })
}

/// Like [`parse_scaled`], but rounds excess decimals, halves away from zero.
pub(super) fn parse_rounded(text: &str, decimals: u32, max_units: i128) -> Result<i128, AmountError> {
    rounded(&JsonNumber::parse(text).ok_or(AmountError::NotANumber)?, decimals, max_units)
}

/// Like [`parse_rounded`], for a number as people write it.
pub(super) fn parse_written(text: &str, decimals: u32, max_units: i128) -> Result<i128, AmountError> {
    rounded(&JsonNumber::parse_written(text).ok_or(AmountError::NotANumber)?, decimals, max_units)
}

fn rounded(number: &JsonNumber<'_>, decimals: u32, max_units: i128) -> Result<i128, AmountError> {
    let exact = scaled(number, decimals, max_units);
    if exact != Err(AmountError::TooManyDecimals) {
        return exact;
    }
    let digits = || number.whole.bytes().chain(number.fraction.bytes()).map(|digit| i128::from(digit - b'0'));
    // The number of kept digits. The range of the value was checked, so they fit.
    let kept = number.whole.len() as i64 + number.exponent + i64::from(decimals);
    let Ok(kept) = usize::try_from(kept) else { return Ok(0) };
    let value = digits().take(kept).fold(0i128, |value, digit| value * 10 + digit);
    let value = value + i128::from(digits().nth(kept).is_some_and(|digit| digit >= 5));
    if value > max_units * 10i128.pow(decimals) {
        return Err(AmountError::OutOfRange);
    }
    Ok(if number.negative { -value } else { value })
}

/// Writes `value × 10^-decimals` with as few digits as possible.
pub(super) fn write_scaled(f: &mut fmt::Formatter<'_>, value: i128, decimals: u32) -> fmt::Result {
    let scale = 10u128.pow(decimals);
    let (whole, fraction) = (value.unsigned_abs() / scale, value.unsigned_abs() % scale);
    let sign = if value < 0 { "-" } else { "" };
    if fraction == 0 {
        return write!(f, "{sign}{whole}");
    }
    let fraction = format!("{fraction:0width$}", width = decimals as usize);
    write!(f, "{sign}{whole}.{}", fraction.trim_end_matches('0'))
}

/// Divides `n` by `d`, rounding to the nearest integer, halves away from zero. Returns 0 if `d` is
/// 0. `d` is at most 2^64.
pub(super) fn divide_half_away(n: i128, d: i128) -> i128 {
    if d == 0 {
        return 0;
    }
    let (quotient, remainder) = (n / d, n % d);
    if remainder.unsigned_abs() * 2 >= d.unsigned_abs() { quotient + n.signum() * d.signum() } else { quotient }
}
