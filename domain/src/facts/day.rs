//! The sums over the events of one day.

use serde::{Deserialize, Serialize};

use super::by_currency::ByCurrency;
use super::group_ref::GroupRef;
use crate::contribution::Sign;
use crate::money::Amount;
use crate::time::{Day, Instant, MS_PER_DAY};

/// The money of a set of events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneySums {
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// The number of orders.
    pub orders: i64,
    /// Orders less refunds, in the organization's currency.
    pub organization_revenue: Amount,
    /// The number of orders that count in the organization's currency.
    pub organization_orders: i64,
    /// The money without a rate at the time of receipt.
    pub unconverted: ByCurrency,
}

impl MoneySums {
    /// Adds or takes out `other`; removes currencies that become zero.
    pub fn add(&mut self, other: &Self, sign: Sign) {
        let amount = |sum: &mut Amount, other: Amount| match sign {
            Sign::Plus => *sum += other,
            Sign::Minus => *sum -= other,
        };
        amount(&mut self.revenue, other.revenue);
        amount(&mut self.organization_revenue, other.organization_revenue);
        self.orders += sign.factor() * other.orders;
        self.organization_orders += sign.factor() * other.organization_orders;
        for (currency, revenue, orders) in other.unconverted.iter() {
            let mut signed = Amount::ZERO;
            amount(&mut signed, revenue);
            self.unconverted.add(currency, signed, sign.factor() * orders);
        }
    }

    /// Returns the memory of these sums in a box, in bytes.
    pub(super) fn boxed_weight(&self) -> usize {
        size_of::<Self>() + self.unconverted.weight()
    }

    /// Whether all sums are zero.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Adds or takes out money in an optional sum, which is `None` while it is zero.
pub(super) fn add_money(sum: &mut Option<Box<MoneySums>>, money: Option<&MoneySums>, sign: Sign) {
    let Some(money) = money else { return };
    let mut total = sum.take().unwrap_or_default();
    total.add(money, sign);
    *sum = (!total.is_empty()).then_some(total);
}

/// The times of the first and the last event of a calendar day, in milliseconds since the start of
/// that date in UTC. In any timezone they are within a day or two of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenOnDay {
    first_ms: i32,
    last_ms: i32,
}

impl SeenOnDay {
    /// No event.
    pub const NEVER: Self = Self { first_ms: i32::MAX, last_ms: i32::MIN };

    /// A single event at `time`, which lies on `day` in the organization's timezone.
    #[must_use]
    pub fn once(day: Day, time: Instant) -> Self {
        let ms = time.0 - i64::from(day.0) * MS_PER_DAY;
        let ms = i32::try_from(ms).unwrap_or(if ms < 0 { i32::MIN + 1 } else { i32::MAX - 1 });
        Self { first_ms: ms, last_ms: ms }
    }

    /// Extends the range by `other`.
    pub fn add(&mut self, other: Self) {
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
    }

    /// Returns the times, if there are any events; `day` is the day of the events.
    #[must_use]
    pub fn at(self, day: Day) -> Option<(Instant, Instant)> {
        let at = |ms: i32| Instant(i64::from(day.0) * MS_PER_DAY + i64::from(ms));
        (self.first_ms <= self.last_ms).then(|| (at(self.first_ms), at(self.last_ms)))
    }
}

/// The sums over the events of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// The number of events.
    pub events: u32,
    /// The number of pageviews. Only for identities.
    pub pageviews: u32,
    /// The times of the first and the last event. Only for identities, from which no single event
    /// is ever taken out.
    pub seen: SeenOnDay,
    /// The money; boxed, because most identities have none on most days.
    pub money: Option<Box<MoneySums>>,
}

impl Sums {
    /// Returns the part that accounts store: the sums that can be taken out again.
    pub(crate) fn of_account(&self) -> Sums {
        Sums { events: self.events, pageviews: 0, seen: SeenOnDay::NEVER, money: self.money.clone() }
    }

    /// Returns the heap memory, in bytes.
    pub(super) fn weight(&self) -> usize {
        self.money.as_ref().map_or(0, |money| money.boxed_weight())
    }

    pub(super) fn add(&mut self, other: &Self, sign: Sign) {
        match sign {
            Sign::Plus => {
                self.events += other.events;
                self.pageviews += other.pageviews;
                self.seen.add(other.seen);
            }
            Sign::Minus => self.events = self.events.saturating_sub(other.events),
        }
        add_money(&mut self.money, other.money.as_deref(), sign);
    }
}

/// The sums of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayEntry {
    /// The day.
    pub day: Day,
    /// The group that the events name, if they all name the same.
    pub named: Option<Box<GroupRef>>,
    /// Whether the events name several groups, or some of them none. Then each has a [`GroupDay`].
    pub several: bool,
    /// The sums over all events of the day.
    pub sums: Sums,
}

/// The sums of one day for one named group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDay {
    /// The day.
    pub day: Day,
    /// The group that the events name.
    pub named: Option<GroupRef>,
    /// The sums.
    pub sums: Sums,
}
