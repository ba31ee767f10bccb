//! Sessions.

use serde::{Deserialize, Serialize};

use super::touch::{Touch, TouchAt};
use crate::acquisition::Channel;
use crate::ids::RecordKey;
use crate::moment::Moment;
use crate::time::{Day, Instant};

/// The longest gap between two events of a session, in milliseconds.
pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000;

/// A session: events of one identity without a gap of more than 30 minutes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The entry: its earliest event.
    pub at: Moment,
    /// The calendar day of the entry.
    pub day: Day,
    /// The time of its last event.
    pub last: Instant,
    /// The number of events.
    pub events: u32,
    /// The entry's source, medium and campaign. Without a source, it is no touch; `None`: nothing of it is known.
    pub touch: Option<Touch>,
    /// The entry's channel.
    pub channel: Channel,
    /// The company that the entry names itself.
    pub company: Option<Box<RecordKey>>,
}

impl Session {
    /// Returns the session's touch, if it has a source.
    #[must_use]
    pub fn touch_at(&self) -> Option<TouchAt> {
        self.touch.filter(|touch| touch.has_source()).map(|touch| TouchAt { at: self.at, touch })
    }

    /// Returns the time from its first event to its last, in milliseconds.
    #[must_use]
    pub fn duration_ms(&self) -> i64 {
        self.last.0.saturating_sub(self.at.time.0)
    }

    /// Whether the gap between the two sessions is short enough to merge them.
    #[must_use]
    pub fn meets(&self, other: &Session) -> bool {
        let gap = |earlier: Instant, later: Instant| later.0.saturating_sub(earlier.0) <= SESSION_GAP_MS;
        gap(self.last, other.at.time) && gap(other.last, self.at.time)
    }

    /// Merges two sessions.
    #[must_use]
    pub fn join(self, other: Session) -> Session {
        let (last, events) = (self.last.max(other.last), self.events + other.events);
        let entry = if other.at < self.at { other } else { self };
        Session { last, events, ..entry }
    }
}
