//! What is summed over the events of one day.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::group_ref::GroupRef;
use crate::contribution::Sign;
use crate::money::{Amount, Currency};
use crate::time::{Day, Instant, MS_PER_DAY};

/// Money over some events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneySums {
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// How many orders.
    pub orders: i64,
    /// Orders less refunds, in the organization's currency.
    pub organization_revenue: Amount,
    /// How many orders count in the organization's currency.
    pub organization_orders: i64,
    /// What had no rate when it was recorded: revenue and orders by currency.
    pub unconverted: BTreeMap<Currency, (Amount, i64)>,
}

impl MoneySums {
    /// Adds or takes out `other`; what becomes zero is dropped.
    pub fn add(&mut self, other: &Self, sign: Sign) {
        let amount = |sum: &mut Amount, other: Amount| match sign {
            Sign::Plus => *sum += other,
            Sign::Minus => *sum -= other,
        };
        amount(&mut self.revenue, other.revenue);
        amount(&mut self.organization_revenue, other.organization_revenue);
        self.orders += sign.factor() * other.orders;
        self.organization_orders += sign.factor() * other.organization_orders;
        for (currency, (revenue, orders)) in &other.unconverted {
            let entry = self.unconverted.entry(*currency).or_default();
            amount(&mut entry.0, *revenue);
            entry.1 += sign.factor() * orders;
            if *entry == (Amount::default(), 0) {
                self.unconverted.remove(currency);
            }
        }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Adds or takes out money that is only there where there is some.
pub(super) fn add_money(sum: &mut Option<Box<MoneySums>>, money: Option<&MoneySums>, sign: Sign) {
    let Some(money) = money else { return };
    let mut total = sum.take().unwrap_or_default();
    total.add(money, sign);
    *sum = (!total.is_empty()).then_some(total);
}

/// The first and the last event of a calendar day, as milliseconds since that date began in UTC: wherever its days begin,
/// they are within a day or two of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenOnDay {
    first_ms: i32,
    last_ms: i32,
}

impl SeenOnDay {
    /// No event.
    pub const NEVER: Self = Self { first_ms: i32::MAX, last_ms: i32::MIN };

    /// One event at `time`, which lies on `day` in the organization's timezone.
    #[must_use]
    pub fn once(day: Day, time: Instant) -> Self {
        let ms = time.0 - i64::from(day.0) * MS_PER_DAY;
        let ms = i32::try_from(ms).unwrap_or(if ms < 0 { i32::MIN + 1 } else { i32::MAX - 1 });
        Self { first_ms: ms, last_ms: ms }
    }

    /// Both.
    pub fn add(&mut self, other: Self) {
        self.first_ms = self.first_ms.min(other.first_ms);
        self.last_ms = self.last_ms.max(other.last_ms);
    }

    /// When they were, if there were any; `day` is the one that they were on.
    #[must_use]
    pub fn at(self, day: Day) -> Option<(Instant, Instant)> {
        let at = |ms: i32| Instant(i64::from(day.0) * MS_PER_DAY + i64::from(ms));
        (self.first_ms <= self.last_ms).then(|| (at(self.first_ms), at(self.last_ms)))
    }
}

/// What is summed over the events of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// How many events.
    pub events: u32,
    /// How many of them are pageviews. Of an identity.
    pub pageviews: u32,
    /// The first and the last of them. Of an identity, which no single event is ever taken out of.
    pub seen: SeenOnDay,
    /// Their money; boxed, since most days of most people have none.
    pub money: Option<Box<MoneySums>>,
}

impl Sums {
    /// What a company keeps of it: what can be taken out again.
    #[must_use]
    pub fn of_account(&self) -> Sums {
        Sums { events: self.events, pageviews: 0, seen: SeenOnDay::NEVER, money: self.money.clone() }
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

/// One day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayEntry {
    /// The day.
    pub day: Day,
    /// The group that its events named themselves, if all of them named the same.
    pub named: Option<Box<GroupRef>>,
    /// Whether they named several groups, or some of them none: then each has a [`GroupDay`].
    pub several: bool,
    /// Their sums.
    pub sums: Sums,
}

/// One day, one named group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupDay {
    /// The day.
    pub day: Day,
    /// The group that its events named themselves.
    pub named: Option<GroupRef>,
    /// Their sums.
    pub sums: Sums,
}
