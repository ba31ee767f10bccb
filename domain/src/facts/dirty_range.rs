//! The range that a change of facts touches: the rollups concerned, and the days and orders
//! affected.

use crate::moment::Moment;
use crate::time::{Day, Instant, MS_PER_DAY};

/// A range of days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first day.
    pub first: Day,
    /// The last day.
    pub last: Day,
}

impl Span {
    /// All days.
    pub const ALL: Self = Self { first: Day(i32::MIN), last: Day(i32::MAX) };
}

/// A range of moments, both ends included; empty if it ends before it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The first moment.
    pub from: Moment,
    /// The last moment.
    pub to: Moment,
}

impl Times {
    const FIRST: Moment = Moment { time: Instant(i64::MIN), position: 0 };
    const LAST: Moment = Moment { time: Instant(i64::MAX), position: u64::MAX };
    /// All time.
    pub const ALL: Self = Self { from: Self::FIRST, to: Self::LAST };
    /// No time.
    pub const NONE: Self = Self { from: Self::LAST, to: Self::FIRST };

    /// Whether the range is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.to < self.from
    }

    /// Returns all moments that can lie on the days of `span`, in any timezone.
    #[must_use]
    pub fn around(span: Span) -> Self {
        let at = |day: i64| Instant(day.saturating_mul(MS_PER_DAY));
        let (from, to) = (at(i64::from(span.first.0) - 1), at(i64::from(span.last.0) + 2));
        Self { from: Moment::first_of(from), to: Moment::last_of(to) }
    }
}

/// The range that a change of facts touches. A wider range is always correct: contributions within
/// it are taken out before the change and added again after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirtyRange {
    /// The days whose contributions change.
    pub days: Span,
    /// Whether a day becomes active or inactive.
    pub new_day: bool,
    /// Whether the first active day changes.
    pub first_day: bool,
    /// Whether the week of the first active day changes.
    pub first_week: bool,
    /// Whether the month of the first active day changes.
    pub first_month: bool,
    /// Whether money changes.
    pub money: bool,
    /// The orders that are added or removed, or whose row by last touch changes.
    pub orders: Times,
    /// The orders outside of runs whose last touch changes. Their runs stay unchanged.
    pub inline: Times,
    /// The runs that are added or removed, or whose last touch changes.
    pub runs: Times,
    /// The time of the new touch. There is at most one.
    pub new_touch: Option<Instant>,
    /// The time of the last touch that is added or removed; no other touch follows up to the end of
    /// `inline`.
    pub last_touch: Instant,
    /// The orders that are added or removed, or whose row by first touch changes.
    pub orders_by_first: Times,
    /// Whether the first touch changes.
    pub first_touch: bool,
    /// The entries of the sessions that change.
    pub sessions: Times,
}

impl DirtyRange {
    /// The range of an unknown change.
    pub const ANY: Self = Self {
        days: Span::ALL,
        new_day: true,
        first_day: true,
        first_week: true,
        first_month: true,
        money: true,
        orders: Times::ALL,
        inline: Times::NONE,
        runs: Times::ALL,
        new_touch: None,
        last_touch: Instant(i64::MAX),
        orders_by_first: Times::ALL,
        first_touch: true,
        sessions: Times::ALL,
    };

    /// The range of a change that affects no rollup.
    pub const NONE: Self = Self {
        days: Span { first: Day(i32::MAX), last: Day(i32::MIN) },
        new_day: false,
        first_day: false,
        first_week: false,
        first_month: false,
        money: false,
        orders: Times::NONE,
        inline: Times::NONE,
        runs: Times::NONE,
        new_touch: None,
        last_touch: Instant(i64::MAX),
        orders_by_first: Times::NONE,
        first_touch: false,
        sessions: Times::NONE,
    };

    /// The range of adding or removing an order.
    pub(crate) fn of_order(at: Moment) -> Self {
        let orders = Times { from: at, to: at };
        Self { orders, orders_by_first: orders, ..Self::NONE }
    }

    /// The range of a change of the number of events of the session with this entry.
    #[must_use]
    pub fn of_session(at: Moment) -> Self {
        Self { sessions: Times { from: at, to: at }, ..Self::NONE }
    }
}
