//! Computes the dirty range of a change of facts before the change is made.

use super::day::Sums;
use super::dirty_range::{DirtyRange, Span, Times};
use super::entity::Facts;
use super::session::Session;
use super::touch::TouchAt;
use crate::cache::paged::day_sort_key;
use crate::contribution::Sign;
use crate::moment::Moment;
use crate::time::{CohortInterval, Day, Instant};

impl Facts {
    /// Returns the range of adding or taking out `sums` on `day`. A day that becomes active or inactive also changes the
    /// gap of the next active day.
    #[must_use]
    pub fn change_of_day(&self, day: Day, sums: &Sums, sign: Sign) -> DirtyRange {
        let number = day_sort_key(day);
        let there = self.days.get(number).map_or(0, |entry| entry.sums.events);
        let new_day = match sign {
            Sign::Plus => there == 0,
            Sign::Minus => there <= sums.events,
        };
        let first_day = new_day && self.first_day().is_none_or(|first| day <= first);
        let next = || self.days.after(number).and_then(|next| i32::try_from(next).ok()).map(Day);
        let last = if new_day { next().unwrap_or(day) } else { day };
        // The other first active day: the former one, or that after `day`.
        let other = || match sign {
            Sign::Plus => self.first_day(),
            Sign::Minus => next(),
        };
        let differs = |interval: CohortInterval, other| interval.index_of(other) != interval.index_of(day);
        let moves = |interval| first_day && other().is_none_or(|other| differs(interval, other));
        let (first_week, first_month) = (moves(CohortInterval::Week), moves(CohortInterval::Month));
        let (days, money) = (Span { first: day, last }, sums.money.is_some());
        DirtyRange { days, new_day, first_day, first_week, first_month, money, ..DirtyRange::NONE }
    }

    /// Returns the range of replacing the sessions `joined` by `session`, their merge.
    #[must_use]
    pub fn change_of_sessions(&self, joined: &[Session], session: &Session) -> DirtyRange {
        let entries = || joined.iter().map(|session| session.at);
        let (from, to) = (entries().fold(session.at, Moment::min), entries().fold(session.at, Moment::max));
        let sessions = Times { from, to };
        let before: Vec<TouchAt> = joined.iter().filter_map(Session::touch_at).collect();
        let after: Vec<TouchAt> = session.touch_at().into_iter().collect();
        DirtyRange { sessions, ..self.change_of_touches(&before, &after) }
    }

    /// Returns the range of replacing touches by others: the orders from the first of them up to the next touch after all
    /// of them. By first touch, it is all orders if the first touch changes and they are not deferred.
    #[must_use]
    pub fn change_of_touches(&self, before: &[TouchAt], after: &[TouchAt]) -> DirtyRange {
        let gone = before.iter().filter(|touch| !after.contains(touch));
        let new = after.iter().filter(|touch| !before.contains(touch));
        let (mut from, mut to, mut first_touch, mut new_touch) = (Instant(i64::MAX), Instant(i64::MIN), false, None);
        for touch in gone {
            (from, to) = (from.min(touch.at.time), to.max(touch.at.time));
            first_touch |= self.first_touch().is_some_and(|first| first.at == touch.at);
        }
        for touch in new {
            (from, to) = (from.min(touch.at.time), to.max(touch.at.time));
            new_touch = Some(touch.at.time);
            first_touch |= self.first_touch().is_none_or(|first| touch.at < first.at);
        }
        if to < from {
            return DirtyRange::NONE;
        }
        let next = self.touch_after(to).map_or(Instant(i64::MAX), |next| Instant(next.at.time.0 - 1));
        let inline = Times { from: Moment::first_of(from), to: Moment::last_of(next.max(to)) };
        let orders_by_first = if first_touch && self.deferred_key.is_none() { Times::ALL } else { Times::NONE };
        DirtyRange { inline, runs: inline, new_touch, last_touch: to, orders_by_first, first_touch, ..DirtyRange::NONE }
    }
}
