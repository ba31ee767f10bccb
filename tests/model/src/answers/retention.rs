//! `GET /projects/{project_id}/analytics/retention`

use super::params::Params;
use super::{Asked, Wrong};
use crate::facts::Identity;
use crate::json::Json;
use chrono::{Datelike, Days, Months, NaiveDate};
use std::collections::{BTreeMap, BTreeSet};

/// The first day of the week or month that contains `day`.
fn beginning(interval: &str, day: NaiveDate) -> NaiveDate {
    match interval {
        "week" => day - Days::new(day.weekday().num_days_from_monday().into()),
        _ => day.with_day(1).expect("every month has a first day"),
    }
}

fn next(interval: &str, beginning: NaiveDate) -> NaiveDate {
    if interval == "week" { beginning + Days::new(7) } else { beginning + Months::new(1) }
}

/// The first days of the last `count` intervals, the running one first.
fn last(interval: &str, today: NaiveDate, count: usize) -> Vec<NaiveDate> {
    let running = beginning(interval, today);
    std::iter::successors(Some(running), |later| Some(beginning(interval, *later - Days::new(1)))).take(count).collect()
}

pub(super) fn retention(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let interval = params.word("interval", &["week", "month"])?;
    let count = params.count("cohorts", 1..=60, 12)?;
    params.done()?;

    // In which intervals each identity was active. A cookieless visitor has no id to come back
    // with.
    let mut active: BTreeMap<&Identity, BTreeSet<NaiveDate>> = BTreeMap::new();
    for index in asked.facts.of_project(project) {
        match &asked.facts.identities[index] {
            Some(Identity::Visitor(_)) | None => {}
            Some(identity) => {
                active.entry(identity).or_default().insert(beginning(interval, asked.day(index)));
            }
        }
    }
    let cohorts = last(interval, asked.today, count);
    let of_cohort = |cohort: NaiveDate| active.values().filter(move |intervals| intervals.first() == Some(&cohort));
    let row = |cohort: &NaiveDate| {
        let until_now = std::iter::successors(Some(*cohort), |earlier| Some(next(interval, *earlier)));
        let until_now = until_now.take_while(|beginning| *beginning <= cohorts[0]);
        let returned = until_now.map(|then| of_cohort(*cohort).filter(|intervals| intervals.contains(&then)).count());
        let name = if interval == "week" { "%Y-%m-%d" } else { "%Y-%m" };
        Json::object([
            ("cohort", Json::from(cohort.format(name).to_string())),
            ("users", Json::from(of_cohort(*cohort).count())),
            ("returned", Json::list(returned.map(Json::from))),
        ])
    };
    let oldest = cohorts[cohorts.len() - 1];
    let is_older = |intervals: &BTreeSet<NaiveDate>| intervals.first().is_some_and(|first| *first < oldest);
    Ok(Json::object([
        ("cohorts", Json::list(cohorts.iter().map(row))),
        ("interval", Json::from(interval)),
        ("timezone", Json::from(asked.timezone.name())),
        ("truncated", Json::from(active.values().any(is_older))),
    ]))
}
