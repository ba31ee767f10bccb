//! The facts of one entity. [`Facts::add_touch`] defines the first touch: the earliest event with a
//! source.

use serde::{Deserialize, Serialize};

use super::daily_count::DailyCount;
use super::day::{self, DayEntry, GroupDay, MoneySums, Sums};
use super::dirty_range::{DirtyRange, Span, Times};
use super::group_ref::GroupRef;
use super::lists::{self, FactsPage};
use super::order::Order;
use super::runs::Runs;
use super::session::{LaterEvents, SESSION_GAP_MS, Session, Touch, TouchAt, TouchEvent};
use crate::cache::paged::{
    Item as _, Paged, Rare, SortKey, day_sort_key, first_in_day, insert_tight, last_in_day, place_near_end,
};
use crate::contribution::Sign;
use crate::ids::RecordKey;
use crate::indexes::dictionary::TermId;
use crate::limits::Limits;
use crate::moment::Moment;
use crate::time::{Day, Instant};

/// The facts of one entity in one project.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    pub(super) days: Paged<DayEntry>,
    /// Days by group, for days on which several groups were named.
    pub(super) named: Rare<GroupDay>,
    /// The sessions of an identity, by entry.
    pub(super) sessions: Paged<Session>,
    /// The events with a source.
    pub(super) touches: Rare<TouchEvent>,
    pub(super) orders: Rare<Order>,
    /// Counts by day and term.
    pub(super) daily_counts: Paged<DailyCount>,
    /// The first touch ever.
    pub(super) first_touch: Option<TouchAt>,
    /// All money ever.
    pub(super) money: Option<Box<MoneySums>>,
    /// The key under which its orders are deferred, if they are.
    pub(super) deferred_key: Option<Box<RecordKey>>,
    /// The orders deferred by last touch, if any.
    pub(super) order_runs: Option<Box<Runs>>,
}

