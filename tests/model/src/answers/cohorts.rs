//! `GET /projects/{project_id}/revenue/ltv-cohorts`

use super::attribution::account_or_identity;
use super::params::Params;
use super::revenue::{Till, currency, unconverted};
use super::{Asked, Wrong};
use crate::decimal::ratio;
use crate::json::Json;
use std::collections::BTreeMap;

pub(super) fn ltv_cohorts(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let level = params.word("level", &["account", "identity"])?;
    let limit = params.count("limit", 1..=60, 24)?;
    params.take("start_date");
    params.take("end_date");
    params.done()?;

    let mut entities: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for index in asked.facts.of_project(project) {
        if let Some(entity) = account_or_identity(&asked.facts, index, level) {
            entities.entry(entity).or_default().push(index);
        }
    }
    let mut cohorts: BTreeMap<String, (usize, Till)> = BTreeMap::new();
    for events in entities.values() {
        let Some(first_day) = events.iter().map(|&index| asked.day(index)).min() else {
            continue;
        };
        let (count, till) = cohorts.entry(first_day.format("%Y-%m").to_string()).or_default();
        *count += 1;
        for &index in events {
            till.add_in_project(&asked.facts.events[index]);
        }
    }
    let row = |(month, (count, till)): (&String, &(usize, Till))| {
        Json::object([
            ("cohort", Json::from(month.as_str())),
            ("entities", Json::from(*count)),
            ("revenue", till.revenue_json()),
            ("orders", Json::from(till.orders)),
            ("ltv", Json::from(ratio(till.revenue, *count))),
        ])
    };
    Ok(Json::object([
        ("currency", currency(asked, project)),
        ("cohorts", Json::list(cohorts.iter().rev().take(limit).map(row))),
        ("truncated", Json::from(cohorts.len() > limit)),
        ("unconverted", unconverted(asked.facts.of_project(project).map(|index| &asked.facts.events[index]))),
    ]))
}
