//! Sessions, and their touches: events with a known source.
//!
//! [`Session::meets`] defines which sessions merge, and so what a late event bridges.
//! [`Session::join`] merges them.

use serde::{Deserialize, Serialize};

use crate::acquisition::Channel;
use crate::ids::RecordKey;
use crate::indexes::dictionary::TermId;
use crate::moment::Moment;
use crate::time::{Day, Instant};

/// The longest gap between two events of a session, in milliseconds. Events that are not
/// interactive are attached to a session for the same time after its end.
pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000;

/// A session: interactive events of one identity without a gap of more than 30 minutes.
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
    /// The source, medium and campaign of the first event with a source, else of the entry. `None`
    /// if all are unknown.
    pub touch: Option<Touch>,
    /// The channel of the same event.
    pub channel: Channel,
    /// Whether the entry has a page URL.
    pub has_page: bool,
    /// The later events that decide properties which the entry lacks.
    pub later: Option<Box<LaterEvents>>,
    /// The company that the entry names itself.
    pub company: Option<Box<RecordKey>>,
}

/// The events of a session that decide properties which its entry lacks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterEvents {
    /// The first event with a source.
    pub source: Option<Moment>,
    /// The first event with a page URL.
    pub page: Option<Moment>,
}

impl Session {
    /// Returns the moment of the first event with a source.
    pub(crate) fn source_at(&self) -> Option<Moment> {
        self.touch.filter(Touch::has_source)?;
        Some(self.later.as_ref().and_then(|later| later.source).unwrap_or(self.at))
    }

    /// Returns the moment of the first event with a page URL.
    #[must_use]
    pub fn page_at(&self) -> Option<Moment> {
        if self.has_page { Some(self.at) } else { self.later.as_ref()?.page }
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

    /// Whether an event at `time` that is not interactive is attached to this session, which began
    /// at or before this time.
    pub(crate) fn attaches(&self, time: Instant) -> bool {
        time.0.saturating_sub(self.last.0) <= SESSION_GAP_MS
    }

    /// Whether the session has the same fields as `other`.
    pub(crate) fn has_fields_of(&self, other: &Session) -> bool {
        (self.at, self.source_at(), self.page_at()) == (other.at, other.source_at(), other.page_at())
    }

    /// Merges two sessions.
    #[must_use]
    pub fn join(self, other: Session) -> Session {
        let (last, events) = (self.last.max(other.last), self.events + other.events);
        let (entry, second) = if other.at < self.at { (other, self) } else { (self, other) };
        let first_of = |one: Option<Moment>, other: Option<Moment>| one.into_iter().chain(other).min();
        let (source, page) = (first_of(entry.source_at(), second.source_at()), first_of(entry.page_at(), second.page_at()));
        let (touch, channel) = match source {
            Some(at) if second.source_at() == Some(at) => (second.touch, second.channel),
            _ => (entry.touch, entry.channel),
        };
        let is_later = |at: &Moment| *at != entry.at;
        let later = LaterEvents { source: source.filter(is_later), page: page.filter(is_later) };
        let later = (later != LaterEvents::default()).then(|| Box::new(later));
        Session { last, events, touch, channel, later, ..entry }
    }
}

/// The source, medium and campaign of an event or a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Touch {
    /// The source; never `(direct)`. [`Touch::NO_SOURCE`] where only the medium or the campaign is
    /// known.
    pub source: TermId,
    /// The medium.
    pub medium: TermId,
    /// The campaign.
    pub campaign: TermId,
}

impl Touch {
    /// Stands for an unknown source. No text has this number.
    pub const NO_SOURCE: TermId = TermId(u32::MAX);

    /// Whether the source is known.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.source != Self::NO_SOURCE
    }

    /// Returns the source, if it is known.
    #[must_use]
    pub fn source(&self) -> Option<TermId> {
        Some(self.source).filter(|_| self.has_source())
    }

    /// Passes its terms to `visit`.
    pub fn terms(self, visit: &mut dyn FnMut(TermId)) {
        self.source().into_iter().chain([self.medium, self.campaign]).for_each(visit);
    }

    /// Replaces its terms.
    pub(crate) fn with_terms(self, replace: impl Fn(TermId) -> TermId) -> Self {
        let source = self.source().map_or(Self::NO_SOURCE, &replace);
        Self { source, medium: replace(self.medium), campaign: replace(self.campaign) }
    }
}

/// A touch and its moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TouchAt {
    /// The moment of the event.
    pub at: Moment,
    /// The touch.
    pub touch: Touch,
}

/// An event with a known source, anywhere in a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchEvent {
    /// Its moment.
    pub at: Moment,
    /// Its source, medium and campaign.
    pub touch: Touch,
    /// The company that the event names itself. Only for identities.
    pub company: Option<Box<RecordKey>>,
}

impl TouchEvent {
    /// Returns the touch and its moment.
    pub(crate) fn touch_at(&self) -> TouchAt {
        TouchAt { at: self.at, touch: self.touch }
    }
}

impl From<TouchAt> for TouchEvent {
    fn from(TouchAt { at, touch }: TouchAt) -> Self {
        Self { at, touch, company: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::dictionary::TermId;

    fn event(second: i64, source: Option<u32>, has_page: bool) -> Session {
        let (time, term) = (Instant(second * 1_000), TermId(0));
        let touch = source.map(|source| Touch { source: TermId(source), medium: term, campaign: term });
        let at = Moment { time, position: 0 };
        let channel = if source.is_some() { Channel::Referral } else { Channel::Direct };
        Session { at, day: Day(0), last: time, events: 1, touch, channel, has_page, later: None, company: None }
    }

    #[test]
    fn the_first_page_and_the_first_source_are_the_sessions_in_any_order() {
        let events = [event(0, None, false), event(1, None, true), event(2, Some(7), false), event(3, Some(8), true)];
        let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]];
        for order in orders {
            let joined = order.map(|at| events[at].clone()).into_iter().reduce(Session::join).unwrap();
            assert_eq!((joined.at, joined.events, joined.last), (events[0].at, 4, events[3].last), "{order:?}");
            assert_eq!((joined.page_at(), joined.source_at()), (Some(events[1].at), Some(events[2].at)), "{order:?}");
            assert_eq!((joined.touch, joined.channel), (events[2].touch, Channel::Referral), "{order:?}");
        }
        assert_eq!((events[3].page_at(), events[3].source_at()), (Some(events[3].at), Some(events[3].at)));
    }

    #[test]
    fn what_comes_within_half_an_hour_is_attached() {
        let session = event(0, None, false).join(event(600, None, false));
        let attaches = |ms: i64| session.attaches(Instant(ms));
        assert_eq!([0, 600_000, 2_400_000, 2_400_001].map(attaches), [true, true, true, false]);
    }
}
