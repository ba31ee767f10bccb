//! Exact decimals: the numbers of JSON, and the arithmetic of money.

use std::cmp::Ordering;
use std::fmt;

/// Millionths of a unit, in which money is summed.
pub type Micros = i128;

/// Millionths in one unit.
pub const MICROS: i128 = 1_000_000;

/// The least sum, in millionths, that is not shown: 1e32.
pub const TOO_LARGE: i128 = 10_i128.pow(38);

/// An exact decimal number, `mantissa / 10^scale`, without trailing zeros, so that equal numbers
/// are equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    mantissa: i128,
    scale: u32,
}

impl Decimal {
    /// Creates `mantissa / 10^scale`.
    #[must_use]
    pub fn new(mut mantissa: i128, mut scale: u32) -> Decimal {
        while scale > 0 && mantissa % 10 == 0 {
            mantissa /= 10;
            scale -= 1;
        }
        Decimal { mantissa, scale }
    }

    /// Parses a JSON number, including exponents. `None` for text that is not a number, or is
    /// longer than 38 digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Decimal> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let scale = i32::try_from(fraction.len()).ok()? - exponent;
        if scale >= 0 {
            return Some(Decimal::new(digits, scale.unsigned_abs()));
        }
        let factor = 10_i128.checked_pow(scale.unsigned_abs())?;
        Some(Decimal::new(digits.checked_mul(factor)?, 0))
    }

    /// Converts from millionths.
    #[must_use]
    pub fn of_micros(micros: Micros) -> Decimal {
        Decimal::new(micros, 6)
    }

    /// Converts to millionths, if there are no more than 6 places.
    #[must_use]
    pub fn micros(self) -> Option<Micros> {
        (self.scale <= 6).then(|| self.mantissa * 10_i128.pow(6 - self.scale))
    }

    /// Converts to millionths, rounded half away from zero; `None` from ±1e32 on.
    #[must_use]
    pub fn micros_rounded(self) -> Option<Micros> {
        let micros = match 6_u32.checked_sub(self.scale) {
            Some(places) => self.mantissa.checked_mul(10_i128.pow(places))?,
            None => divide_rounded(self.mantissa, 10_i128.pow(self.scale - 6)),
        };
        (micros.abs() < TOO_LARGE).then_some(micros)
    }

    /// Returns the text that orders a number among texts: without an exponent from 1e-7 to below
    /// 1e21.
    #[must_use]
    pub fn spelled(self) -> String {
        let digits = self.mantissa.unsigned_abs().to_string();
        let exponent = digits.len() as i64 - 1 - i64::from(self.scale);
        if self.mantissa == 0 || (-7..21).contains(&exponent) {
            return self.to_string();
        }
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let (first, rest) = digits.split_at(1);
        let rest = rest.trim_end_matches('0');
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}e{exponent}")
    }

    /// Converts to a whole number, if it is one.
    #[must_use]
    pub fn whole(self) -> Option<i128> {
        (self.scale == 0).then_some(self.mantissa)
    }
}

impl From<i128> for Decimal {
    fn from(whole: i128) -> Decimal {
        Decimal::new(whole, 0)
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Decimal) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Decimal) -> Ordering {
        let scale = self.scale.max(other.scale);
        let at_scale = |number: &Decimal| 10_i128.checked_pow(scale - number.scale)?.checked_mul(number.mantissa);
        match (at_scale(self), at_scale(other)) {
            (Some(left), Some(right)) => left.cmp(&right),
            // A number too large for the other's scale is larger than the other in size.
            (None, _) => self.mantissa.cmp(&0),
            (_, None) => 0.cmp(&other.mantissa),
        }
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.scale == 0 {
            return write!(f, "{}", self.mantissa);
        }
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let one = 10_u128.pow(self.scale);
        let digits = self.mantissa.unsigned_abs();
        let width = self.scale as usize;
        write!(f, "{sign}{}.{:0width$}", digits / one, digits % one)
    }
}

/// Divides, rounding half away from zero.
#[must_use]
pub fn divide_rounded(dividend: i128, divisor: i128) -> i128 {
    let sign = dividend.signum() * divisor.signum();
    let (dividend, divisor) = (dividend.abs(), divisor.abs());
    sign * ((2 * dividend + divisor) / (2 * divisor))
}

/// Returns the ratio that the service shows: `total` millionths divided by `count`, to 6 places; 0
/// if `count` is 0.
#[must_use]
pub fn ratio(total: Micros, count: usize) -> Decimal {
    match i128::try_from(count) {
        Ok(count) if count > 0 => Decimal::of_micros(divide_rounded(total, count)),
        _ => Decimal::from(0),
    }
}

/// Converts `amount` from a currency of rate `from` to one of rate `to`, rounding once, half away
/// from zero, to 6 places.
#[must_use]
pub fn convert(amount: Micros, from: Decimal, to: Decimal) -> Micros {
    let dividend = amount * from.mantissa * 10_i128.pow(to.scale);
    let divisor = to.mantissa * 10_i128.pow(from.scale);
    divide_rounded(dividend, divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact() {
        for (text, shown) in [
            ("1e2", "100"),
            ("2.50", "2.5"),
            ("-0.000001", "-0.000001"),
            ("-0", "0"),
            ("0.0", "0"),
            ("1.5E-3", "0.0015"),
            ("1000000000000", "1000000000000"),
        ] {
            assert_eq!(Decimal::parse(text).unwrap().to_string(), shown, "{text}");
        }
        assert!(Decimal::parse("0.1").unwrap() < Decimal::parse("0.11").unwrap());
        assert!(Decimal::parse("-3").unwrap() < Decimal::parse("-2.5").unwrap());
    }

    #[test]
    fn large_and_small_numbers() {
        let read = |text| Decimal::parse(text).unwrap();
        for (text, spelled) in [
            ("1e21", "1e21"),
            ("-1.50e22", "-1.5e22"),
            ("100000000000000000000", "100000000000000000000"),
            ("1e-7", "0.0000001"),
            ("12e-9", "1.2e-8"),
            ("0.00", "0"),
            ("-3", "-3"),
        ] {
            assert_eq!(read(text).spelled(), spelled);
        }
        assert!(read("1e32") > read("0.00000001") && read("-1e32") < read("-0.00000001"));
        assert_eq!(read("1e32").micros_rounded(), None);
        assert_eq!(read("0.0000005").micros_rounded(), Some(1));
        assert_eq!(read("-0.00000049").micros_rounded(), Some(0));
    }

    #[test]
    fn rounding_is_half_away_from_zero() {
        assert_eq!(divide_rounded(5, 2), 3);
        assert_eq!(divide_rounded(-5, 2), -3);
        assert_eq!(divide_rounded(4, 3), 1);
        assert_eq!(ratio(20 * MICROS, 3).to_string(), "6.666667");
        assert_eq!(ratio(20 * MICROS, 0).to_string(), "0");
        let rate = |text| Decimal::parse(text).unwrap();
        assert_eq!(convert(500_000, rate("0.0119833"), rate("1")), 5_992);
        assert_eq!(convert(-500_000, rate("0.0119833"), rate("1")), -5_992);
        assert_eq!(convert(10 * MICROS, rate("1.08"), rate("1.25")), 8_640_000);
    }
}
