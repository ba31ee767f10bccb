//! The paged lists of facts, and their pages.

use serde::{Deserialize, Serialize};

use super::daily_count::DailyCount;
use super::day::{DayEntry, GroupDay};
use super::group_ref::GroupRef;
use super::order::Order;
use super::session::{Session, TouchAt, TouchEvent};
use crate::cache::paged::{Item as _, Paged, SortKey, day_sort_key, first_in_day, item_of_page, sort_key_in_day};
use crate::ids::RecordKey;
use crate::indexes::dictionary::TermId;
use crate::time::{Day, Instant};

/// A sealed page of one of the lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FactsPage {
    /// Days.
    Days(Vec<DayEntry>),
    /// Days by named group.
    GroupRef(Vec<GroupDay>),
    /// Sessions.
    Sessions(Vec<Session>),
    /// Touches.
    Touches(Vec<TouchEvent>),
    /// Orders.
    Orders(Vec<Order>),
    /// Daily counts.
    Counts(Vec<DailyCount>),
}

impl FactsPage {
    /// Passes the terms of a page to `visit`.
    pub fn terms(&self, visit: &mut dyn FnMut(TermId)) {
        match self {
            Self::Sessions(sessions) => sessions.iter().filter_map(|session| session.touch).for_each(|touch| touch.terms(visit)),
            Self::Touches(touches) => touches.iter().for_each(|touch| touch.touch.terms(visit)),
            Self::Counts(counts) => counts.iter().for_each(|count| visit(count.what.term())),
            Self::Days(_) | Self::GroupRef(_) | Self::Orders(_) => {}
        }
    }
}

/// The first and the last touch of a page.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TouchEnds {
    pub(super) first: Option<TouchAt>,
    pub(super) last: Option<TouchAt>,
}

// Unconverted money is stored by currency (there are about 180), so days can be large.
item_of_page!(DayEntry: FactsPage::Days, 0 of 6, size 8, |entry| day_sort_key(entry.day), |_items| (): ());
item_of_page!(GroupDay: FactsPage::GroupRef, 1 of 6, size 8, |entry| group_sort_key(entry.day, entry.named), |_items| (): ());
item_of_page!(Session: FactsPage::Sessions, 2 of 6, size 1, |session| session.at.sort_key(), |_items| (): ());
item_of_page!(TouchEvent: FactsPage::Touches, 3 of 6, size 1, |touch| touch.at.sort_key(), |items| TouchEnds: TouchEnds {
    first: items.first().map(TouchEvent::touch_at),
    last: items.last().map(TouchEvent::touch_at),
});
item_of_page!(Order: FactsPage::Orders, 4 of 6, size 1, |order| order.at.sort_key(), |_items| (): ());
item_of_page!(DailyCount: FactsPage::Counts, 5 of 6, size 1, |count| count.sort_key(), |_items| (): ());

/// The sort key of a named group on a day.
pub(super) fn group_sort_key(day: Day, named: Option<GroupRef>) -> SortKey {
    match named {
        None => first_in_day(day),
        Some(named) => sort_key_in_day(day, RecordKey(named.place() << 32)),
    }
}

/// The greatest sort key of an instant.
pub(super) fn last_number(time: Instant) -> SortKey {
    SortKey::from(time.0) << 64 | SortKey::from(u64::MAX)
}

/// Returns the first touch of a list.
pub(super) fn first_touch(list: &Paged<TouchEvent>) -> Option<TouchAt> {
    let sealed = list.digests_after(SortKey::MIN).find_map(|digest| digest.first);
    sealed.or_else(|| list.recent().first().map(TouchEvent::touch_at))
}

/// Returns the last touch of a list at or before `time`. The page of `time` must be loaded.
pub(super) fn touch_at(list: &Paged<TouchEvent>, time: Instant) -> Option<TouchAt> {
    let last = last_number(time);
    let of = |items: &[TouchEvent]| {
        let until = items.partition_point(|item| item.sort_key() <= last);
        items[..until].last().map(TouchEvent::touch_at)
    };
    if let Some(found) = of(list.recent()) {
        return Some(found);
    }
    // For a page entirely before `time` the digest suffices; the page that contains `time` is
    // loaded.
    let before = |digest: &&TouchEnds| digest.first.is_some_and(|first| first.at.time <= time);
    let digest = list.digests_until(last).find(before)?;
    digest.last.filter(|last| last.at.time <= time).or_else(|| of(list.part(last)?))
}

/// Returns the first touch of a list after `time`. The page of `time` must be loaded.
pub(super) fn touch_after(list: &Paged<TouchEvent>, time: Instant) -> Option<TouchAt> {
    let last = last_number(time);
    let of = |items: &[TouchEvent]| {
        let from = items.partition_point(|item| item.sort_key() <= last);
        items.get(from).map(TouchEvent::touch_at)
    };
    // For the following pages the digests suffice.
    let in_pages = || list.digests_after(last).find_map(|digest| digest.first);
    list.part(last).and_then(of).or_else(in_pages).or_else(|| of(list.recent()))
}
