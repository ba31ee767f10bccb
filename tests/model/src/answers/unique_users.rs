//! `POST /projects/{project_id}/analytics/count-unique-users-per-day`

use super::fields::Chosen;
use super::params::Params;
use super::{Asked, Wrong};
use crate::json::Json;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn count(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.window(asked)?;
    let chosen = Chosen::of(&mut params)?;
    params.done()?;

    let mut of_day: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut of_window = BTreeSet::new();
    for index in asked.facts.of_project(project) {
        let Some(identity) = &asked.facts.identities[index] else {
            continue;
        };
        if window.holds(asked.day(index)) && chosen.holds(asked, index) {
            of_day.entry(asked.day(index)).or_default().insert(identity);
            of_window.insert(identity);
        }
    }
    let row = |day| {
        let users = of_day.get(&day).map_or(0, BTreeSet::len);
        Json::object([("day", Json::from(day.to_string())), ("unique_users", Json::from(users))])
    };
    Ok(Json::object([
        ("series", Json::list(window.days().map(row))),
        ("total_unique_users", Json::from(of_window.len())),
        ("start_date", Json::from(window.first.to_string())),
        ("end_date", Json::from(window.last.to_string())),
        ("timezone", Json::from(asked.timezone.name())),
    ]))
}