impl Facts {
    /// Whether there are no facts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first_day().is_none()
    }

    /// Returns the first active day.
    #[must_use]
    pub fn first_day(&self) -> Option<Day> {
        self.days.first().and_then(|number| i32::try_from(number).ok()).map(Day)
    }

    /// Returns the active days of `span`, in order.
    pub fn active_days(&self, span: Span) -> impl Iterator<Item = Day> {
        self.days(span).map(|entry| entry.day)
    }

    /// Returns the last active day before `day`.
    pub(crate) fn active_before(&self, day: Day) -> Option<Day> {
        self.days.before(day_sort_key(day)).and_then(|number| i32::try_from(number).ok()).map(Day)
    }

    /// Returns the days of `span`, in order.
    pub fn days(&self, span: Span) -> impl Iterator<Item = &DayEntry> {
        self.days.range(day_sort_key(span.first), day_sort_key(span.last))
    }

    /// Returns the days of `span` by named group, in order of day.
    pub(crate) fn named_days(&self, span: Span) -> impl Iterator<Item = (Day, Option<GroupRef>, &Sums)> {
        let mut alone = self.days(span).filter(|entry| !entry.several).peekable();
        let mut several = self.named.range(first_in_day(span.first), last_in_day(span.last)).peekable();
        std::iter::from_fn(move || {
            let next = several.peek().map(|entry| entry.day);
            match alone.next_if(|entry| next.is_none_or(|day| entry.day < day)) {
                Some(entry) => Some((entry.day, entry.named.as_deref().copied(), &entry.sums)),
                None => several.next().map(|entry| (entry.day, entry.named, &entry.sums)),
            }
        })
    }

    /// Returns the days of `span` with money, and the money.
    pub fn money(&self, span: Span) -> impl Iterator<Item = (Day, &MoneySums)> {
        self.days(span).filter_map(|entry| Some((entry.day, entry.sums.money.as_deref()?)))
    }

    /// Returns all money ever.
    pub(crate) fn total_money(&self) -> Option<&MoneySums> {
        self.money.as_deref()
    }

    /// Returns the sessions whose entries lie in `times`, in order.
    pub fn sessions(&self, times: Times) -> impl Iterator<Item = &Session> {
        self.sessions.range(times.from.sort_key(), times.to.sort_key())
    }

    /// Returns the orders and refunds in `times`, in order.
    pub fn orders(&self, times: Times) -> impl Iterator<Item = &Order> {
        self.orders.range(times.from.sort_key(), times.to.sort_key())
    }

    /// Returns the counts of the days of `span`.
    pub(crate) fn daily_counts(&self, span: Span) -> impl Iterator<Item = DailyCount> {
        self.daily_counts.range(first_in_day(span.first), last_in_day(span.last)).copied()
    }

    /// Returns all touches, in order.
    pub fn touches(&self) -> impl Iterator<Item = &TouchEvent> {
        self.touches.iter()
    }

    /// Returns the first touch ever.
    #[must_use]
    pub fn first_touch(&self) -> Option<TouchAt> {
        self.first_touch
    }

    /// Returns the key under which its orders are counted by first touch, if they are deferred.
    /// Their touch is stored once under this key, so a new first touch moves no order.
    pub(crate) fn deferred_key(&self) -> Option<RecordKey> {
        self.deferred_key.as_deref().copied()
    }

    /// Defers the attribution of the orders permanently under `key`, if `change` moves all of them
    /// and they are many.
    pub(crate) fn defer_attribution(&mut self, key: RecordKey, change: DirtyRange, limits: &Limits) {
        let is_many = || self.orders.len() > limits.max_inline_orders;
        if change.first_touch && self.deferred_key.is_none() && is_many() {
            self.deferred_key = Some(Box::new(key));
        }
    }

    /// Returns the last touch at or before `time`.
    pub(crate) fn touch_at(&self, time: Instant) -> Option<Touch> {
        // Most orders belong to an entity without any touch, or come after its last touch.
        self.first_touch.filter(|first| first.at.time <= time)?;
        lists::touch_at(&self.touches, time).map(|found| found.touch)
    }

    /// Returns the first touch after `time`.
    pub(super) fn touch_after(&self, time: Instant) -> Option<TouchAt> {
        lists::touch_after(&self.touches, time)
    }

    /// Adds or takes out `sums` on `day`, of events that name this group, or none.
    pub(crate) fn add_day(&mut self, day: Day, named: Option<GroupRef>, sums: &Sums, sign: Sign, limits: &Limits) {
        day::add_money(&mut self.money, sums.money.as_deref(), sign);
        let number = day_sort_key(day);
        let Some(known) = self.days.get(number) else {
            let sums = sums.clone();
            return self.days.insert(DayEntry { day, named: named.map(Box::new), several: false, sums }, limits);
        };
        let several = known.several;
        let differs = !several && known.named.as_deref() != named.as_ref();
        if differs {
            // From here on, each named group has its own sums.
            let former = GroupDay { day, named: known.named.as_deref().copied(), sums: known.sums.clone() };
            self.named.insert(former, limits);
        }
        if several || differs {
            self.add_named(day, named, sums, sign, limits);
        }
        self.days.change(number, limits, |days| {
            let at = days.partition_point(|entry| entry.day < day);
            let entry = &mut days[at];
            if differs {
                (entry.several, entry.named) = (true, None);
            }
            entry.sums.add(sums, sign);
            if entry.sums.events == 0 {
                days.remove(at);
            }
        });
    }

    fn add_named(&mut self, day: Day, named: Option<GroupRef>, sums: &Sums, sign: Sign, limits: &Limits) {
        let number = lists::group_sort_key(day, named);
        let there = self.named.get(number).is_some();
        if !there {
            return self.named.insert(GroupDay { day, named, sums: sums.clone() }, limits);
        }
        self.named.change(number, limits, |days| {
            let at = days.partition_point(|entry| entry.sort_key() < number);
            days[at].sums.add(sums, sign);
        });
    }

    /// Adds an order or a refund.
    pub(crate) fn add_order(&mut self, order: Order, limits: &Limits) {
        self.orders.insert(order, limits);
    }

    /// Removes the order of the moment `at`.
    pub(crate) fn remove_order(&mut self, at: Moment, limits: &Limits) {
        self.orders.remove(at.sort_key(), limits);
    }

    /// Adds to the count of a term on a day.
    pub(crate) fn add_count(&mut self, hit: DailyCount, limits: &Limits) {
        let number = hit.sort_key();
        self.daily_counts.change(number, limits, |daily_counts| {
            let at = place_near_end(daily_counts, |other| other.sort_key() < number);
            match daily_counts.get_mut(at) {
                Some(there) if there.sort_key() == number => there.count += hit.count,
                _ => insert_tight(daily_counts, at, hit),
            }
        });
    }

    /// Adds a touch.
    pub fn add_touch(&mut self, event: TouchEvent, limits: &Limits) {
        let touch = event.touch_at();
        self.touches.insert(event, limits);
        if self.first_touch.is_none_or(|first| touch.at < first.at) {
            self.first_touch = Some(touch);
        }
    }

    /// Removes the touch of the moment `at`.
    pub(crate) fn remove_touch(&mut self, at: Moment, limits: &Limits) {
        self.touches.remove(at.sort_key(), limits);
        if self.first_touch.is_some_and(|first| first.at == at) {
            self.first_touch = lists::first_touch(&self.touches);
        }
    }

    /// Replaces the sessions `joined` by their merge.
    pub(crate) fn replace_sessions(&mut self, joined: &[Session], session: Session, limits: &Limits) {
        for former in joined {
            self.sessions.remove(former.at.sort_key(), limits);
        }
        self.sessions.insert(session, limits);
    }

    /// Returns the session that an event of the identity at `time` belongs to, or is attached to.
    pub(crate) fn session_at(&self, time: Instant) -> Option<&Session> {
        let after = Moment::last_of(time).sort_key().saturating_add(1);
        self.sessions.get(self.sessions.before(after)?).filter(|session| session.attaches(time))
    }

    /// Returns the sessions that `session` merges with, in order.
    #[must_use]
    pub fn met_by(&self, session: &Session) -> Vec<Session> {
        let last = Moment::last_of(Instant(session.last.0.saturating_add(SESSION_GAP_MS)));
        let earlier = self.sessions.range(SortKey::MIN, last.sort_key()).rev();
        let mut met: Vec<Session> = earlier.take_while(|other| session.meets(other)).cloned().collect();
        met.reverse();
        met
    }

    /// Whether an interactive event at `at` only extends the last session, as most events do: it
    /// decides neither the source nor the page of the session.
    pub(crate) fn extends_last_session(&self, at: Moment, has_source: bool, has_page: bool) -> bool {
        let is_first = |known: Option<Moment>| known.is_none_or(|known| at < known);
        self.last_session().is_some_and(|last| {
            let goes_on = at >= last.at && at.time.0 - last.last.0 <= SESSION_GAP_MS;
            goes_on && !(has_page && is_first(last.page_at())) && !(has_source && is_first(last.source_at()))
        })
    }

    /// Returns the last active day.
    #[must_use]
    pub fn last_day(&self) -> Option<Day> {
        self.active_before(Day(i32::MAX))
    }

    /// Returns the last session if it is in the recent part, where it stays once there.
    pub(crate) fn last_session(&self) -> Option<&Session> {
        self.sessions.recent().last()
    }

    /// Extends the last session by an event at `time`.
    pub(crate) fn extend_last_session(&mut self, time: Instant, limits: &Limits) {
        self.sessions.change(SortKey::MAX, limits, |sessions| {
            if let Some(session) = sessions.last_mut() {
                session.events += 1;
                session.last = session.last.max(time);
            }
        });
    }
}

