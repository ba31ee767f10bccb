//! What is known of one entity: the facts that its contributions to every rollup are computed from.
//!
//! Facts only ever grow by adding: an event is the smallest of them, and linking two identities is their sum. So the
//! order of arrival can't change them. What a company holds can also be taken out again, item by item.

mod change;
mod chunk;
mod parts;

use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

pub use change::{Change, Span, Times};
pub use chunk::{FactsChunk, FactsDigest};
pub use parts::{
    DayEntry, Hit, HitKind, Moment, MoneySums, Named, Order, SESSION_GAP_MS, SeenOnDay, Session, Sums, Touch, TouchAt, number_of,
};

use crate::ids::RecordKey;
use crate::paged::{Paged, insert_tight, place_near_end};
use crate::records::Fault;
use crate::rollup::Sign;
use crate::time::{Day, Instant};

/// Everything known of one entity in one project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    paged: Paged<FactsChunk>,
    /// The first touch of all.
    first_touch: Option<TouchAt>,
    /// All money of all time.
    money: Option<Box<MoneySums>>,
    /// The key of its bundle, once it has one.
    bundle: Option<Box<RecordKey>>,
}

/// How many orders an entity has at most before another first touch makes a bundle of them.
static LOOSE_ORDERS: AtomicUsize = AtomicUsize::new(32);

/// Changes how many orders an entity has before they are bundled: answers don't depend on it, and tests show that with few.
pub fn set_loose_orders(orders: usize) {
    LOOSE_ORDERS.store(orders, Ordering::Relaxed);
}

/// The numbers of a span of time, as pages count: a day's events lie on up to three UTC days.
fn numbers(times: Times) -> (i32, i32) {
    (number_of(times.from), number_of(times.to))
}

