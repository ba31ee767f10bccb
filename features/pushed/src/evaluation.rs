//! The rule by which an alert changes, without clocks and files.

use headcount_domain::money::Amount;
use headcount_domain::{Day, Instant, Window, named_values};
use serde::{Deserialize, Serialize};

use crate::alert::AlertFigure;
use crate::condition::Condition;

/// The shortest time between two firings of an alert.
pub(crate) const COOLDOWN_MS: i64 = 60 * 60 * 1_000;

named_values! {
    /// What happened to an alert.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ChangeKind by as_str {
        /// Its condition holds.
        Fired = "fired",
        /// Its condition does not hold any more.
        Resolved = "resolved",
        /// The figure of the window it fired for was corrected: by a late event, a refund or an erasure.
        Corrected = "corrected",
    }
}

/// A figure of a window, now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) window: Window,
    /// Whether the window is over, and another one is evaluated, too.
    pub(crate) is_late: bool,
    pub(crate) value: Amount,
    /// The figure that a change is against, if there is one.
    pub(crate) baseline: Option<Amount>,
}

/// What an alert fires for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Firing {
    /// When it began.
    pub(crate) since: Instant,
    /// The first day of the window.
    pub(crate) window: Day,
}

/// Whether an alert fires.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Firings {
    /// What it fires for; `None`: it is ok.
    pub(crate) firing: Option<Firing>,
    /// When it last began to fire.
    pub(crate) last_fired: Option<Instant>,
    /// The first day of the last window that it fired for.
    pub(crate) last_window: Option<Day>,
}

/// What a reading means for an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Evaluation {
    /// Nothing changes.
    Same,
    /// The condition holds, but the alert has fired a short time ago.
    Waits,
    Changed(ChangeKind),
}

impl Firings {
    /// Evaluates a reading.
    pub(crate) fn evaluate(&self, condition: Condition, figure: AlertFigure, reading: Reading, now: Instant) -> Evaluation {
        let held = condition.holds(figure, reading.value, reading.baseline);
        let is_next = self.firing.is_some_and(|firing| reading.window.start > firing.window);
        if condition.is_change() && is_next {
            // Each window is compared by itself. Without a baseline, nothing has changed.
            let holds = held.is_some_and(|(holds, _)| holds);
            return Evaluation::Changed(if holds { ChangeKind::Fired } else { ChangeKind::Resolved });
        }
        let Some((holds, is_back)) = held else { return Evaluation::Same };
        let Some(firing) = self.firing else {
            // A window that is over fires once at most.
            let is_known = reading.is_late && self.last_window.is_some_and(|last| reading.window.start <= last);
            let is_soon = self.last_fired.is_some_and(|last| (0..COOLDOWN_MS).contains(&now.0.saturating_sub(last.0)));
            return match holds && !is_known {
                false => Evaluation::Same,
                true if is_soon => Evaluation::Waits,
                true => Evaluation::Changed(ChangeKind::Fired),
            };
        };
        if reading.window.start < firing.window || !is_back {
            return Evaluation::Same;
        }
        // The figure of one window only returns if something was taken from it, or came late.
        let is_corrected = firing.window == reading.window.start;
        Evaluation::Changed(if is_corrected { ChangeKind::Corrected } else { ChangeKind::Resolved })
    }

    /// The same after a change.
    pub(crate) fn after(self, change: ChangeKind, reading: Reading, now: Instant) -> Self {
        match change {
            ChangeKind::Fired => {
                let window = reading.window.start;
                Self { firing: Some(Firing { since: now, window }), last_fired: Some(now), last_window: Some(window) }
            }
            ChangeKind::Resolved | ChangeKind::Corrected => Self { firing: None, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Evaluates readings at these minutes, and returns the changes.
    fn changes(condition: Condition, figure: AlertFigure, readings: &[(i64, i32, &str)]) -> Vec<(i64, ChangeKind)> {
        let (mut firings, mut changes) = (Firings::default(), Vec::new());
        for (minute, day, value) in readings {
            let (now, reading) = (
                Instant(minute * 60_000),
                Reading {
                    window: Window { start: Day(*day), end: Day(*day) },
                    is_late: false,
                    value: Amount::parse(value).unwrap(),
                    baseline: None,
                },
            );
            if let Evaluation::Changed(change) = firings.evaluate(condition, figure, reading, now) {
                firings = firings.after(change, reading, now);
                changes.push((*minute, change));
            }
        }
        changes
    }

    fn above(threshold: &str) -> Condition {
        Condition::Above(Amount::parse(threshold).unwrap())
    }

    #[test]
    fn a_count_fires_once_and_returns_with_the_next_window() {
        let readings = [(0, 1, "10"), (1, 1, "11"), (2, 1, "50"), (70, 2, "0"), (80, 2, "11"), (90, 2, "12")];
        let expected = [(1, ChangeKind::Fired), (70, ChangeKind::Resolved), (80, ChangeKind::Fired)];
        assert_eq!(changes(above("10"), AlertFigure::Events, &readings), expected);
    }

    #[test]
    fn a_refund_corrects_and_a_small_one_does_not() {
        let readings = [(0, 1, "101"), (1, 1, "91"), (2, 1, "90"), (3, 1, "150"), (61, 1, "150")];
        let expected = [(0, ChangeKind::Fired), (2, ChangeKind::Corrected), (61, ChangeKind::Fired)];
        assert_eq!(changes(above("100"), AlertFigure::Revenue, &readings), expected, "an hour is between two firings");
    }

    #[test]
    fn a_window_that_was_too_small_is_corrected_by_late_events() {
        let below = Condition::Below(Amount::from_units(10));
        let readings = [(0, 1, "9"), (1, 1, "10"), (2, 1, "11"), (3, 2, "3"), (100, 2, "3"), (101, 3, "20")];
        let expected =
            [(0, ChangeKind::Fired), (2, ChangeKind::Corrected), (100, ChangeKind::Fired), (101, ChangeKind::Resolved)];
        assert_eq!(changes(below, AlertFigure::Orders, &readings), expected);
    }

    #[test]
    fn small_thresholds_of_counts_can_be_left() {
        let expected = [(0, ChangeKind::Fired), (1, ChangeKind::Resolved)];
        assert_eq!(changes(above("0"), AlertFigure::Events, &[(0, 1, "1"), (1, 2, "0")]), expected);
        assert_eq!(changes(above("1"), AlertFigure::Events, &[(0, 1, "2"), (1, 2, "0")]), expected);
    }

    #[test]
    fn a_clock_that_was_set_back_delays_nothing() {
        let expected = [(500, ChangeKind::Fired), (501, ChangeKind::Resolved), (10, ChangeKind::Fired)];
        assert_eq!(changes(above("1"), AlertFigure::Events, &[(500, 1, "2"), (501, 2, "0"), (10, 2, "2")]), expected);
    }
}
