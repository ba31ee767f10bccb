//! What watchers of a project see.

use std::sync::Arc;

use headcount_domain::ids::event_id;
use headcount_domain::intake::event::{Event, Position};
use headcount_domain::money::Amount;
use headcount_domain::time::{Day, Instant};

/// A project at one moment. All values are absolute.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveFrame {
    /// The incarnation of the data directory, without which the position means nothing.
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
    /// Its unique users.
    pub unique_users: u64,
    /// The sessions that began on it.
    pub sessions: u64,
    /// Its pageviews.
    pub pageviews: u64,
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// The distinct identities with an event in the last five minutes.
    pub users_5m: u64,
    /// The last minutes, the running one last.
    pub minutes: Vec<LiveMinute>,
}

/// A minute in UTC, by the time of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveMinute {
    /// Its beginning.
    pub minute: Instant,
    /// The number of events.
    pub events: u64,
    /// The number of distinct identities.
    pub users: u64,
}

/// An event that asked to notify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveNotification {
    /// Its position.
    pub position: Position,
    /// Its id.
    pub event_id: String,
    /// Its name.
    pub name: String,
    /// Its text.
    pub message: Option<String>,
    /// Its channel.
    pub channel: Option<String>,
    /// When it happened.
    pub at: Instant,
}

impl LiveNotification {
    /// The bytes of its texts.
    pub(crate) fn bytes(&self) -> usize {
        let texts = [&self.message, &self.channel].into_iter().flatten().map(String::len);
        self.event_id.len() + self.name.len() + texts.sum::<usize>()
    }

    /// The notification of an event, if it asked for one.
    pub(crate) fn of(position: Position, event: &Event) -> Option<Self> {
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
