//! `POST /projects/{project_id}/analytics/journeys`

use super::fields::{Chosen, fits};
use super::figures::{beside, object};
use super::params::Params;
use super::revenue::Till;
use super::{Asked, Wrong, ranked};
use crate::facts::{Identity, Session};
use crate::json::Json;
use std::collections::{BTreeMap, BTreeSet};

/// How many whole sequences are listed.
const MOST_SEQUENCES: usize = 20;

/// What the values of a journey are, and where it begins or ends.
struct Way {
    by: &'static str,
    /// New names of paths, with the patterns that they stand for.
    groups: Vec<(String, String)>,
    from: Option<String>,
    to: Option<String>,
    depth: usize,
}

/// A value, and the events from its first one on, until the next value.
struct Run {
    value: String,
    events: Vec<usize>,
}

/// The journey of a session.
struct Journey<'a> {
    identity: &'a Identity,
    /// The chosen events of the session.
    events: Vec<usize>,
    /// What is left of its sequence.
    runs: Vec<Run>,
    is_cut: bool,
}

impl Way {
    fn of(params: &mut Params) -> Result<Way, Wrong> {
        let by = params.word("by", &["path", "event_name", "path_or_event"])?;
        let given = params.take("groups").unwrap_or(Json::List(Vec::new()));
        if given.items().len() > 50 || !matches!(given, Json::List(_)) || (by == "event_name" && !given.items().is_empty()) {
            return Err(Wrong::param("groups"));
        }
        let mut groups = Vec::new();
        for group in given.items() {
            let mut group = Params::of_part(group, "groups")?;
            let named = group.text("name")?.zip(group.pattern("pattern")?);
            groups.push(named.ok_or_else(|| Wrong::param("groups"))?);
            group.done()?;
        }
        let (from, to) = (params.pattern("from")?, params.pattern("to")?);
        if from.is_some() && to.is_some() {
            return Err(Wrong::param("to"));
        }
        Ok(Way { by, groups, from, to, depth: params.count("depth", 2..=10, 5)? })
    }

    /// The value of an event, if it has one.
    fn value(&self, asked: &Asked<'_>, index: usize) -> Option<String> {
        let event = &asked.facts.events[index];
        let path = event.url.as_ref().filter(|_| event.is_pageview()).and_then(|url| url.path.clone());
        let renamed = path.map(|path| {
            let group = self.groups.iter().find(|(_, pattern)| fits(pattern, &path));
            group.map_or(path, |(name, _)| name.clone())
        });
        let name = Some(event.name.clone());
        let value = match self.by {
            "path" => renamed,
            "event_name" => name,
            _ => renamed.or(name),
        };
        value.filter(|_| event.interactive)
    }

    /// The journey of a session in which these events are chosen, if it has one.
    fn journey<'a>(&self, asked: &Asked<'_>, session: &'a Session, mut events: Vec<usize>) -> Option<Journey<'a>> {
        let at = |index: usize| (asked.facts.events[index].at_ms, !asked.facts.events[index].interactive, index);
        events.sort_by_key(|&index| at(index));
        let mut runs: Vec<Run> = Vec::new();
        for &index in &events {
            if let Some(value) = self.value(asked, index)
                && runs.last().is_none_or(|run| run.value != value)
            {
                runs.push(Run { value, events: Vec::new() });
            }
            runs.iter_mut().next_back().into_iter().for_each(|run| run.events.push(index));
        }
        if let Some(from) = &self.from {
            let first = runs.iter().position(|run| fits(from, &run.value))?;
            runs.drain(..first);
        }
        if let Some(to) = &self.to {
            let last = runs.iter().rposition(|run| fits(to, &run.value))?;
            runs.truncate(last + 1);
            runs.reverse();
        }
        let is_cut = runs.len() > self.depth;
        runs.truncate(self.depth);
        (!runs.is_empty()).then_some(Journey { identity: &session.identity, events, runs, is_cut })
    }
}

impl Journey<'_> {
    fn value(&self, step: usize) -> Option<&str> {
        self.runs.get(step).map(|run| run.value.as_str())
    }

    fn ends_at(&self, step: usize) -> bool {
        self.runs.len() == step + 1 && !self.is_cut
    }
}

fn users(journeys: &[&Journey<'_>]) -> Json {
    Json::from(journeys.iter().map(|journey| journey.identity).collect::<BTreeSet<_>>().len())
}

fn revenue<'e>(asked: &Asked<'_>, events: impl Iterator<Item = &'e usize>) -> Json {
    let mut till = Till::default();
    events.for_each(|&index| till.add_in_project(&asked.facts.events[index]));
    till.revenue_json()
}

