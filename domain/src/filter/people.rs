//! Conditions on the people of events: what else they did.

use crate::time::Window;

/// The maximum number of conditions on people.
pub const MAX_PEOPLE: usize = 5;
/// The maximum of `at_least`.
pub const MAX_AT_LEAST: u32 = 1_000;
/// The maximum number of days of a condition.
pub const MAX_WITHIN_DAYS: u16 = 365;

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
}
