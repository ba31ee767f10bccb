//! The text of a message about an alert.

use headcount_domain::money::Amount;

use crate::alert::{Alert, AlertFigure, Condition};
use crate::alert_state::AlertChange;
use crate::evaluation::ChangeKind;
use crate::message::Message;

/// A value with its unit.
fn shown(figure: AlertFigure, value: &str, currency: &str) -> String {
    match figure {
        AlertFigure::Revenue => format!("{value} {currency}"),
        AlertFigure::BounceRate | AlertFigure::Rate => {
            let share = Amount::parse(value).unwrap_or_default();
            format!("{} %", Amount::from_micros(share.micros() * 100))
        }
        _ => value.to_owned(),
    }
}

/// The message about a change. It has figures, and names that members chose.
pub(crate) fn message(alert: &Alert, change: &AlertChange, (project, currency, timezone): (&str, &str, &str)) -> Message {
    let (relation, threshold) = match alert.rule.condition {
        Condition::Above(threshold) => ("above", threshold),
        Condition::Below(threshold) => ("below", threshold),
    };
    let (value, threshold) =
        (shown(alert.rule.figure, &change.value, currency), shown(alert.rule.figure, &threshold.to_string(), currency));
    let figure = alert.rule.figure.words();
    let state = match change.kind {
        ChangeKind::Fired => format!("{figure}: {value}. This is {relation} {threshold}."),
        ChangeKind::Resolved => format!("{figure}: {value}. This is not {relation} {threshold} any more."),
        ChangeKind::Corrected => {
            format!("{figure}: {value}. After late events, refunds or erasures, this is not {relation} {threshold} any more.")
        }
    };
    let (start, end) = change.window;
    let days = if start == end { start.to_string() } else { format!("{start} to {end}") };
    let title = match change.kind {
        ChangeKind::Fired => format!("Alert: {} ({project})", alert.name),
        ChangeKind::Resolved | ChangeKind::Corrected => format!("Over: {} ({project})", alert.name),
    };
    Message { title, lines: vec![state, format!("{days} ({timezone})")] }
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
            created_at: Instant(0),
        };
        let window = (Day(days.0), Day(days.1));
        let change = AlertChange { number: 1, kind, at: Instant(0), value: value.into(), window, messages: Vec::new() };
        let Message { title, lines } = message(&alert, &change, ("Shop", "EUR", "Europe/Zurich"));
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
                "Over: Busy (Shop)",
                "Revenue: 612.5 EUR. After late events, refunds or erasures, this is not below 500 EUR any more.",
                "2024-03-01 to 2024-03-07 (Europe/Zurich)"
            ]
        );
        let share = lines(AlertFigure::BounceRate, above("0.5"), ChangeKind::Resolved, "0.451", (0, 0));
        assert_eq!(share[1], "Bounce rate: 45.1 %. This is not above 50 % any more.");
    }
}
