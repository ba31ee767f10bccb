//! Computes the dirty range of a change of facts before the change is made.

use super::day::Sums;
use super::dirty_range::{DirtyRange, Span, Times};
use super::entity::Facts;
use super::session::Session;
use crate::cache::paged::day_sort_key;
use crate::contribution::Sign;
use crate::moment::Moment;
use crate::time::{CohortInterval, Day, Instant};

impl Facts {
    /// Returns the range of adding or taking out `sums` on `day`. A day that becomes active or
    /// inactive also changes the gap of the next active day.
    pub(crate) fn change_of_day(&self, day: Day, sums: &Sums, sign: Sign) -> DirtyRange {
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
    pub(crate) fn change_of_sessions(&self, joined: &[Session], session: &Session) -> DirtyRange {
        let entries = || joined.iter().map(|session| session.at);
        let (from, to) = (entries().fold(session.at, Moment::min), entries().fold(session.at, Moment::max));
        DirtyRange { sessions: Times { from, to }, ..DirtyRange::NONE }
    }

    /// Returns the range of adding or taking out a touch: the orders from it to the next touch. By
    /// first touch, it includes all orders if the first touch changes and the orders are not
    /// deferred. Without orders, no rollup changes.
    pub(crate) fn change_of_touch(&self, at: Moment, sign: Sign) -> DirtyRange {
        if self.orders.is_empty() && self.deferred_key.is_none() && self.order_runs.is_none() {
            return DirtyRange::NONE;
        }
        let (time, first) = (at.time, self.first_touch());
        let (new_touch, first_touch) = match sign {
            Sign::Plus => (Some(time), first.is_none_or(|first| at < first.at)),
            Sign::Minus => (None, first.is_some_and(|first| first.at == at)),
        };
        let next = self.touch_after(time).map_or(Instant(i64::MAX), |next| Instant(next.at.time.0 - 1));
        let inline = Times { from: Moment::first_of(time), to: Moment::last_of(next.max(time)) };
        let orders_by_first = if first_touch && self.deferred_key.is_none() { Times::ALL } else { Times::NONE };
        DirtyRange { inline, runs: inline, new_touch, last_touch: time, orders_by_first, first_touch, ..DirtyRange::NONE }
    }
}
