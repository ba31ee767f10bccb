//! When an alert fires: a threshold, or a change against windows before.

use headcount_domain::time::Interval;
use headcount_domain::{Amount, Window, named_values};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::alert::{AlertFigure, AlertWindow};

/// The weeks that `same_weekday` looks back, and how many of them must have data.
const WEEKS: (i32, usize) = (4, 2);

named_values! {
    /// What a window is compared with.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Against by as_str {
        /// The window before.
        Previous = "previous",
        /// The median of the same weekday of the four weeks before, at least two of which have events.
        SameWeekday = "same_weekday",
    }
}

/// The size of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeSize {
    /// A share of the baseline: 0.3 is 30 %.
    Share(Amount),
    Absolute(Amount),
}

/// A change of a figure against windows before, by at least so much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeRule {
    pub(crate) down: bool,
    pub(crate) up: bool,
    pub(crate) size: ChangeSize,
    pub(crate) against: Against,
}

/// When an alert fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The figure of the current window is greater.
    Above(Amount),
    /// The figure of a window that is over is less.
    Below(Amount),
    /// The figure of a window that is over differs from a baseline.
    Changes(ChangeRule),
}

/// The JSON of a condition.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SentCondition<'a> {
    #[serde(borrow)]
    above: Option<&'a RawValue>,
    #[serde(borrow)]
    below: Option<&'a RawValue>,
    #[serde(borrow)]
    changes_by: Option<&'a RawValue>,
    against: Option<String>,
}

impl ChangeRule {
    /// Parses a change: `"-30%"`, `"+30%"`, `"±30%"`, or a number that is not 0.
    fn parse(json: &str, against: Against) -> Option<Self> {
        let Ok(text) = serde_json::from_str::<String>(json) else {
            let amount = Amount::parse(json).ok()?;
            let (down, up) = (amount < Amount::ZERO, amount > Amount::ZERO);
            let size = ChangeSize::Absolute(Amount::from_micros(amount.micros().saturating_abs()));
            return Some(Self { down, up, size, against }).filter(|change| change.down || change.up);
        };
        let percent = text.strip_suffix('%')?;
        let (sign, digits) = percent.split_at(percent.find(|character: char| character.is_ascii_digit())?);
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let (down, up) = match sign {
            "-" => (true, false),
            "+" => (false, true),
            "±" => (true, true),
            _ => return None,
        };
        let percent = Amount::parse(digits).ok().filter(|percent| is_number && percent.micros() % 100 == 0)?;
        let share = Some(Amount::from_micros(percent.micros() / 100)).filter(|share| *share > Amount::ZERO);
        let size = ChangeSize::Share(share?);
        Some(Self { down, up, size, against })
    }
}

impl Condition {
    /// Parses a condition: an object with `above`, `below`, or `changes_by` and `against`.
    pub(crate) fn parse(json: &str) -> Option<Self> {
        let SentCondition { above, below, changes_by, against } = serde_json::from_str(json).ok()?;
        let amount = |raw: &RawValue| Amount::parse(raw.get()).ok();
        match (above, below, changes_by, against) {
            (Some(above), None, None, None) => amount(above).map(Self::Above),
            (None, Some(below), None, None) => amount(below).map(Self::Below),
            (None, None, Some(by), Some(against)) => ChangeRule::parse(by.get(), against.parse().ok()?).map(Self::Changes),
            _ => None,
        }
    }

    /// Whether each window is compared with others, and so fires by itself.
    pub(crate) const fn is_change(self) -> bool {
        matches!(self, Self::Changes(_))
    }

    /// Whether it compares with the same weekdays of the weeks before.
    pub(crate) const fn is_against_weekdays(self) -> bool {
        matches!(self, Self::Changes(ChangeRule { against: Against::SameWeekday, .. }))
    }

