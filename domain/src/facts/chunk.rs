//! What a page of facts holds, and how its lists are kept in order.

use serde::{Deserialize, Serialize};

use super::{DayEntry, Hit, Order, Session, TouchAt};
use crate::paged::{Chunk, insert_tight, place_near_end};
use crate::time::{Day, Instant};

/// Some days of an entity's facts. Each list is in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsChunk {
    /// By day and named group.
    pub(super) days: Vec<DayEntry>,
    /// Of an identity: by their entries. Numbered by the entry's UTC day.
    pub(super) sessions: Vec<Session>,
    /// Of a company: the touches of the sessions that are its own. Numbered by UTC day.
    pub(super) touches: Vec<TouchAt>,
    /// By moment. Numbered by UTC day.
    pub(super) orders: Vec<Order>,
    /// By day and name.
    pub(super) hits: Vec<Hit>,
}

/// What is known of a page without reading it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactsDigest {
    /// The first and the last active day.
    pub(super) days: Option<(Day, Day)>,
    /// The first touch.
    pub(super) first_touch: Option<TouchAt>,
    /// The last touch.
    pub(super) last_touch: Option<TouchAt>,
}

impl FactsChunk {
    /// All touches, in order: an identity has them in its sessions, a company by themselves.
    pub(super) fn touches(&self) -> impl DoubleEndedIterator<Item = TouchAt> {
        self.sessions.iter().filter_map(Session::touch_at).chain(self.touches.iter().copied())
    }

    /// The first touch after `time`.
    pub(super) fn touch_after(&self, time: Instant) -> Option<TouchAt> {
        let sessions = &self.sessions[self.sessions.partition_point(|session| session.at.time <= time)..];
        let touch = self.touches.partition_point(|touch| touch.at.time <= time);
        sessions.iter().find_map(Session::touch_at).or_else(|| self.touches.get(touch).copied())
    }

    pub(super) fn put_session(&mut self, session: Session) {
        let at = place_near_end(&self.sessions, |other| other.at < session.at);
        insert_tight(&mut self.sessions, at, session);
    }

    pub(super) fn put_touch(&mut self, touch: TouchAt) {
        let at = place_near_end(&self.touches, |other| other.at < touch.at);
        insert_tight(&mut self.touches, at, touch);
    }

    pub(super) fn put_order(&mut self, order: Order) {
        let at = place_near_end(&self.orders, |other| other.at < order.at);
        insert_tight(&mut self.orders, at, order);
    }

    pub(super) fn put_hit(&mut self, hit: Hit) {
        let at = place_near_end(&self.hits, |other| (other.day, other.what) < (hit.day, hit.what));
        match self.hits.get_mut(at) {
            Some(there) if (there.day, there.what) == (hit.day, hit.what) => there.count += hit.count,
            _ => insert_tight(&mut self.hits, at, hit),
        }
    }
}

impl Chunk for FactsChunk {
    type Digest = FactsDigest;

    fn items(&self) -> usize {
        self.days.len() + self.sessions.len() + self.touches.len() + self.orders.len() + self.hits.len()
    }

    fn bounds(&self) -> Option<(i32, i32)> {
        let ends = [
            self.days.first().zip(self.days.last()).map(|(a, b)| (a.day.0, b.day.0)),
            self.sessions.first().zip(self.sessions.last()).map(|(a, b)| (a.at.number(), b.at.number())),
            self.touches.first().zip(self.touches.last()).map(|(a, b)| (a.at.number(), b.at.number())),
            self.orders.first().zip(self.orders.last()).map(|(a, b)| (a.at.number(), b.at.number())),
            self.hits.first().zip(self.hits.last()).map(|(a, b)| (a.day.0, b.day.0)),
        ];
        ends.into_iter().flatten().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    fn weight(&self) -> usize {
        // Named groups and money are boxed; a day in two has one.
        self.days.capacity() * (size_of::<DayEntry>() + 24)
            + self.sessions.capacity() * (size_of::<Session>() + 8)
            + self.touches.capacity() * size_of::<TouchAt>()
            + self.orders.capacity() * (size_of::<Order>() + 8)
            + self.hits.capacity() * size_of::<Hit>()
    }

    fn split_before(&mut self, number: i32) -> Self {
        fn before<T>(list: &mut Vec<T>, number: impl Fn(&T) -> bool) -> Vec<T> {
            let at = list.partition_point(number);
            let rest = list.split_off(at);
            std::mem::replace(list, rest)
        }
        Self {
            days: before(&mut self.days, |entry| entry.day.0 < number),
            sessions: before(&mut self.sessions, |session| session.at.number() < number),
            touches: before(&mut self.touches, |touch| touch.at.number() < number),
            orders: before(&mut self.orders, |order| order.at.number() < number),
            hits: before(&mut self.hits, |hit| hit.day.0 < number),
        }
    }

    fn middle(&self) -> i32 {
        let middles = [
            (self.days.len(), self.days.get(self.days.len() / 2).map(|entry| entry.day.0)),
            (self.sessions.len(), self.sessions.get(self.sessions.len() / 2).map(|session| session.at.number())),
            (self.touches.len(), self.touches.get(self.touches.len() / 2).map(|touch| touch.at.number())),
            (self.orders.len(), self.orders.get(self.orders.len() / 2).map(|order| order.at.number())),
            (self.hits.len(), self.hits.get(self.hits.len() / 2).map(|hit| hit.day.0)),
        ];
        // The middle of the longest list; one past the first number where that leaves nothing on one side.
        let middle = middles.into_iter().max().and_then(|(_, number)| number).unwrap_or(i32::MIN);
        self.bounds().map_or(middle, |(least, _)| middle.max(least.saturating_add(1)))
    }

    fn digest(&self) -> FactsDigest {
        FactsDigest {
            days: self.days.first().zip(self.days.last()).map(|(first, last)| (first.day, last.day)),
            first_touch: self.touches().next(),
            last_touch: self.touches().next_back(),
        }
    }
}