impl Facts {
    /// Reads the ends of the lists that nearly every event changes. Returns a number that depends
    /// on them.
    pub(crate) fn look_ahead(&self) -> u64 {
        let day = self.days.recent().last().map_or(0, |entry| entry.day.0);
        let session = self.sessions.recent().last().map_or(0, |session| session.last.0);
        let count = self.daily_counts.recent().last().map_or(0, |count| count.count);
        u64::from(day.unsigned_abs()) ^ session.unsigned_abs() ^ u64::from(count)
    }

    /// Passes the pages that changed since [`Facts::saved`] to `visit`, with their serial numbers.
    pub fn dirty(&self, visit: &mut dyn FnMut(u32, &FactsPage)) {
        self.days.dirty(visit);
        self.named.dirty(visit);
        self.sessions.dirty(visit);
        self.touches.dirty(visit);
        self.orders.dirty(visit);
        self.daily_counts.dirty(visit);
    }

    /// Marks all pages as collected by a checkpoint.
    pub fn saved(&mut self) {
        self.days.saved();
        self.named.saved();
        self.sessions.saved();
        self.touches.saved();
        self.orders.saved();
        self.daily_counts.saved();
    }

    /// Whether one of the lists has sealed pages.
    pub(crate) fn has_pages(&self) -> bool {
        let by_day = self.days.has_pages() || self.named.has_pages() || self.daily_counts.has_pages();
        by_day || self.sessions.has_pages() || self.touches.has_pages() || self.orders.has_pages()
    }

