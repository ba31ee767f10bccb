//! `GET /projects/{project_id}/revenue/by-attribution`

use super::params::Params;
use super::revenue::{Till, counted, currency, unconverted};
use super::{Asked, Wrong, ranked};
use crate::acquisition::{DIRECT, Origin, origin};
use crate::facts::{Account, Facts};
use crate::json::Json;
use std::collections::BTreeMap;

pub(super) fn by_attribution(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let model = params.word("model", &["first_touch", "last_touch"])?;
    let level = params.word("level", &["account", "identity"])?;
    let dimension = params.word("dimension", &["source", "medium", "campaign"])?;
    let window = params.window(asked)?;
    let limit = params.count("limit", 1..=100, 20)?;
    params.done()?;

    let events: Vec<_> = asked.facts.of_project(project).filter(|&index| window.holds(asked.day(index))).collect();
    let mut rows: BTreeMap<String, Till> = BTreeMap::new();
    for &index in &events {
        let event = &asked.facts.events[index];
        if counted(event).is_some_and(|money| money.in_project.is_some()) {
            let touch = asked.days(project).touch(index, level, model);
            let named = match dimension {
                "source" => touch.source,
                "medium" => touch.medium,
                _ => touch.campaign,
            };
            rows.entry(named).or_default().add_in_project(event);
        }
    }
    let rows = ranked(rows.into_iter().collect(), |(_, till)| till.revenue, |(name, _)| name.clone());
    let row = |(name, till): &(String, Till)| {
        Json::object([
            ("dimension", Json::from(name.as_str())),
            ("revenue", till.revenue_json()),
            ("orders", Json::from(till.orders)),
        ])
    };
    Ok(Json::object([
        ("currency", currency(asked, project)),
        ("rows", Json::list(rows.iter().take(limit).map(row))),
        ("truncated", Json::from(rows.len() > limit)),
        ("unconverted", unconverted(events.iter().map(|&index| &asked.facts.events[index]))),
    ]))
}

/// Returns the entity whose touches apply to an event: its account or its identity, if it has an
/// identity.
pub(crate) fn account_or_identity(facts: &Facts<'_>, index: usize, level: &str) -> Option<Account> {
    match level {
        "account" => facts.account(index),
        _ => facts.identities[index].clone().map(Account::Identity),
    }
}

/// Returns the touch of an order: among the events of its entity with a source, the first, or the
/// last by then, the order itself included.
pub(crate) fn touch(facts: &Facts<'_>, project: &str, order: usize, level: &str, model: &str) -> Origin {
    if facts.identities[order].is_none() {
        return Origin::direct();
    }
    let entity = account_or_identity(facts, order, level);
    let order_ms = facts.events[order].at_ms;
    let mut touches: Vec<_> = facts
        .of_project(project)
        .filter(|&index| facts.identities[index].is_some())
        .filter(|&index| account_or_identity(facts, index, level) == entity)
        .map(|index| (facts.moment(index), origin(&facts.events[index])))
        .filter(|(_, origin)| origin.source != DIRECT)
        .collect();
    touches.sort_by_key(|(moment, _)| *moment);
    let touch = match model {
        "first_touch" => touches.into_iter().next(),
        _ => touches.into_iter().rfind(|((at_ms, _), _)| *at_ms <= order_ms),
    };
    touch.map_or_else(Origin::direct, |(_, origin)| origin)
}
