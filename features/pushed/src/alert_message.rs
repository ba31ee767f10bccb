//! The text of a message about an alert.

use headcount_domain::Window;
use headcount_domain::money::Amount;

use crate::alert::{Alert, AlertFigure};
use crate::condition::{Against, Condition};
use crate::evaluation::{ChangeKind, Reading};
use crate::message::Message;

/// The maximum length of a link.
const MAX_LINK_BYTES: usize = 600;

/// A value with its unit.
fn shown(figure: AlertFigure, value: Amount, currency: &str) -> String {
    match figure {
        AlertFigure::Revenue => format!("{value} {currency}"),
        AlertFigure::BounceRate | AlertFigure::Rate => format!("{} %", Amount::from_micros(value.micros() * 100)),
        _ => value.to_string(),
    }
}

fn capitalized(text: &str) -> String {
    text.replacen('t', "T", 1)
}

/// The message about a change. It has figures, and names that members chose.
pub(crate) fn message(
    alert: &Alert,
    kind: ChangeKind,
    reading: Reading,
    (project, currency, timezone): (&str, &str, &str),
    public_url: Option<&str>,
) -> Message {
    let figure = alert.rule.figure;
    let (value, shown) = (reading.value, |amount: Amount| shown(figure, amount, currency));
    let (holds, no_longer) = match (alert.rule.condition, reading.baseline) {
        (Condition::Above(threshold), _) => {
            let threshold = shown(threshold);
            (format!("This is above {threshold}."), format!("this is no longer above {threshold}."))
        }
        (Condition::Below(threshold), _) => {
            let threshold = shown(threshold);
            (format!("This is below {threshold}."), format!("this is no longer below {threshold}."))
        }
        (Condition::Changes(change), baseline) => {
            let known = baseline.map_or_else(|| "no data".to_owned(), shown);
            let baseline = baseline.unwrap_or_default();
            let of = match change.against {
                Against::Previous => format!("the {} before ({known})", alert.rule.over),
                Against::SameWeekday => format!("the median of the same weekdays before ({known})"),
            };
            let relation = if value < baseline { "less" } else { "more" };
            let difference =
                shown(Amount::from_micros((value - baseline).micros().saturating_abs())).replace('%', "percentage points");
            let far = match (change.down, change.up) {
                (true, false) => "below",
                (false, _) => "above",
                _ => "from",
            };
            (format!("This is {difference} {relation} than {of}."), format!("this is no longer so far {far} {of}."))
        }
    };
    let (words, value) = (figure.words(), shown(value));
    let state = match kind {
        ChangeKind::Fired => format!("{words}: {value}. {holds}"),
        ChangeKind::Resolved => format!("{words}: {value}. {}", capitalized(&no_longer)),
        ChangeKind::Corrected => format!("{words}: {value}. After late events, links, refunds or erasures, {no_longer}"),
    };
    let Window { start, end } = reading.window;
    let days = if start == end { start.to_string() } else { format!("{start} to {end}") };
    let state_name = if kind == ChangeKind::Fired { "Alert" } else { "Resolved" };
    // It ends with a date: chats leave out a dot at the end.
    let link = public_url
        .zip(alert.page_query.as_ref())
        .map(|(url, query)| format!("{url}/ui/{}/overview?{query}period=custom&from={start}&to={end}", alert.project));
    let (title, lines) = (format!("{state_name}: {} ({project})", alert.name), vec![state, format!("{days} ({timezone})")]);
    // A chat takes no longer one, and a part of it would show other figures.
    Message { title, lines, link: link.filter(|link| link.len() <= MAX_LINK_BYTES) }
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
            page_query: Some("f=name~is~a&".into()),
            fingerprint: String::new(),
            created_at: Instant(0),
        };
        let window = Window { start: Day(days.0), end: Day(days.1) };
        let baseline = Some(Amount::from_units(10));
        let reading = Reading { window, is_late: false, value: Amount::parse(value).unwrap(), baseline };
        let Message { title, lines, link } =
            message(&alert, kind, reading, ("Shop", "EUR", "Europe/Zurich"), Some("https://stats.example"));
        let of_page = format!("https://stats.example/ui/{}/overview?f=name~is~a&period=custom", alert.project);
        assert_eq!(link, Some(format!("{of_page}&from={}&to={}", window.start, window.end)));
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
        let change = |json: &str| Condition::parse(json).unwrap();
        let less = change(r#"{"changes_by": "-30%", "against": "previous"}"#);
        let orders = lines(AlertFigure::Orders, less, ChangeKind::Fired, "6", (19_783, 19_783));
        assert_eq!(orders[1], "Orders: 6. This is 4 less than the day before (10).");
        let weekdays = change(r#"{"changes_by": 5, "against": "same_weekday"}"#);
        let orders = lines(AlertFigure::Orders, weekdays, ChangeKind::Resolved, "11", (19_783, 19_783));
        assert_eq!(orders[1], "Orders: 11. This is no longer so far above the median of the same weekdays before (10).");
        let share = lines(AlertFigure::BounceRate, above("0.5"), ChangeKind::Resolved, "0.451", (0, 0));
        assert_eq!(share[1], "Bounce rate: 45.1 %. This is no longer above 50 %.");
    }
}