    /// The windows whose figures are the baseline of a window.
    pub(crate) fn baselines(self, over: AlertWindow, window: Window) -> Vec<Window> {
        let Self::Changes(ChangeRule { against, .. }) = self else { return Vec::new() };
        match against {
            Against::Previous => vec![Interval::from(over).window_of(window.start.plus(-1))],
            Against::SameWeekday => {
                let before = |weeks: i32| Window { start: window.start.plus(-7 * weeks), end: window.end.plus(-7 * weeks) };
                (1..=WEEKS.0).map(before).collect()
            }
        }
    }

    /// The number of windows with data that a baseline needs.
    pub(crate) const fn least_baselines(self) -> usize {
        if self.is_against_weekdays() { WEEKS.1 } else { self.is_change() as usize }
    }

    /// Returns the baseline of these figures, which are those of windows with data; `None` if there are
    /// too few.
    pub(crate) fn baseline(self, mut figures: Vec<Amount>) -> Option<Amount> {
        if figures.len() < self.least_baselines() {
            return None;
        }
        figures.sort();
        let middle = |place: usize| figures.get(place).map(|amount| amount.micros());
        let last = figures.len().checked_sub(1)?;
        Some(Amount::from_micros(middle(last / 2)?.midpoint(middle(last.div_ceil(2))?)))
    }

    /// Returns the limits of a figure; `None` if there is nothing to compare with.
    fn limits(self, baseline: Option<Amount>) -> Option<Limits> {
        let of = |threshold: Amount| Amount::from_micros(threshold.micros().saturating_abs());
        Some(match self {
            Self::Above(threshold) => Limits { low: None, high: Some(threshold), is_inclusive: false, size: of(threshold) },
            Self::Below(threshold) => Limits { low: Some(threshold), high: None, is_inclusive: false, size: of(threshold) },
            Self::Changes(ChangeRule { down, up, size, .. }) => {
                let baseline = baseline?;
                let size = match size {
                    ChangeSize::Absolute(size) => size,
                    ChangeSize::Share(share) => {
                        let whole = Amount::from_units(1).micros();
                        Amount::from_micros(of(baseline).micros().saturating_mul(share.micros()) / whole)
                    }
                };
                // Nothing is a share of nothing.
                let size = Some(size).filter(|size| *size > Amount::ZERO)?;
                let (low, high) = (down.then(|| baseline - size), up.then(|| baseline + size));
                Limits { low, high, is_inclusive: true, size }
            }
        })
    }

    /// Returns whether a figure fulfils the condition, and whether it is far enough back: a tenth of the
    /// threshold or of the change, and at least 1 for counts. A figure that moves about its threshold
    /// sends one message, not many. `None` if there is nothing to compare with.
    pub(crate) fn holds(self, figure: AlertFigure, value: Amount, baseline: Option<Amount>) -> Option<(bool, bool)> {
        let Limits { low, high, is_inclusive, size } = self.limits(baseline)?;
        let is_beyond = |limit: Amount, is_greater: bool| is_greater || is_inclusive && value == limit;
        let holds = low.is_some_and(|low| is_beyond(low, value < low)) || high.is_some_and(|high| is_beyond(high, value > high));
        let least = if figure.is_count() { Amount::from_units(1).micros() } else { 0 };
        // A count can't fall below 0.
        let margin = Amount::from_micros((size.micros() / 10).max(least).min(size.micros()));
        let is_back = low.is_none_or(|low| value >= low + margin) && high.is_none_or(|high| value <= high - margin);
        Some((holds, is_back && !holds))
    }
}

