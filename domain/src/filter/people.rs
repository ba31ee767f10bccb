//! Conditions on the people of events: what else they did.

use super::Predicate;
use crate::time::Window;

/// The maximum number of conditions on people.
pub const MAX_PEOPLE: usize = 5;
/// The maximum of `at_least`.
pub const MAX_AT_LEAST: u32 = 1_000;
/// The maximum number of days of a condition.
pub const MAX_WITHIN_DAYS: u16 = 365;

/// A condition on an identity: it has at least so many events that fit, or fewer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeopleCondition {
    /// The events that fit.
    pub predicate: Predicate,
    /// How many of them are enough.
    pub at_least: u32,
    /// Whether the identity must have fewer.
    pub is_negated: bool,
    /// The days of the events.
    pub within: Within,
}

/// The days whose events a condition counts. Events that the project no longer keeps count nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Within {
    /// The window of the question.
    #[default]
    Window,
    /// All days.
    Ever,
    /// So many days, the last of which is the last day of the window.
    Days(u16),
}

impl Within {
    /// Returns the days, for a question about `window`.
    pub fn days(self, window: Window) -> Window {
        match self {
            Self::Window => window,
            Self::Ever => Window::ALL,
            Self::Days(days) => Window { start: window.end.plus(1 - i32::from(days)), end: window.end },
        }
    }
}

impl PeopleCondition {
    /// Whether the condition holds for an identity with so many events that fit.
    pub fn holds(&self, count: u32) -> bool {
        (count >= self.at_least) != self.is_negated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Day;

    #[test]
    fn days_are_counted_back_from_the_last_day() {
        let window = Window { start: Day(10), end: Day(20) };
        for (within, expected) in [
            (Within::Window, (10, 20)),
            (Within::Ever, (i32::MIN, i32::MAX)),
            (Within::Days(1), (20, 20)),
            (Within::Days(365), (-344, 20)),
        ] {
            let Window { start, end } = within.days(window);
            assert_eq!((start.0, end.0), expected, "{within:?}");
        }
    }

    #[test]
    fn fewer_is_the_opposite_of_enough() {
        let condition =
            |is_negated| PeopleCondition { predicate: Predicate::default(), at_least: 2, is_negated, within: Within::Ever };
        assert_eq!([0, 1, 2, 3].map(|count| condition(false).holds(count)), [false, false, true, true]);
        assert_eq!([0, 1, 2, 3].map(|count| condition(true).holds(count)), [true, true, false, false]);
    }
}
