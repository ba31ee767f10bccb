//! The parts of a JSON number, for exact values.

/// The maximum exponent. Larger values are always out of range, and sums of exponents and lengths
/// stay within an `i64`.
const EXPONENT_CAP: i64 = 1_000_000_000_000;

/// The parts of a JSON number (RFC 8259 §6) of any length.
#[derive(Debug)]
pub(crate) struct JsonNumber<'a> {
    pub(crate) negative: bool,
    /// The digits before the point.
    pub(crate) whole: &'a str,
    /// The digits after the point; empty without a point.
    pub(crate) fraction: &'a str,
    /// The exponent, at most 10^12 from 0.
    pub(crate) exponent: i64,
}

impl<'a> JsonNumber<'a> {
    /// Splits the text of a number; `None` if it is not one.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) if is_digits(fraction) => (whole, fraction),
            Some(_) => return None,
            None => (mantissa, ""),
        };
        let has_leading_zero = whole.len() > 1 && whole.starts_with('0');
        (is_digits(whole) && !has_leading_zero).then_some(Self { negative, whole, fraction, exponent })
    }

    /// Splits a number as people write it: with surrounding space, a plus sign, leading zeros, or
    /// no digits on one side of the point.
    pub(crate) fn parse_written(text: &'a str) -> Option<Self> {
        let text = text.trim();
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_any = [whole, fraction].concat().bytes().all(|byte| byte.is_ascii_digit()) && whole.len() + fraction.len() > 0;
        is_any.then_some(Self { negative, whole, fraction, exponent })
    }
}

fn read_exponent(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let step = |size: i64, digit: u8| (size * 10 + i64::from(digit - b'0')).min(EXPONENT_CAP);
    is_digits(digits).then(|| sign * digits.bytes().fold(0, step))
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}
