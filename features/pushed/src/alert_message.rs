//! The text of a message about an alert.

use headcount_domain::Window;
use headcount_domain::money::Amount;

use crate::alert::{Alert, AlertFigure, Condition};
use crate::evaluation::{ChangeKind, Reading};
use crate::message::Message;

/// A value with its unit.
fn shown(figure: AlertFigure, value: Amount, currency: &str) -> String {
    match figure {
        AlertFigure::Revenue => format!("{value} {currency}"),
        AlertFigure::BounceRate | AlertFigure::Rate => format!("{} %", Amount::from_micros(value.micros() * 100)),
        _ => value.to_string(),
    }
}

/// The message about a change. It has figures, and names that members chose.
pub(crate) fn message(
    alert: &Alert,
    kind: ChangeKind,
    reading: Reading,
    (project, currency, timezone): (&str, &str, &str),
) -> Message {
    let (relation, threshold) = match alert.rule.condition {
        Condition::Above(threshold) => ("above", threshold),
        Condition::Below(threshold) => ("below", threshold),
    };
    let figure = alert.rule.figure;
    let (value, threshold) = (shown(figure, reading.value, currency), shown(figure, threshold, currency));
    let figure = figure.words();
    let state = match kind {
        ChangeKind::Fired => format!("{figure}: {value}. This is {relation} {threshold}."),
        ChangeKind::Resolved => format!("{figure}: {value}. This is no longer {relation} {threshold}."),
        ChangeKind::Corrected => {
            format!("{figure}: {value}. After late events, links, refunds or erasures, this is no longer {relation} {threshold}.")
        }
    };
    let Window { start, end } = reading.window;
    let days = if start == end { start.to_string() } else { format!("{start} to {end}") };
    let state_name = if kind == ChangeKind::Fired { "Alert" } else { "Resolved" };
    Message { title: format!("{state_name}: {} ({project})", alert.name), lines: vec![state, format!("{days} ({timezone})")] }
}

#[cfg(test)]
mod tests {
    use headcount_domain::{Day, Instant, ProjectId};

    use super::*;
    use crate::alert::{AlertEvents, AlertRule, AlertWindow};

    fn lines(figure: AlertFigure, condition: Condition, kind: ChangeKind, value: &str, days: (i32, i32)) -> Vec<String> {
        let alert = Alert {
            id: "alert_0000000000000000".parse().unwrap(),
            name: "Busy".into(),
            project: ProjectId(1),
            rule: AlertRule { figure, over: AlertWindow::Day, condition, channels: Vec::new(), muted_until: None },
            events: AlertEvents::default(),
            fingerprint: String::new(),
            created_at: Instant(0),
        };
        let window = Window { start: Day(days.0), end: Day(days.1) };
        let reading = Reading { window, is_late: false, value: Amount::parse(value).unwrap() };
        let Message { title, lines } = message(&alert, kind, reading, ("Shop", "EUR", "Europe/Zurich"));
        [vec![title], lines].concat()
    }

    #[test]
    fn a_message_says_what_happened() {
        let above = |text| Condition::Above(Amount::parse(text).unwrap());
        assert_eq!(
            lines(AlertFigure::UniqueUsers, above("1000"), ChangeKind::Fired, "1001", (19_783, 19_783)),
            ["Alert: Busy (Shop)", "Unique users: 1001. This is above 1000.", "2024-03-01 (Europe/Zurich)"]
        );
        let below = Condition::Below(Amount::from_units(500));
        assert_eq!(
            lines(AlertFigure::Revenue, below, ChangeKind::Corrected, "612.5", (19_783, 19_789)),
            [
                "Resolved: Busy (Shop)",
                "Revenue: 612.5 EUR. After late events, links, refunds or erasures, this is no longer below 500 EUR.",
                "2024-03-01 to 2024-03-07 (Europe/Zurich)"
            ]
        );
        let share = lines(AlertFigure::BounceRate, above("0.5"), ChangeKind::Resolved, "0.451", (0, 0));
        assert_eq!(share[1], "Bounce rate: 45.1 %. This is no longer above 50 %.");
    }
}