/// The values of a step that have nodes of their own, the largest first, and how many have none.
fn values(journeys: &[Journey<'_>], step: usize, rows: usize) -> (Vec<String>, usize) {
    let mut sessions: BTreeMap<&str, usize> = BTreeMap::new();
    journeys.iter().filter_map(|journey| journey.value(step)).for_each(|value| *sessions.entry(value).or_default() += 1);
    let all = ranked(sessions.into_iter().collect(), |(_, sessions)| *sessions, |(value, _)| (*value).to_owned());
    (all.iter().take(rows).map(|(value, _)| (*value).to_owned()).collect(), all.len().saturating_sub(rows))
}

fn nodes(asked: &Asked<'_>, journeys: &[Journey<'_>], step: usize, rows: usize) -> Json {
    let (values, other) = values(journeys, step, rows);
    let node = |value: Option<&String>| {
        let is_here = |journey: &&Journey<'_>| match (journey.value(step), value) {
            (Some(its), Some(value)) => its == value,
            (Some(its), None) => !values.iter().any(|value| value == its),
            (None, _) => false,
        };
        let here: Vec<&Journey<'_>> = journeys.iter().filter(is_here).collect();
        object(vec![
            ("value", Json::from(value.cloned())),
            ("sessions", Json::from(here.len())),
            ("users", users(&here)),
            ("exits", Json::from(here.iter().filter(|journey| journey.ends_at(step)).count())),
            ("revenue", revenue(asked, here.iter().flat_map(|journey| &journey.runs[step].events))),
            ("other", Json::from(if value.is_none() { other } else { 0 })),
        ])
    };
    let others = (other > 0).then(|| node(None));
    object(vec![("nodes", Json::list(values.iter().map(|value| node(Some(value))).chain(others)))])
}

/// The links into the nodes of a step.
fn links(journeys: &[Journey<'_>], step: usize, rows: usize) -> Vec<Json> {
    let node = |journey: &Journey<'_>, step: usize| -> Option<Option<String>> {
        let value = journey.value(step)?.to_owned();
        Some(Some(value).filter(|value| values(journeys, step, rows).0.contains(value)))
    };
    let mut links: BTreeMap<_, Vec<&Journey<'_>>> = BTreeMap::new();
    for journey in journeys {
        if let (Some(from), Some(to)) = (node(journey, step - 1), node(journey, step)) {
            links.entry((from, to)).or_default().push(journey);
        }
    }
    // The node of the others comes last.
    let order = |node: &Option<String>| (node.is_none(), node.clone());
    let rows = ranked(links.into_iter().collect(), |(_, journeys)| journeys.len(), |((from, to), _)| (order(from), order(to)));
    let link = |((from, to), journeys): ((Option<String>, Option<String>), Vec<&Journey<'_>>)| {
        object(vec![
            ("step", Json::from(step + 1)),
            ("from", Json::from(from)),
            ("to", Json::from(to)),
            ("sessions", Json::from(journeys.len())),
            ("users", users(&journeys)),
        ])
    };
    rows.into_iter().map(link).collect()
}

/// The commonest whole sequences.
fn top(asked: &Asked<'_>, journeys: &[Journey<'_>]) -> Json {
    let mut sequences: BTreeMap<Vec<&str>, Vec<&Journey<'_>>> = BTreeMap::new();
    for journey in journeys {
        let sequence = journey.runs.iter().map(|run| run.value.as_str()).collect();
        sequences.entry(sequence).or_default().push(journey);
    }
    let rows = ranked(sequences.into_iter().collect(), |(_, journeys)| journeys.len(), |(sequence, _)| sequence.clone());
    Json::list(rows.into_iter().take(MOST_SEQUENCES).map(|(sequence, journeys)| {
        object(vec![
            ("path", Json::list(sequence.into_iter().map(Json::from))),
            ("sessions", Json::from(journeys.len())),
            ("users", users(&journeys)),
            ("revenue", revenue(asked, journeys.iter().flat_map(|journey| &journey.events))),
        ])
    }))
}

pub(super) fn journeys(asked: &Asked<'_>, project: &str, mut params: Params) -> Result<Json, Wrong> {
    params.refuse(&["event_name"])?;
    let window = params.event_window(asked, project)?;
    let chosen = Chosen::of(&mut params)?;
    let way = Way::of(&mut params)?;
    let rows = params.count("rows", 1..=50, 10)?;
    params.done()?;

    let mut journeys = Vec::new();
    for session in &asked.facts.sessions {
        let entry = session.entry();
        if asked.facts.events[entry].project == project && window.holds(asked.day(entry)) {
            let events = session.events.iter().chain(&session.attached).copied();
            let events = events.filter(|&index| chosen.chooses(asked, index, window)).collect();
            journeys.extend(way.journey(asked, session, events));
        }
    }
    let steps = journeys.iter().map(|journey| journey.runs.len()).max().unwrap_or(0);
    let mut answer = vec![
        ("sessions", Json::from(journeys.len())),
        ("steps", Json::list((0..steps).map(|step| nodes(asked, &journeys, step, rows)))),
        ("truncated", Json::from(false)),
        ("links", Json::list((1..steps).flat_map(|step| links(&journeys, step, rows)))),
        ("top", top(asked, &journeys)),
    ];
    let events: Vec<usize> = journeys.iter().flat_map(|journey| journey.events.iter().copied()).collect();
    answer.extend(beside(asked, project, window, &events));
    Ok(object(answer))
}
