//! What is known of one entity: the facts that its contributions to every rollup are computed from.
//!
//! Facts are a commutative group: an event is the smallest of them, and linking two identities is their sum. So the
//! order of arrival can't change them, and erasing is subtracting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::RecordKey;
use crate::money::{Amount, Currency};
use crate::rollup::Sign;
use crate::time::Day;

/// A range of days, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first day.
    pub first: Day,
    /// The last day.
    pub last: Day,
}

impl Span {
    /// Every day there is.
    pub const ALL: Self = Self { first: Day(i32::MIN), last: Day(i32::MAX) };
}

/// What kind of change is coming: lets a rollup say that it isn't concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// A day becomes active, or stops being active.
    pub new_day: bool,
    /// Money changes.
    pub money: bool,
}

impl Change {
    /// Anything may change.
    pub const ANY: Self = Self { new_day: true, money: true };
}

/// Money over some events.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneySums {
    /// Orders less refunds, in the project's currency.
    pub revenue: Amount,
    /// How many orders.
    pub orders: i64,
    /// What had no rate when it was recorded: revenue and orders by currency.
    pub unconverted: BTreeMap<Currency, (Amount, i64)>,
}

impl MoneySums {
    /// Adds or takes out `other`; what becomes zero is dropped.
    pub fn add(&mut self, other: &Self, sign: Sign) {
        match sign {
            Sign::Plus => self.revenue += other.revenue,
            Sign::Minus => self.revenue -= other.revenue,
        }
        self.orders += sign.factor() * other.orders;
        for (currency, (revenue, orders)) in &other.unconverted {
            let entry = self.unconverted.entry(*currency).or_default();
            match sign {
                Sign::Plus => entry.0 += *revenue,
                Sign::Minus => entry.0 -= *revenue,
            }
            entry.1 += sign.factor() * orders;
            if *entry == (Amount::default(), 0) {
                self.unconverted.remove(currency);
            }
        }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.revenue == Amount::default() && self.orders == 0 && self.unconverted.is_empty()
    }
}

/// What is summed over the events of one day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// How many events.
    pub events: u64,
    /// Their money; boxed, since most days of most people have none.
    pub money: Option<Box<MoneySums>>,
}

impl Sums {
    fn add(&mut self, other: &Self, sign: Sign) {
        match sign {
            Sign::Plus => self.events += other.events,
            Sign::Minus => self.events = self.events.saturating_sub(other.events),
        }
        if let Some(money) = &other.money {
            let mut sum = self.money.take().unwrap_or_default();
            sum.add(money, sign);
            self.money = (!sum.is_empty()).then_some(sum);
        }
    }
}

/// One day, one company.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    day: Day,
    /// 0: no company of its own; else 1 + the place in [`Facts::companies`].
    tag: u16,
    sums: Sums,
}

/// Everything known of one entity in one project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// In order of day and tag; an entry without events doesn't exist.
    entries: Vec<Entry>,
    /// The companies that events of this entity named themselves.
    companies: Vec<RecordKey>,
}

impl Facts {
    /// How many (day, company) entries there are: what going through them costs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The active days of `span`, in order.
    pub fn active_days(&self, span: Span) -> impl Iterator<Item = Day> {
        let mut last = None;
        self.within(span).iter().filter_map(move |entry| {
            let new = last != Some(entry.day);
            last = Some(entry.day);
            new.then_some(entry.day)
        })
    }

    /// The last active day before `day`.
    #[must_use]
    pub fn active_before(&self, day: Day) -> Option<Day> {
        let at = self.entries.partition_point(|entry| entry.day < day);
        at.checked_sub(1).and_then(|i| self.entries.get(i)).map(|entry| entry.day)
    }

    /// Money by day, for the days of `span` that have any; a day with several companies comes several times.
    pub fn money(&self, span: Span) -> impl Iterator<Item = (Day, &MoneySums)> {
        self.within(span).iter().filter_map(|entry| Some((entry.day, entry.sums.money.as_deref()?)))
    }

