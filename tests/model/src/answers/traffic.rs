//! `GET /projects/{project_id}/analytics/traffic`

use super::params::Params;
use super::{Asked, Wrong, ranked};
use crate::decimal::{MICROS, Micros, ratio};
use crate::frozen::Visit;
use crate::json::Json;
use std::collections::BTreeMap;

/// The channel, source, medium or campaign of a session.
fn name(visit: &Visit, list: &str) -> String {
    match list {
        "by_channel" => visit.channel.clone(),
        "by_source" => visit.origin.source.clone(),
        "by_medium" => visit.origin.medium.clone(),
        _ => visit.origin.campaign.clone(),
    }
}

pub(super) fn traffic(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.window(asked)?;
    let limit = params.count("limit", 1..=1_000, 100)?;
    params.done()?;

    let mut visits = asked.days(project).visits();
    visits.retain(|visit| window.holds(visit.day));
    let all = Visits::of(visits.iter());
    let mut truncated = false;
    let mut list = |list: &str| {
        let mut rows: BTreeMap<String, Vec<&Visit>> = BTreeMap::new();
        visits.iter().for_each(|visit| rows.entry(name(visit, list)).or_default().push(visit));
        let rows: Vec<_> = rows.into_iter().map(|(value, visits)| (value, Visits::of(visits.into_iter()))).collect();
        let rows = ranked(rows, |(_, visits)| visits.sessions, |(value, _)| value.clone());
        truncated |= rows.len() > limit;
        Json::list(rows.into_iter().take(limit).map(|(value, visits)| {
            let mut row = visits.fields();
            row.push(("value", Json::from(value)));
            Json::Object(row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        }))
    };
    let mut answer = all.fields();
    for name in ["by_channel", "by_source", "by_medium", "by_campaign"] {
        answer.push((name, list(name)));
    }
    answer.push(("truncated", Json::from(truncated)));
    answer.push(("start_date", Json::from(window.first.to_string())));
    answer.push(("end_date", Json::from(window.last.to_string())));
    answer.push(("timezone", Json::from(asked.timezone.name())));
    Ok(Json::Object(answer.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

/// Some sessions.
struct Visits {
    sessions: usize,
    bounces: usize,
}

impl Visits {
    fn of<'v>(visits: impl Iterator<Item = &'v Visit> + Clone) -> Visits {
        Visits { sessions: visits.clone().count(), bounces: visits.filter(|visit| visit.is_bounce).count() }
    }

    fn fields(&self) -> Vec<(&'static str, Json)> {
        vec![
            ("sessions", Json::from(self.sessions)),
            ("bounces", Json::from(self.bounces)),
            ("bounce_rate", Json::from(ratio(self.bounces as Micros * MICROS, self.sessions))),
        ]
    }
}