    /// Evicts saved pages.
    pub(crate) fn shed(&mut self) {
        self.days.shed();
        self.named.shed();
        self.sessions.shed();
        self.touches.shed();
        self.orders.shed();
        self.daily_counts.shed();
    }

    /// Passes the terms outside of sealed pages to `visit`.
    pub(crate) fn recent_terms(&self, visit: &mut dyn FnMut(TermId)) {
        let touches = self.sessions.recent().iter().filter_map(|session| session.touch);
        let own = self.touches.recent().iter().map(|event| event.touch);
        let touches = touches.chain(own).chain(self.first_touch.map(|first| first.touch));
        touches.for_each(|touch| touch.terms(visit));
        self.daily_counts.recent().iter().for_each(|count| visit(count.what.term()));
    }

    /// Returns the serial numbers of all sealed pages.
    pub fn serials(&self) -> impl Iterator<Item = u32> {
        let by_day = self.days.serials().chain(self.named.serials()).chain(self.daily_counts.serials());
        by_day.chain(self.sessions.serials()).chain(self.touches.serials()).chain(self.orders.serials())
    }

    /// Returns the number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        let by_day = self.days.len() + self.named.len() + self.daily_counts.len();
        by_day + self.sessions.len() + self.touches.len() + self.orders.len()
    }

    /// Returns the approximate heap memory, in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let of_day = |entry: &DayEntry| entry.named.as_ref().map_or(0, |_| size_of::<GroupRef>()) + entry.sums.weight();
        let of_company = |company: &Option<Box<RecordKey>>| company.as_ref().map_or(0, |_| size_of::<RecordKey>());
        let of_session =
            |session: &Session| session.later.as_ref().map_or(0, |_| size_of::<LaterEvents>()) + of_company(&session.company);
        let boxed = self.days.recent().iter().map(of_day).sum::<usize>()
            + self.named.recent().iter().map(|entry| entry.sums.weight()).sum::<usize>()
            + self.sessions.recent().iter().map(of_session).sum::<usize>()
            // Each event can be a touch. Nearly all of them name a company, or nearly none.
            + self.touches.recent().last().map_or(0, |event| of_company(&event.company)) * self.touches.recent().len()
            + self.orders.recent().iter().map(|order| of_company(&order.company)).sum::<usize>();
        let lists = self.days.weight() + self.named.weight() + self.sessions.weight() + self.touches.weight();
        let alone = self.money.as_ref().map_or(0, |money| money.boxed_weight())
            + self.deferred_key.as_ref().map_or(0, |_| size_of::<RecordKey>())
            + self.order_runs.as_ref().map_or(0, |runs| runs.weight());
        boxed + lists + self.orders.weight() + self.daily_counts.weight() + alone
    }
}
