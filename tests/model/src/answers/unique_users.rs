//! `POST /projects/{project_id}/analytics/count-unique-users-per-day`

use super::fields::Chosen;
use super::params::Params;
use super::{Asked, Wrong};
use crate::frozen::Active;
use crate::json::Json;
use crate::time::Window;
use chrono::NaiveDate;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn count(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let is_plain = params.choose_all();
    let window = if is_plain { params.window(asked)? } else { params.event_window(asked, project)? };
    let chosen = Chosen::of(&mut params)?;
    params.done()?;

    let mut of_day: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut of_window = BTreeSet::new();
    for index in asked.facts.of_project(project) {
        let Some(identity) = &asked.facts.identities[index] else {
            continue;
        };
        if window.holds(asked.day(index)) && chosen.chooses(asked, index, window) {
            of_day.entry(asked.day(index)).or_default().insert(identity);
            of_window.insert(identity);
        }
    }
    let mut total = of_window.len();
    let mut counts: BTreeMap<NaiveDate, usize> = of_day.into_iter().map(|(day, users)| (day, users.len())).collect();
    if is_plain && asked.model.floor(project).is_some() {
        (counts, total) = by_days(asked, project, window);
    }
    let row = |day| {
        let users = counts.get(&day).copied().unwrap_or(0);
        Json::object([("day", Json::from(day.to_string())), ("unique_users", Json::from(users))])
    };
    Ok(Json::object([
        ("series", Json::list(window.days().map(row))),
        ("total_unique_users", Json::from(total)),
        ("start_date", Json::from(window.first.to_string())),
        ("end_date", Json::from(window.last.to_string())),
        ("timezone", Json::from(asked.timezone.name())),
    ]))
}

/// Counts the users of a window by day and in total, by what each day knows: a user counts on the
/// first active day of the window.
fn by_days(asked: &Asked<'_>, project: &str, window: Window) -> (BTreeMap<NaiveDate, usize>, usize) {
    let mut counts = BTreeMap::new();
    let active = asked.days(project).active("identity");
    active.iter().for_each(|one| *counts.entry(one.day).or_default() += 1);
    (counts, firsts(&active, window))
}

/// Returns the number of distinct entities of a window.
pub(super) fn firsts(active: &[Active], window: Window) -> usize {
    let is_first = |one: &&Active| window.holds(one.day) && one.before.is_none_or(|before| before < window.first);
    active.iter().filter(is_first).count()
}
