//! The sample events.

use std::sync::LazyLock;

use headcount_domain::agent::{self, Agent};
use headcount_domain::intake::policy::Policy;
use headcount_domain::{Event, Instant};

/// The first event's time.
pub const START_MS: i64 = 1_780_272_000_000;
/// How many milliseconds a day has.
pub const DAY_MS: i64 = 86_400_000;
/// How many events there are in [`DAYS`] days.
pub const EVENTS: usize = 20_000;
/// The days of the events.
pub const DAYS: i64 = 60;
/// The users of [`body`].
const USERS: usize = 5_000;
/// When the events are received.
pub const RECEIVED: Instant = Instant(START_MS + 100 * DAY_MS);
/// The user agent of a browser.
pub const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";

/// Returns the JSON of an event of a typical user, about 570 bytes.
#[must_use]
pub fn body(number: usize) -> String {
    let user = number * 7919 % USERS;
    body_of(number, user, Some(("company", user % 500)))
}

/// Returns the JSON of an event of `user`, who belongs to a group.
#[must_use]
pub fn body_of(number: usize, user: usize, group: Option<(&str, usize)>) -> String {
    let group = group.map_or_else(String::new, |(kind, id)| format!(r#""group_type":"{kind}","group_id":"co{id}","#));
    let order = if number.is_multiple_of(50) { format!(r#","value":12.99,"external_id":"ord-{number}""#) } else { String::new() };
    format!(
        r#"{{"name":"$pageview","user_id":"u{user}","anonymous_id":"a{user:016}","timestamp":{},"url":"https://app.example.com/docs/section-{}/page-{}?utm_source=newsletter","hostname":"app.example.com","referrer":"https://www.google.com/","language":"en-US","screen":"1920x1080",{group}"metadata":{{"browser":"Chrome","country":"DE","plan":"pro","note":"some more text to make the body as long as the others are, which is about five hundred and seventy bytes in all"}}{order}}}"#,
        START_MS + (number as i64) * DAYS * DAY_MS / EVENTS as i64,
        number % 20,
        number % 400,
    )
}

/// Returns the event of a body that a browser sent.
#[must_use]
pub fn admitted(body: &str, policy: &Policy) -> Box<Event> {
    // Parsing it would take most of the time of the setup under callgrind.
    static AGENT: LazyLock<Agent> = LazyLock::new(|| agent::parse(BROWSER));
    crate::event(body, policy, &AGENT, RECEIVED)
}