    /// Every entry: its day, the company that its events named, and their sums.
    pub fn entries(&self) -> impl Iterator<Item = (Day, Option<RecordKey>, &Sums)> {
        self.entries.iter().map(|entry| (entry.day, self.company(entry.tag), &entry.sums))
    }

    /// What adding (or taking out) `sums` on `day` will change, and the days whose contributions it touches: a day that
    /// becomes active also changes the gap of the next one.
    #[must_use]
    pub fn change(&self, day: Day, sums: &Sums, sign: Sign) -> (Change, Span) {
        let at = self.entries.partition_point(|entry| entry.day < day);
        let there: u64 = self.entries[at..].iter().take_while(|entry| entry.day == day).map(|e| e.sums.events).sum();
        let new_day = match sign {
            Sign::Plus => there == 0,
            Sign::Minus => there <= sums.events,
        };
        let next = self.entries[at..].iter().map(|entry| entry.day).find(|other| *other > day);
        let last = if new_day { next.unwrap_or(day) } else { day };
        (Change { new_day, money: sums.money.is_some() }, Span { first: day, last })
    }

    /// Adds or takes out `sums` on `day`, of events that named `company` themselves or didn't.
    pub fn add(&mut self, day: Day, company: Option<RecordKey>, sums: &Sums, sign: Sign) {
        let tag = self.tag(company);
        let at = self.entries.partition_point(|entry| (entry.day, entry.tag) < (day, tag));
        match self.entries.get_mut(at) {
            Some(entry) if (entry.day, entry.tag) == (day, tag) => {
                entry.sums.add(sums, sign);
                if entry.sums.events == 0 {
                    self.entries.remove(at);
                }
            }
            _ => self.entries.insert(at, Entry { day, tag, sums: sums.clone() }),
        }
    }

    fn within(&self, span: Span) -> &[Entry] {
        let from = self.entries.partition_point(|entry| entry.day < span.first);
        let to = self.entries.partition_point(|entry| entry.day <= span.last);
        &self.entries[from..to]
    }

    fn company(&self, tag: u16) -> Option<RecordKey> {
        usize::from(tag).checked_sub(1).and_then(|i| self.companies.get(i)).copied()
    }

    /// The tag of `company`. An entity of more than 65,534 companies counts the rest as its own company's: no such
    /// entity is a person.
    fn tag(&mut self, company: Option<RecordKey>) -> u16 {
        let Some(company) = company else { return 0 };
        let place = self.companies.iter().position(|known| *known == company).unwrap_or_else(|| {
            self.companies.push(company);
            self.companies.len() - 1
        });
        u16::try_from(place + 1).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Sums {
        Sums { events: 1, money: None }
    }

    #[test]
    fn a_new_day_touches_the_next_one() {
        let mut facts = Facts::default();
        let all = |facts: &Facts| facts.active_days(Span::ALL).map(|d| d.0).collect::<Vec<_>>();
        assert_eq!(facts.change(Day(5), &one(), Sign::Plus).1, Span { first: Day(5), last: Day(5) });
        facts.add(Day(5), None, &one(), Sign::Plus);
        let (change, span) = facts.change(Day(2), &one(), Sign::Plus);
        assert!(change.new_day && !change.money);
        assert_eq!(span, Span { first: Day(2), last: Day(5) });
        facts.add(Day(2), Some(RecordKey(9)), &one(), Sign::Plus);
        facts.add(Day(2), None, &one(), Sign::Plus);
        assert_eq!(all(&facts), [2, 5]);
        assert!(!facts.change(Day(2), &one(), Sign::Plus).0.new_day);
        assert!(!facts.change(Day(2), &one(), Sign::Minus).0.new_day, "another company's event keeps the day active");
        facts.add(Day(2), None, &one(), Sign::Minus);
        assert!(facts.change(Day(2), &one(), Sign::Minus).0.new_day);
        assert_eq!(facts.active_before(Day(5)), Some(Day(2)));
        facts.add(Day(2), Some(RecordKey(9)), &one(), Sign::Minus);
        assert_eq!(all(&facts), [5]);
    }
}
