//! Weeks and months, the intervals of retention.

use serde::{Deserialize, Serialize};

use super::calendar::{Day, Month};
use crate::named_values;

/// The day 1969-12-29, the Monday of week number 0.
const FIRST_MONDAY: i32 = -3;
/// The days of a week.
const WEEK_DAYS: i32 = 7;

named_values! {
    /// The length of the intervals of cohorts.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum CohortInterval by as_str {
        /// From Monday to Sunday.
        #[default]
        Week = "week",
        /// A calendar month.
        Month = "month",
    }
}

impl CohortInterval {
    /// The number of intervals for which a cohort is followed, including its own. No answer has
    /// more.
    pub const FOLLOWED: u8 = 60;

    /// Returns the number of the interval that contains `day`. Intervals that follow each other
    /// have consecutive numbers.
    pub fn index_of(self, day: Day) -> i32 {
        match self {
            Self::Week => day.0.saturating_sub(FIRST_MONDAY).div_euclid(WEEK_DAYS),
            Self::Month => day.month().0,
        }
    }

    /// Returns the first day of the interval with `number`.
    pub fn first_day(self, number: i32) -> Day {
        match self {
            Self::Week => Day(number.saturating_mul(WEEK_DAYS).saturating_add(FIRST_MONDAY)),
            Self::Month => Month(number).first_day(),
        }
    }

    /// Returns the last day for which the cohort of an event on `day` is followed.
    pub(crate) fn last_followed(self, day: Day) -> Day {
        self.first_day(self.index_of(day).saturating_add(i32::from(Self::FOLLOWED))).plus(-1)
    }

    /// Returns the name of a cohort: the Monday of a week as `YYYY-MM-DD`, a month as `YYYY-MM`.
    pub fn label(self, number: i32) -> String {
        match self {
            Self::Week => self.first_day(number).to_string(),
            Self::Month => Month(number).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOTH: [CohortInterval; 2] = [CohortInterval::Week, CohortInterval::Month];

    #[test]
    fn intervals_have_names() {
        let label = |interval: CohortInterval, day| interval.label(interval.index_of(Day::parse(day).unwrap()));
        for (day, week, month) in [
            ("2024-02-29", "2024-02-26", "2024-02"),
            ("2024-03-03", "2024-02-26", "2024-03"),
            ("2024-03-04", "2024-03-04", "2024-03"),
            ("2025-01-01", "2024-12-30", "2025-01"),
            ("1970-01-01", "1969-12-29", "1970-01"),
            ("1969-12-28", "1969-12-22", "1969-12"),
        ] {
            assert_eq!([label(CohortInterval::Week, day), label(CohortInterval::Month, day)], [week, month], "{day}");
        }
    }

    #[test]
    fn a_cohort_is_followed_for_sixty_intervals() {
        let last = |interval: CohortInterval| interval.last_followed(Day::parse("2020-01-31").unwrap()).to_string();
        assert_eq!(BOTH.map(last), ["2021-03-21", "2024-12-31"]);
    }

    proptest! {
        #[test]
        fn an_interval_contains_its_days(days in -719_528i32..=2_932_896) {
            for interval in BOTH {
                let (day, number) = (Day(days), interval.index_of(Day(days)));
                let (first, next) = (interval.first_day(number), interval.first_day(number + 1));
                prop_assert!(first <= day && day < next);
                prop_assert_eq!((interval.index_of(first), interval.index_of(next)), (number, number + 1));
            }
        }

        #[test]
        fn no_day_panics(days in any::<i32>()) {
            for interval in BOTH {
                let _ = (interval.last_followed(Day(days)), interval.label(interval.index_of(Day(days))));
            }
        }
    }
}
