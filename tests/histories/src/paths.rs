//! Questions about the ways that people take: funnels and journeys.

use crate::chosen::{SESSION_FILTERS, chosen_in_sessions, clause, filter, object};
use crate::history::History;
use crate::questions::{SESSION_FIELDS, compare, days_of_sessions};
use crate::rng::Rng;
use crate::values::{FIELDS, FILTERS, GOALS, PATHS};
use headcount_model::{Json, Question};

type Body = Vec<(&'static str, Json)>;

/// The names of events in steps; the first ones are common.
const NAMES: [&str; 9] = ["order", "order", "pageview", "page", "signup", "saved", "refund", "identify", "nothing"];
/// Patterns of pages; the first ones fit many.
const PAGES: [&str; 10] = ["/**", "/**", "/*", "/*", "/", "/a", "/b", "/pricing", "/*i*g", "/über"];
/// How long a chain may take: what differences of instants come close to, or are.
const TIMES: [&str; 16] = [
    r#"{"minutes": 30}"#,
    r#"{"minutes": 30}"#,
    r#"{"minutes": 29}"#,
    r#"{"minutes": 10}"#,
    r#"{"minutes": 1}"#,
    r#"{"minutes": 60}"#,
    r#"{"minutes": 1440}"#,
    r#"{"hours": 1}"#,
    r#"{"hours": 6}"#,
    r#"{"hours": 23}"#,
    r#"{"hours": 25}"#,
    r#"{"days": 1}"#,
    r#"{"days": 1}"#,
    r#"{"days": 2}"#,
    r#"{"days": 30}"#,
    r#"{"days": 90}"#,
];
const WRONG_TIMES: [&str; 10] = [
    r#"{"days": 91}"#,
    r#"{"hours": 2161}"#,
    r#"{"minutes": 129601}"#,
    r#"{"minutes": 0}"#,
    r#"{"hours": 1.5}"#,
    r#"{"days": "7"}"#,
    r#"{"weeks": 1}"#,
    "{}",
    r#""day""#,
    "7",
];
/// Names of groups, and patterns of what they rename. Some names are those of other values.
const GROUPS: [(&str, &str); 8] = [
    ("Letters", "/*"),
    ("Home", "/"),
    ("/a", "/b"),
    ("order", "/pricing"),
    ("Encoded", "/*%*"),
    ("Rest", "/**"),
    ("None", "/nothing"),
    ("Post", "/p**"),
];

fn json(text: &str) -> Json {
    Json::parse(text).expect("JSON")
}

/// Days: most of what was recorded, or any.
fn days(history: &History, rng: &mut Rng) -> Body {
    if rng.chance(30) {
        return days_of_sessions(history, rng);
    }
    let (first, last) = (history.days.iter().min().expect("a day"), history.days.iter().max().expect("a day"));
    vec![("start_date", Json::from(first.to_string())), ("end_date", Json::from(last.to_string()))]
}

/// What chooses the events, but for their name.
fn chosen(rng: &mut Rng, body: &mut Body) {
    if rng.chance(25) {
        chosen_in_sessions(rng, body);
        body.retain(|(name, _)| *name != "event_name");
    }
}

/// A step. `common`: it fits much.
fn step(rng: &mut Rng, common: bool) -> Json {
    let mut step = match rng.below(10) {
        0..5 => vec![("page", Json::from(rng.word(&PAGES[..if common { 4 } else { PAGES.len() }])))],
        5..9 => vec![("event_name", Json::from(rng.word(&NAMES[..if common { 3 } else { NAMES.len() }])))],
        _ => vec![("goal", json(rng.word(&GOALS)))],
    };
    if rng.chance(if common { 8 } else { 25 }) {
        let any = |rng: &mut Rng| if rng.chance(40) { filter(rng, &SESSION_FILTERS) } else { filter(rng, &FILTERS) };
        step.push(("filters", Json::List(vec![clause(rng, &any)])));
    }
    if rng.chance(20) {
        step.push(("name", Json::from(rng.word(&["A step", "Ein Schritt", "order"]))));
    }
    object(step)
}

/// Some steps: one several times, common ones, or any.
fn steps(rng: &mut Rng) -> Vec<Json> {
    let count = *rng.pick(&[2, 3, 3, 3, 4, 4, 5, 6, 12]);
    match rng.below(6) {
        0 => vec![json(r#"{"page": "/**"}"#); count],
        1 => vec![step(rng, true); count],
        2..5 => (0..count).map(|_| step(rng, true)).collect(),
        _ => (0..count).map(|_| step(rng, false)).collect(),
    }
}

/// What is asked of a funnel, and of its people.
fn common(history: &History, rng: &mut Rng) -> Body {
    let mut body = days(history, rng);
    body.push(("steps", Json::List(steps(rng))));
    match rng.below(10) {
        0..5 => body.push(("within", json(rng.word(&TIMES)))),
        5..8 => body.push(("within", Json::from("session"))),
        _ => {}
    }
    if rng.chance(80) {
        body.push(("order", Json::from(rng.word(&["loose", "strict", "any"]))));
    }
    if rng.chance(60) {
        body.push(("level", Json::from(rng.word(&["identity", "account", "account"]))));
    }
    chosen(rng, &mut body);
    if rng.chance(6) {
        spoil(rng, &mut body);
    }
    body
}

/// Makes what is asked of a funnel wrong.
fn spoil(rng: &mut Rng, body: &mut Body) {
    let mut replace = |name: &'static str, value: Json| {
        body.retain(|(field, _)| *field != name);
        body.push((name, value));
    };
    let long = "x".repeat(257);
    let wrong_steps = [
        r#"{"event_name": "order", "page": "/**"}"#.to_owned(),
        r#"{"name": "Nothing of it"}"#.to_owned(),
        r#"{"event_name": "order", "at": 5}"#.to_owned(),
        r#"{"event_name": ""}"#.to_owned(),
        format!(r#"{{"page": "{long}"}}"#),
        format!(r#"{{"page": "/**", "name": "{}"}}"#, &long[..201]),
        r#""order""#.to_owned(),
    ];
    let order = || json(r#"{"event_name": "order"}"#);
    match rng.below(8) {
        0 => replace("steps", Json::List(vec![order()])),
        1 => replace("steps", Json::List(vec![order(); 13])),
        2 | 3 => replace("steps", Json::List(vec![order(), json(rng.pick::<String>(&wrong_steps))])),
        4 => replace("order", Json::from("random")),
        5 => replace("event_name", Json::from("order")),
        _ => replace("within", json(rng.word(&WRONG_TIMES))),
    }
}

pub(crate) fn funnel(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = common(history, rng);
    if rng.chance(45) {
        let field = match rng.below(3) {
            0 => rng.word(&FIELDS).to_owned(),
            1 => rng.word(&SESSION_FIELDS).to_owned(),
            _ => format!("metadata.{}", rng.word(&PATHS)),
        };
        body.push(("breakdown", Json::from(field)));
    }
    if rng.chance(20) {
        body.push(("limit", Json::from(*rng.pick(&[1, 1, 1, 2, 2, 3, 1_000, 0, 1_001]))));
    }
    if rng.chance(50) {
        compare(history, rng, &mut body);
    }
    Question::post(path, object(body))
}

/// Asks who reached a step, or dropped after it: mostly all of them.
pub(crate) fn people(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = common(history, rng);
    let steps = body.iter().find(|(name, _)| *name == "steps").map_or(0, |(_, steps)| steps.items().len());
    let step = if rng.chance(4) { *rng.pick(&[0, steps + 1]) } else { 1 + rng.below(steps.clamp(1, 3)) };
    body.push(("step", Json::from(step)));
    let limit = if rng.chance(80) { 500 } else { *rng.pick(&[1, 1, 1, 2, 2, 2, 3, 3, 0, 501]) };
    body.push(("limit", Json::from(limit)));
    if rng.chance(70) {
        body.push(("outcome", Json::from(rng.word(&["reached", "dropped", "dropped"]))));
    }
    if rng.chance(3) {
        body.push(("breakdown", Json::from("path")));
    }
    Question::post(path, object(body))
}

/// Where a journey begins or ends.
fn end(rng: &mut Rng, by: &str) -> Json {
    let paths = ["/", "/", "/*", "/*", "/**", "/a", "/a", "/b", "/pricing", "/**g", "Letters", "order", "/nothing"];
    let names = ["pageview", "pageview", "order", "order", "page*", "signup", "*", "refund", "$pageview"];
    Json::from(if by == "event_name" { rng.word(&names) } else { rng.word(&paths) })
}

pub(crate) fn journeys(history: &History, rng: &mut Rng, path: &str) -> Question {
    let mut body = days(history, rng);
    let by = rng.word(&["path", "event_name", "path_or_event", ""]);
    if !by.is_empty() {
        body.push(("by", Json::from(by)));
    }
    match rng.below(100) {
        0..30 => body.push(("from", end(rng, by))),
        30..60 => body.push(("to", end(rng, by))),
        60 => body.extend([("from", end(rng, by)), ("to", end(rng, by))]),
        _ => {}
    }
    if rng.chance(70) {
        let depth = if rng.chance(4) { *rng.pick(&[1, 11]) } else { *rng.pick(&[2, 2, 3, 3, 4, 10]) };
        body.push(("depth", Json::from(depth)));
    }
    if rng.chance(65) {
        let rows = if rng.chance(4) { *rng.pick(&[0, 51]) } else { *rng.pick(&[1, 1, 2, 2, 3, 50]) };
        body.push(("rows", Json::from(rows)));
    }
    if rng.chance(if by == "event_name" { 3 } else { 40 }) {
        let group = |rng: &mut Rng| {
            let &(name, pattern) = rng.pick(&GROUPS);
            object(vec![("name", Json::from(name)), ("pattern", Json::from(pattern))])
        };
        let count = if rng.chance(3) { 51 } else { 1 + rng.below(3) };
        body.push(("groups", Json::List((0..count).map(|_| group(rng)).collect())));
    }
    chosen(rng, &mut body);
    if rng.chance(2) {
        body.push(("compare", Json::from("previous_period")));
    }
    Question::post(path, object(body))
}