/// The figures between which nothing happens.
struct Limits {
    low: Option<Amount>,
    high: Option<Amount>,
    /// Whether a figure at a limit is beyond it.
    is_inclusive: bool,
    /// The size of the threshold, or of the change.
    size: Amount,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    #[test]
    fn a_condition_has_one_threshold() {
        let change = |down, up, size, against| Some(Condition::Changes(ChangeRule { down, up, size, against }));
        let share = |text| ChangeSize::Share(amount(text));
        for (json, expected) in [
            (r#"{"above": 10}"#, Some(Condition::Above(amount("10")))),
            (r#"{"below": -0.25}"#, Some(Condition::Below(amount("-0.25")))),
            (r#"{"above": 1e3, "below": null}"#, Some(Condition::Above(amount("1000")))),
            (r#"{"changes_by": "-30%", "against": "previous"}"#, change(true, false, share("0.3"), Against::Previous)),
            (r#"{"changes_by": "±2.5%", "against": "same_weekday"}"#, change(true, true, share("0.025"), Against::SameWeekday)),
            (r#"{"changes_by": "+150%", "against": "previous"}"#, change(false, true, share("1.5"), Against::Previous)),
            (
                r#"{"changes_by": -20, "against": "previous"}"#,
                change(true, false, ChangeSize::Absolute(amount("20")), Against::Previous),
            ),
            (r#"{"changes_by": "30%", "against": "previous"}"#, None),
            (r#"{"changes_by": "-30", "against": "previous"}"#, None),
            (r#"{"changes_by": "-1e2%", "against": "previous"}"#, None),
            (r#"{"changes_by": "-33.33333%", "against": "previous"}"#, None),
            (r#"{"changes_by": "-0%", "against": "previous"}"#, None),
            (r#"{"changes_by": 0, "against": "previous"}"#, None),
            (r#"{"changes_by": "-30%"}"#, None),
            (r#"{"changes_by": "-30%", "against": "yesterday"}"#, None),
            (r#"{"above": 1, "against": "previous"}"#, None),
            (r#"{"above": 1, "below": 2}"#, None),
            (r#"{"above": "1"}"#, None),
            (r#"{"above": 1e99}"#, None),
            (r#"{"over": 1}"#, None),
            ("{}", None),
            ("7", None),
        ] {
            assert_eq!(Condition::parse(json), expected, "{json}");
        }
    }

    #[test]
    fn a_change_is_compared_with_its_baseline() {
        let condition = |by: &str| Condition::parse(&format!(r#"{{"changes_by": {by}, "against": "previous"}}"#)).unwrap();
        for (by, baseline, value, expected) in [
            ("\"-30%\"", Some("10"), "7", Some((true, false))),
            ("\"-30%\"", Some("10"), "7.1", Some((false, false))),
            ("\"-30%\"", Some("10"), "8", Some((false, true))),
            ("\"-30%\"", Some("10"), "100", Some((false, true))),
            ("\"±30%\"", Some("10"), "13", Some((true, false))),
            ("\"±30%\"", Some("10"), "10", Some((false, true))),
            ("\"+30%\"", Some("-10"), "-7", Some((true, false))),
            ("\"+30%\"", Some("0"), "5", None),
            ("5", Some("0"), "5", Some((true, false))),
            ("-5", None, "5", None),
        ] {
            let found = condition(by).holds(AlertFigure::Orders, amount(value), baseline.map(amount));
            assert_eq!(found, expected, "{by} {baseline:?} {value}");
        }
    }

    #[test]
    fn the_baseline_of_weekdays_is_their_median() {
        let weekdays = Condition::parse(r#"{"changes_by": "-30%", "against": "same_weekday"}"#).unwrap();
        let median = |figures: &[&str]| weekdays.baseline(figures.iter().map(|figure| amount(figure)).collect());
        assert_eq!((median(&["9"]), median(&[])), (None, None));
        assert_eq!(median(&["9", "4"]), Some(amount("6.5")));
        assert_eq!((median(&["9", "4", "5"]), median(&["9", "4", "5", "0"])), (Some(amount("5")), Some(amount("4.5"))));
        let previous = Condition::parse(r#"{"changes_by": "-30%", "against": "previous"}"#).unwrap();
        assert_eq!((previous.baseline(vec![amount("9")]), previous.baseline(vec![])), (Some(amount("9")), None));
    }
}
