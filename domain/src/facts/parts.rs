//! The parts that facts are made of.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::acquisition::Channel;
use crate::cache::paged::Number;
use crate::contribution::Sign;
use crate::ids::RecordKey;
use crate::indexes::dictionary::NameId;
use crate::money::{Amount, Currency};
use crate::time::{Day, Instant};

/// A gap longer than this between two events starts a new session, in milliseconds.
pub const SESSION_GAP_MS: i64 = 30 * 60 * 1000;

/// When an event happened; two at the same millisecond keep the order in which they were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Moment {
    /// When.
    pub time: Instant,
    /// The event's position.
    pub position: u64,
}

impl Moment {
    /// Before all others of an instant.
    #[must_use]
    pub fn first_of(time: Instant) -> Self {
        Self { time, position: 0 }
    }

    /// After all others of an instant.
    #[must_use]
    pub fn last_of(time: Instant) -> Self {
        Self { time, position: u64::MAX }
    }

    /// Its number in lists that are ordered by time.
    #[must_use]
    pub fn number(self) -> Number {
        Number::from(self.time.0) << 64 | Number::from(self.position)
    }
}

/// The group that an event named. A company goes by the key that was sent, which may be linked to a domain.
///
/// Lists by group are in the order of type and number, not of the key: groups are numbered as they come, so new ones go to
/// the end of a list, and its other pages stay as they are saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Named {
    /// The key of its record.
    key: RecordKey,
    /// The first 64 bits of the key of its type.
    kind: u64,
    /// Its number among those of its type, in this project.
    number: u32,
    is_company: bool,
}

impl Named {
    /// A group that is the `number`-th of its type.
    #[must_use]
    pub fn new(key: RecordKey, kind: RecordKey, number: u32, is_company: bool) -> Self {
        Self { key, kind: kind.high(), number, is_company }
    }

    /// The company, if it is one.
    #[must_use]
    pub fn company(self) -> Option<RecordKey> {
        self.is_company.then_some(self.key)
    }

    /// The group, if it is no company.
    #[must_use]
    pub fn group(self) -> Option<RecordKey> {
        (!self.is_company).then_some(self.key)
    }

    /// Its place among the groups of a day, counted from 1.
    pub(super) fn place(self) -> u128 {
        u128::from(self.kind) << 32 | u128::from(self.number.saturating_add(1))
    }
}

/// What brought a session, if it has a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Touch {
    /// The source; never `(direct)`.
    pub source: NameId,
    /// The medium.
    pub medium: NameId,
    /// The campaign.
    pub campaign: NameId,
}

/// A touch, and when it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TouchAt {
    /// The moment of the session's entry.
    pub at: Moment,
    /// What it was.
    pub touch: Touch,
}

/// A session: events of one identity with no gap of more than 30 minutes between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The entry: its earliest event.
    pub at: Moment,
    /// The calendar day of the entry.
    pub day: Day,
    /// The time of its last event.
    pub last: Instant,
    /// How many events it has.
    pub events: u32,
    /// What brought it: the entry's source, medium and campaign.
    pub touch: Option<Touch>,
    /// The entry's channel.
    pub channel: Channel,
    /// The company that the entry named itself.
    pub company: Option<Box<RecordKey>>,
}

impl Session {
    /// The touch that it is, if it has a source.
    #[must_use]
    pub fn touch_at(&self) -> Option<TouchAt> {
        self.touch.map(|touch| TouchAt { at: self.at, touch })
    }

    /// Whether the gap between the two is no longer than a session may have.
    #[must_use]
    pub fn meets(&self, other: &Session) -> bool {
        let gap = |earlier: Instant, later: Instant| later.0.saturating_sub(earlier.0) <= SESSION_GAP_MS;
        gap(self.last, other.at.time) && gap(other.last, self.at.time)
    }

    /// Both as one.
    #[must_use]
    pub fn join(self, other: Session) -> Session {
        let (last, events) = (self.last.max(other.last), self.events + other.events);
        let entry = if other.at < self.at { other } else { self };
        Session { last, events, ..entry }
    }
}

/// An order or a refund that counts in the project's currency.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// When.
    pub at: Moment,
    /// Its calendar day.
    pub day: Day,
    /// In the project's currency; negative for a refund.
    pub revenue: Amount,
    /// 1 for an order, 0 for a refund.
    pub orders: u8,
    /// The company that the event named itself.
    pub company: Option<Box<RecordKey>>,
}

/// What an event counts under, beside itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HitKind {
    /// A pageview of this page.
    Page(NameId),
    /// An event with this external referrer.
    Referrer(NameId),
}

/// How often on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The day.
    pub day: Day,
    /// What.
    pub what: HitKind,
    /// How often.
    pub count: u32,
}

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

const DAY_MS: i64 = 86_400_000;

impl SeenOnDay {
    /// No event.
    pub const NEVER: Self = Self { first_ms: i32::MAX, last_ms: i32::MIN };

    /// One event at `time`, which lies on `day` in the organization's timezone.
    #[must_use]
    pub fn once(day: Day, time: Instant) -> Self {
        let ms = time.0 - i64::from(day.0) * DAY_MS;
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
        let at = |ms: i32| Instant(i64::from(day.0) * DAY_MS + i64::from(ms));
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
    pub named: Option<Box<Named>>,
    /// Whether they named several groups, or some of them none: then each has a [`NamedDay`].
    pub several: bool,
    /// Their sums.
    pub sums: Sums,
}

/// One day, one named group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedDay {
    /// The day.
    pub day: Day,
    /// The group that its events named themselves.
    pub named: Option<Named>,
    /// Their sums.
    pub sums: Sums,
}
