//! `GET /projects/{project_id}/analytics/traffic`

use super::params::Params;
use super::{Asked, Wrong, ranked};
use crate::acquisition::{channel, origin};
use crate::decimal::{MICROS, Micros, ratio};
use crate::facts::Session;
use crate::json::Json;
use crate::time::Window;
use std::collections::BTreeMap;

/// A session: the channel, source, medium and campaign of its entry, and whether it is a bounce.
struct Visit {
    names: [String; 4],
    is_bounce: bool,
}

fn visits(asked: &Asked<'_>, project: &str, window: Window) -> Vec<Visit> {
    let visit = |session: &Session| {
        let entry = &asked.facts.events[session.entry()];
        let origin = origin(entry);
        let names = [channel(entry), origin.source, origin.medium, origin.campaign];
        Visit { names, is_bounce: session.events.len() == 1 }
    };
    let is_asked =
        |session: &&Session| asked.facts.events[session.entry()].project == project && window.holds(asked.day(session.entry()));
    asked.facts.sessions.iter().filter(is_asked).map(visit).collect()
}

pub(super) fn traffic(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    let window = params.event_window(asked, project)?;
    let limit = params.count("limit", 1..=1_000, 100)?;
    params.done()?;

    let visits = visits(asked, project, window);
    let all = Visits::of(visits.iter());
    let mut truncated = false;
    let mut list = |at: usize| {
        let mut rows: BTreeMap<&str, Vec<&Visit>> = BTreeMap::new();
        visits.iter().for_each(|visit| rows.entry(visit.names[at].as_str()).or_default().push(visit));
        let rows: Vec<_> = rows.into_iter().map(|(value, visits)| (value, Visits::of(visits.into_iter()))).collect();
        let rows = ranked(rows, |(_, visits)| visits.sessions, |(value, _)| *value);
        truncated |= rows.len() > limit;
        Json::list(rows.into_iter().take(limit).map(|(value, visits)| {
            let mut row = visits.fields();
            row.push(("value", Json::from(value)));
            Json::Object(row.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
        }))
    };
    let mut answer = all.fields();
    for (at, name) in ["by_channel", "by_source", "by_medium", "by_campaign"].into_iter().enumerate() {
        answer.push((name, list(at)));
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
