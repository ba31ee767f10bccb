//! Exact sums of numbers of any size.

use crate::intake::fields::{Number, Scalar};
use crate::money::Amount;

/// The smallest sum that is too large to display, in millionths: 1e32.
const TOO_LARGE_MICROS: u128 = 10_u128.pow(38);

/// What one event adds to a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Summand {
    /// Nothing: the property is not a number.
    None,
    /// A number, rounded to millionths.
    Micros(i128),
    /// A number of 1e32 or more, or of -1e32 or less.
    TooLarge,
}

impl Summand {
    /// Returns what a property adds: a number rounded half away from zero to 6 places. Only JSON
    /// numbers are summed.
    pub fn of(property: &Scalar<'_>) -> Self {
        match property {
            Scalar::Number(number) => Self::of_number(number),
            Scalar::Null | Scalar::Bool(_) | Scalar::Text(_) => Self::None,
        }
    }

    fn of_number(number: &Number) -> Self {
        number.rounded_micros().filter(|micros| micros.unsigned_abs() < TOO_LARGE_MICROS).map_or(Self::TooLarge, Self::Micros)
    }
}

/// An exact sum. The order of the summands does not matter, even if a sum in between is out of
/// range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Total {
    /// The sum is `low` + 2^128 × `carry`, in millionths.
    pub low: i128,
    /// See `low`.
    pub carry: i64,
    /// Whether a summand was too large.
    pub has_too_large: bool,
}

impl Total {
    /// Adds another total.
    pub fn merge(&mut self, other: Total) {
        let (low, overflows) = self.low.overflowing_add(other.low);
        // Both have the same sign if their sum overflows.
        let carry = if !overflows {
            0
        } else if other.low > 0 {
            1
        } else {
            -1
        };
        self.low = low;
        self.carry += other.carry + carry;
        self.has_too_large |= other.has_too_large;
    }

    /// Returns the sum; `None` if it, or one of its summands, is 1e32 or more, or -1e32 or less.
    pub fn amount(self) -> Option<Amount> {
        let is_shown = !self.has_too_large && self.carry == 0 && self.low.unsigned_abs() < TOO_LARGE_MICROS;
        is_shown.then_some(Amount::from_micros(self.low))
    }
}

/// The events of one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GroupFigures {
    /// The number of events.
    pub count: u64,
    /// The number of events whose property was a number.
    pub summed: u64,
    /// The sum of these numbers.
    pub total: Total,
}

impl GroupFigures {
    /// Returns a group of one event.
    pub fn of(summand: Summand) -> Self {
        let total = match summand {
            Summand::None => return Self { count: 1, ..Self::default() },
            Summand::Micros(low) => Total { low, ..Total::default() },
            Summand::TooLarge => Total { has_too_large: true, ..Total::default() },
        };
        Self { count: 1, summed: 1, total }
    }

    /// Adds other events of the same group.
    pub fn merge(&mut self, other: GroupFigures) {
        self.count += other.count;
        self.summed += other.summed;
        self.total.merge(other.total);
    }
}
