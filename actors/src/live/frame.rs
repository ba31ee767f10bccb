//! The frames that watchers of a project see.

use std::sync::Arc;

use headcount_domain::ids::event_id;
use headcount_domain::{Amount, Day, Event, Instant, Position};

/// The figures of a project at one moment. All values are absolute.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveFrame {
    /// The incarnation of the data directory, without which the position has no meaning.
    pub incarnation: u128,
    /// The number of erasures that the figures reflect.
    pub erasures: u64,
    /// The project's last position. Figures may reflect later ones.
    pub position: Position,
    /// The moment.
    pub at: Instant,
    /// The figures.
    pub figures: LiveFigures,
    /// The last notifications, oldest first.
    pub notifications: Arc<[Arc<LiveNotification>]>,
}

/// The figures of a project at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveFigures {
    /// The current day.
    pub day: Day,
    /// The events of the day.
    pub events: u64,
    /// The unique users of the day.
    pub unique_users: u64,
    /// The sessions that began on the day.
    pub sessions: u64,
    /// The pageviews of the day.
    pub pageviews: u64,
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// The distinct identities with an event in the last five minutes.
    pub users_5m: u64,
    /// The last minutes, ending with the current one.
    pub minutes: Vec<LiveMinute>,
}

/// A minute in UTC, by the time of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveMinute {
    /// The beginning of the minute.
    pub minute: Instant,
    /// The number of events.
    pub events: u64,
    /// The number of distinct identities.
    pub users: u64,
}

/// An event with `notify: true`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveNotification {
    /// The position of the event.
    pub position: Position,
    /// The id of the event.
    pub event_id: String,
    /// The name of the event.
    pub name: String,
    /// The text of the notification.
    pub message: Option<String>,
    /// The channel of the notification.
    pub channel: Option<String>,
    /// The time of the event.
    pub at: Instant,
}

impl LiveNotification {
    /// The bytes of its texts.
    pub fn bytes(&self) -> usize {
        let texts = [&self.message, &self.channel].into_iter().flatten().map(String::len);
        self.event_id.len() + self.name.len() + texts.sum::<usize>()
    }

    /// Returns the notification of an event, if it has one.
    pub fn of(position: Position, event: &Event) -> Option<Self> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        event.details.notify.filter(|notify| *notify)?;
        Some(Self {
            position,
            event_id: event_id(event.project, event.external_id.as_deref(), position),
            name: event.name.to_string(),
            message: text(event.details.message.as_deref()),
            channel: text(event.details.channel.as_deref()),
            at: event.time,
        })
    }
}