impl Facts {
    /// How many items there are: what going through them costs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.paged.items()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first_day().is_none()
    }

    /// The pages, for whoever loads and saves them.
    #[must_use]
    pub fn paged(&self) -> &Paged<FactsChunk> {
        &self.paged
    }

    /// All changes are on their way to the store.
    pub fn saved(&mut self) {
        self.paged.saved();
    }

    /// Lets go of pages that are saved.
    pub fn shed(&mut self) {
        self.paged.shed();
    }

    /// What they take in memory beside themselves, in bytes, roughly.
    #[must_use]
    pub fn weight(&self) -> usize {
        let bundle = self.bundle.as_ref().map_or(0, |_| size_of::<RecordKey>());
        self.paged.weight() + self.money.as_ref().map_or(0, |_| size_of::<MoneySums>()) + bundle
    }

    /// Brings the pages that can hold anything of the days of `span` into memory.
    ///
    /// # Errors
    /// What `load` fails with.
    pub fn load(&mut self, span: Span, load: impl FnMut(u32) -> Result<FactsChunk, Fault>) -> Result<(), Fault> {
        self.paged.load(span.first.0.saturating_sub(2), span.last.0.saturating_add(2), load)
    }

    /// Whether adding an event of `day` at `time` touches nothing but the recent part.
    #[must_use]
    pub fn is_recent(&self, day: Day, time: Instant, touch: Option<Touch>) -> bool {
        let from = self.paged.recent_from();
        let after_a_session = || self.paged.recent().sessions.first().is_some_and(|first| first.at.time <= time);
        // Another first touch of all can move all orders.
        let keeps_first_touch = self.first_touch.map_or(touch.is_none(), |first| first.at.time < time);
        from == i32::MIN || (day.0 >= from && number_of(time) >= from && keeps_first_touch && after_a_session())
    }

    /// Whether adding or taking out a touch at `at` touches nothing but the recent part.
    #[must_use]
    pub fn is_recent_touch(&self, at: Moment) -> bool {
        let from = self.paged.recent_from();
        from == i32::MIN || (at.number() >= from && self.first_touch.is_some_and(|first| first.at < at))
    }

    /// Whether a day's sums are in the recent part.
    #[must_use]
    pub fn is_recent_day(&self, day: Day) -> bool {
        day.0 >= self.paged.recent_from()
    }

    /// The first active day.
    #[must_use]
    pub fn first_day(&self) -> Option<Day> {
        let sealed = self.paged.digests().find_map(|digest| digest.days).map(|(first, _)| first);
        sealed.or_else(|| self.paged.recent().days.first().map(|entry| entry.day))
    }

    /// The active days of `span`, in order.
    pub fn active_days(&self, span: Span) -> impl Iterator<Item = Day> {
        let mut last = None;
        self.days(span).filter_map(move |entry| {
            let new = last != Some(entry.day);
            last = Some(entry.day);
            new.then_some(entry.day)
        })
    }

    /// The last active day before `day`.
    #[must_use]
    pub fn active_before(&self, day: Day) -> Option<Day> {
        let last_of = |chunk: &FactsChunk| {
            let at = place_near_end(&chunk.days, |entry| entry.day < day);
            at.checked_sub(1).map(|at| chunk.days[at].day)
        };
        if let Some(found) = last_of(self.paged.recent()) {
            return Some(found);
        }
        // Of a page that lies wholly before it the digest is enough; the one that the day lies in is loaded.
        let sealed_before = self.paged.digests().rev().find_map(|digest| digest.days.filter(|(first, _)| *first < day))?;
        if sealed_before.1 < day {
            return Some(sealed_before.1);
        }
        self.paged.chunks(sealed_before.0.0, day.0).rev().find_map(last_of)
    }

    /// The entries of the days of `span`, in order of day.
    pub fn days(&self, span: Span) -> impl Iterator<Item = &DayEntry> {
        self.paged.chunks(span.first.0, span.last.0).flat_map(move |chunk| {
            let from = place_near_end(&chunk.days, |entry| entry.day < span.first);
            let to = place_near_end(&chunk.days, |entry| entry.day <= span.last);
            &chunk.days[from..to]
        })
    }

    /// Money by day, for the days of `span` that have any; a day with several groups comes several times.
    pub fn money(&self, span: Span) -> impl Iterator<Item = (Day, &MoneySums)> {
        self.days(span).filter_map(|entry| Some((entry.day, entry.sums.money.as_deref()?)))
    }

    /// All money of all time.
    #[must_use]
    pub fn total_money(&self) -> Option<&MoneySums> {
        self.money.as_deref()
    }

    /// The sessions whose entries lie in `times`, in order.
    pub fn sessions(&self, times: Times) -> impl Iterator<Item = &Session> {
        let (first, last) = numbers(times);
        self.paged.chunks(first, last).flat_map(move |chunk| {
            let from = chunk.sessions.partition_point(|session| session.at.time < times.from);
            let to = chunk.sessions.partition_point(|session| session.at.time <= times.to);
            &chunk.sessions[from..to.max(from)]
        })
    }

    /// The orders and refunds in `times`, in order.
    pub fn orders(&self, times: Times) -> impl Iterator<Item = &Order> {
        let (first, last) = numbers(times);
        self.paged.chunks(first, last).flat_map(move |chunk| {
            let from = chunk.orders.partition_point(|order| order.at.time < times.from);
            let to = chunk.orders.partition_point(|order| order.at.time <= times.to);
            &chunk.orders[from..to.max(from)]
        })
    }

    /// What was counted on the days of `span`.
    pub fn hits(&self, span: Span) -> impl Iterator<Item = Hit> {
        self.paged.chunks(span.first.0, span.last.0).flat_map(move |chunk| {
            let from = chunk.hits.partition_point(|hit| hit.day < span.first);
            let to = chunk.hits.partition_point(|hit| hit.day <= span.last);
            chunk.hits[from..to].iter().copied()
        })
    }

    /// All touches of a company, in order.
    pub fn touches(&self) -> impl Iterator<Item = TouchAt> {
        self.paged.chunks(i32::MIN, i32::MAX).flat_map(FactsChunk::touches)
    }

    /// The first touch of all.
    #[must_use]
    pub fn first_touch(&self) -> Option<TouchAt> {
        self.first_touch
    }

    /// The key under which its orders are counted by first touch, if they are bundled: what the bundle is under is kept once,
    /// so that another first touch moves no order.
    #[must_use]
    pub fn bundle(&self) -> Option<RecordKey> {
        self.bundle.as_deref().copied()
    }

    /// Bundles the orders under `key`, from here on and for good, if `change` moves them all and they are many.
    pub fn bundle_orders(&mut self, key: RecordKey, change: Change) {
        let is_many = || self.orders(Times::ALL).nth(LOOSE_ORDERS.load(Ordering::Relaxed)).is_some();
        if change.first_touch && self.bundle.is_none() && is_many() {
            self.bundle = Some(Box::new(key));
        }
    }

    /// The last touch that began at or before `time`.
    #[must_use]
    pub fn touch_at(&self, time: Instant) -> Option<Touch> {
        // Most orders come before the first touch of an entity that never has one, or after its last.
        self.first_touch.filter(|first| first.at.time <= time)?;
        let last_of = |chunk: &FactsChunk| {
            let sessions = chunk.sessions.partition_point(|session| session.at.time <= time);
            let touches = chunk.touches.partition_point(|touch| touch.at.time <= time);
            let in_sessions = chunk.sessions[..sessions].iter().rev().find_map(Session::touch_at);
            in_sessions.or_else(|| touches.checked_sub(1).map(|at| chunk.touches[at]))
        };
        if let Some(found) = last_of(self.paged.recent()) {
            return Some(found.touch);
        }
        let before = |digest: &FactsDigest| digest.first_touch.is_some_and(|first| first.at.time <= time);
        let digest = self.paged.digests().rev().find(|digest| before(digest))?;
        match digest.last_touch.filter(|last| last.at.time <= time) {
            Some(last) => Some(last.touch),
            None => {
                let from = digest.first_touch?.at.number();
                self.paged.chunks(from, number_of(time)).rev().find_map(last_of).map(|found| found.touch)
            }
        }
    }

    /// The first touch after `time`.
    fn touch_after(&self, time: Instant) -> Option<TouchAt> {
        let number = number_of(time);
        let in_its_part = self.paged.chunks(number, number).find_map(|chunk| chunk.touch_after(time));
        // Of the pages after that the digests are enough.
        let in_pages = || self.paged.digests().filter_map(|digest| digest.first_touch).find(|first| first.at.time > time);
        in_its_part.or_else(in_pages).or_else(|| self.paged.recent().touch_after(time))
    }

    /// Adds or takes out `sums` on `day`, of events that named this group themselves or didn't.
    pub fn add_day(&mut self, day: Day, named: Option<Named>, sums: &Sums, sign: Sign) {
        parts::add_money(&mut self.money, sums.money.as_deref(), sign);
        self.paged.change(day.0, |chunk| {
            let days = &mut chunk.days;
            let key = (day, named.as_ref());
            let at = place_near_end(days, |entry| (entry.day, entry.named.as_deref()) < key);
            match days.get_mut(at) {
                Some(entry) if (entry.day, entry.named.as_deref()) == key => {
                    entry.sums.add(sums, sign);
                    if entry.sums.events == 0 {
                        days.remove(at);
                    }
                }
                _ => insert_tight(days, at, DayEntry { day, named: named.map(Box::new), sums: sums.clone() }),
            }
        });
    }

    /// Adds an order or a refund.
    pub fn add_order(&mut self, order: Order) {
        self.paged.change(order.at.number(), |chunk| chunk.put_order(order));
    }

    /// Takes out the order of the moment `at`.
    pub fn remove_order(&mut self, at: Moment) {
        self.paged.change(at.number(), |chunk| {
            if let Ok(place) = chunk.orders.binary_search_by_key(&at, |order| order.at) {
                chunk.orders.remove(place);
            }
        });
    }

    /// Counts a hit.
    pub fn add_hit(&mut self, hit: Hit) {
        self.paged.change(hit.day.0, |chunk| chunk.put_hit(hit));
    }

    /// Adds a touch, of a company.
    pub fn add_touch(&mut self, touch: TouchAt) {
        self.paged.change(touch.at.number(), |chunk| chunk.put_touch(touch));
        self.saw_touch(touch);
    }

    /// Takes out the touch of the moment `at`, of a company.
    pub fn remove_touch(&mut self, at: Moment) {
        self.paged.change(at.number(), |chunk| {
            if let Ok(place) = chunk.touches.binary_search_by_key(&at, |touch| touch.at) {
                chunk.touches.remove(place);
            }
        });
        self.lost_touch(at);
    }

    /// Puts `session` in the place of those that it was joined from.
    pub fn replace_sessions(&mut self, joined: &[Session], session: Session) {
        for former in joined {
            self.paged.change(former.at.number(), |chunk| {
                if let Ok(place) = chunk.sessions.binary_search_by_key(&former.at, |session| session.at) {
                    chunk.sessions.remove(place);
                }
            });
        }
        let touch = session.touch_at();
        self.paged.change(session.at.number(), |chunk| chunk.put_session(session));
        for former in joined.iter().filter_map(Session::touch_at) {
            self.lost_touch(former.at);
        }
        touch.into_iter().for_each(|touch| self.saw_touch(touch));
    }

    fn saw_touch(&mut self, touch: TouchAt) {
        if self.first_touch.is_none_or(|first| touch.at < first.at) {
            self.first_touch = Some(touch);
        }
    }

    fn lost_touch(&mut self, at: Moment) {
        if self.first_touch.is_some_and(|first| first.at == at) {
            let sealed = self.paged.digests().find_map(|digest| digest.first_touch);
            self.first_touch = sealed.or_else(|| self.paged.recent().touches().next());
        }
    }

    /// The sessions that `session` meets, in order.
    #[must_use]
    pub fn met_by(&self, session: &Session) -> Vec<Session> {
        let last = Instant(session.last.0.saturating_add(SESSION_GAP_MS));
        let recent = self.paged.recent();
        // An event in order meets nothing but the last session.
        let in_recent = recent.sessions.first().is_some_and(|first| first.at.time <= session.at.time);
        let first = if in_recent { self.paged.recent_from() } else { i32::MIN };
        let mut met = Vec::new();
        'chunks: for chunk in self.paged.chunks(first, number_of(last)).rev() {
            let to = place_near_end(&chunk.sessions, |other| other.at.time <= last);
            for other in chunk.sessions[..to].iter().rev() {
                if !session.meets(other) {
                    break 'chunks;
                }
                met.push(other.clone());
            }
        }
        met.reverse();
        met
    }

    /// The last session, if an event of the moment `at` does nothing but make it longer: what most events do.
    #[must_use]
    pub fn extends_last_session(&self, at: Moment) -> Option<&Session> {
        let last = self.last_session()?;
        (at >= last.at && at.time.0 - last.last.0 <= SESSION_GAP_MS).then_some(last)
    }

    /// The last session, if it is in the recent part, where it stays once there.
    #[must_use]
    pub fn last_session(&self) -> Option<&Session> {
        self.paged.recent().sessions.last()
    }

    /// Makes the last session longer by an event at `time`.
    pub fn extend_last_session(&mut self, time: Instant) {
        self.paged.change(i32::MAX, |chunk| {
            if let Some(session) = chunk.sessions.last_mut() {
                session.events += 1;
                session.last = session.last.max(time);
            }
        });
    }

    /// Seals what is neither of the last session nor of the last day, if that has become much.
    pub fn seal(&mut self) {
        let recent = self.paged.recent();
        let last_day = recent.days.last().map(|entry| entry.day.0);
        let last_session = recent.sessions.last().map(|session| session.at.number());
        if let Some(before) = last_day.into_iter().chain(last_session).min() {
            self.paged.seal_before(before);
        }
    }
}
