//! `GET /projects/{project_id}/revenue/metrics` and `…/timeseries`, and shared rules about money.

use super::params::Params;
use super::unique_users::firsts;
use super::{Asked, Wrong};
use crate::decimal::{Decimal, Micros, ratio};
use crate::event::{Event, Money};
use crate::json::Json;
use std::collections::{BTreeMap, BTreeSet};

/// Sums of money.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Till {
    /// Orders less refunds.
    pub(super) revenue: Micros,
    /// The number of orders.
    pub(super) orders: usize,
}

impl Till {
    fn add(&mut self, value: Micros, amount: Micros) {
        self.revenue += amount;
        self.orders += usize::from(value > 0);
    }

    /// Adds the value of an event in its project's currency.
    pub(super) fn add_in_project(&mut self, event: &Event) {
        if let Some(money) = counted(event)
            && let Some(amount) = money.in_project
        {
            self.add(money.value, amount);
        }
    }

    /// Adds the value of an event in the organization's currency.
    pub(super) fn add_in_organization(&mut self, event: &Event) {
        if let Some(money) = counted(event)
            && let Some(amount) = money.in_organization
        {
            self.add(money.value, amount);
        }
    }

    /// Returns `revenue` and `orders` as JSON.
    pub(super) fn revenue_json(&self) -> Json {
        Json::from(Decimal::of_micros(self.revenue))
    }
}

/// Returns the money of an order or refund that counts.
pub(super) fn counted(event: &Event) -> Option<&Money> {
    event.money.as_ref().filter(|money| money.counted && money.value != 0)
}

/// Returns the money without a rate, by currency. It is never added to other money.
pub(super) fn unconverted<'e>(events: impl Iterator<Item = &'e Event>) -> Json {
    let mut tills: BTreeMap<String, Till> = BTreeMap::new();
    for money in events.filter_map(counted).filter(|money| money.in_project.is_none()) {
        tills.entry(money.currency.clone()).or_default().add(money.value, money.value);
    }
    let row = |till: Till| Json::object([("revenue", till.revenue_json()), ("orders", Json::from(till.orders))]);
    Json::Object(tills.into_iter().map(|(currency, till)| (currency, row(till))).collect())
}

pub(super) fn currency(asked: &Asked<'_>, project: &str) -> Json {
    Json::from(asked.model.projects[project].currency.as_str())
}

pub(super) fn metrics(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.window(asked)?;
    params.done()?;

    let events: Vec<_> = asked.facts.of_project(project).filter(|&index| window.holds(asked.day(index))).collect();
    let mut till = Till::default();
    let (mut users, mut accounts) = (BTreeSet::new(), BTreeSet::new());
    for &index in &events {
        till.add_in_project(&asked.facts.events[index]);
        users.extend(asked.facts.identities[index].clone());
        accounts.extend(asked.facts.account(index));
    }
    let count = |usual: usize, level: &str| match asked.model.floor(project) {
        None => usual,
        Some(_) => firsts(&asked.days(project).active(level), window),
    };
    Ok(Json::object([
        ("total_revenue", till.revenue_json()),
        ("orders", Json::from(till.orders)),
        ("aov", Json::from(ratio(till.revenue, till.orders))),
        ("arpa", Json::from(ratio(till.revenue, count(accounts.len(), "account")))),
        ("arpu", Json::from(ratio(till.revenue, count(users.len(), "identity")))),
        ("currency", currency(asked, project)),
        ("unconverted", unconverted(events.iter().map(|&index| &asked.facts.events[index]))),
    ]))
}

pub(super) fn timeseries(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.window(asked)?;
    params.done()?;

    let events: Vec<_> = asked.facts.of_project(project).filter(|&index| window.holds(asked.day(index))).collect();
    let mut tills: BTreeMap<_, Till> = BTreeMap::new();
    for &index in &events {
        tills.entry(asked.day(index)).or_default().add_in_project(&asked.facts.events[index]);
    }
    let row = |day| {
        let till = tills.get(&day).cloned().unwrap_or_default();
        Json::object([
            ("day", Json::from(day.to_string())),
            ("revenue", till.revenue_json()),
            ("orders", Json::from(till.orders)),
        ])
    };
    Ok(Json::object([
        ("currency", currency(asked, project)),
        ("series", Json::list(window.days().map(row))),
        ("unconverted", unconverted(events.iter().map(|&index| &asked.facts.events[index]))),
    ]))
}
