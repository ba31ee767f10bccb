//! Events that follow others of the same people, so that people take many steps.

use crate::history::{History, Step};
use crate::rng::Rng;
use headcount_model::decimal::Decimal;
use headcount_model::time::{day_of, instant_ms, shown};
use headcount_model::{Json, json::Json::Object};
use std::collections::BTreeMap;

/// Tells the random numbers of walks from those of the rest.
const WALKS: u64 = 0x3a1c;
const MINUTE_MS: i64 = 60_000;
/// The times between two steps: none, those of sessions, and those that funnels may take.
const GAPS_MS: [i64; 14] = [
    0,
    0,
    0,
    1,
    1_000,
    MINUTE_MS,
    MINUTE_MS,
    10 * MINUTE_MS,
    10 * MINUTE_MS,
    15 * MINUTE_MS,
    30 * MINUTE_MS,
    30 * MINUTE_MS + 1,
    60 * MINUTE_MS,
    24 * 60 * MINUTE_MS,
];
const NAMES: [&str; 9] = ["pageview", "pageview", "pageview", "pageview", "page", "order", "order", "refund", "signup"];
const PATHS: [&str; 7] = ["/", "/", "/a", "/a", "/b", "/pricing", "/pricing/x"];

/// Adds walks of up to six events to a history.
pub(crate) fn add_walks(history: &mut History) {
    let mut rng = Rng::new(history.seed ^ WALKS);
    let last = *history.days.iter().max().expect("a day");
    let mut walks = Vec::new();
    for step in &history.steps {
        if let Step::Track { project, body } = step
            && rng.chance(50)
        {
            let events = walk(&mut rng, body).into_iter();
            let is_past = |(at_ms, _): &(i64, Json)| day_of(*at_ms, history.organization.timezone) <= last;
            walks.extend(events.filter(is_past).map(|(_, body)| (project.clone(), body.to_string())));
        }
    }
    // Those that remain in place are recorded in order, the others late or early.
    let mut place = history.steps.len();
    for (project, body) in walks {
        place = if rng.chance(60) { (place + 1).min(history.steps.len()) } else { rng.below(history.steps.len() + 1) };
        history.steps.insert(place, Step::Track { project, body });
    }
}

/// The events that follow one, with their instants: none if it names nobody.
fn walk(rng: &mut Rng, body: &str) -> Vec<(i64, Json)> {
    let Ok(Object(fields)) = Json::parse(body) else { return Vec::new() };
    let at_ms = match fields.get("timestamp") {
        Some(Json::Text(text)) => instant_ms(text),
        Some(Json::Number(number)) => number.whole().filter(|ms| *ms > 100_000_000_000).and_then(|ms| i64::try_from(ms).ok()),
        _ => None,
    };
    let is_kept = |(name, value): &(&String, &Json)| {
        ["user_id", "anonymous_id", "group_id", "group_type"].contains(&name.as_str()) && value.filled().is_some()
    };
    let ids: BTreeMap<String, Json> = fields.iter().filter(is_kept).map(|(name, value)| (name.clone(), value.clone())).collect();
    let (Some(mut at_ms), false) = (at_ms, ids.is_empty()) else { return Vec::new() };
    let mut events = Vec::new();
    for _ in 0..=rng.below(6) {
        at_ms += *rng.pick(&GAPS_MS);
        events.push((at_ms, event(rng, ids.clone(), at_ms)));
    }
    events
}

fn event(rng: &mut Rng, mut fields: BTreeMap<String, Json>, at_ms: i64) -> Json {
    let name = rng.word(&NAMES);
    let mut add = |name: &str, value: Json| drop(fields.insert(name.to_owned(), value));
    add("name", Json::from(name));
    add("timestamp", shown(at_ms));
    if name.starts_with("page") || rng.chance(30) {
        let source = rng.word(&["", "", "", "?utm_source=newsletter&utm_medium=email", "?gclid=x"]);
        add("url", Json::from(format!("https://shop.example{}{source}", rng.word(&PATHS))));
    }
    if name == "order" || name == "refund" {
        let value = rng.word(if name == "order" { &["10", "2.5", "0.1"] } else { &["-5", "-0.1", "-0.123456"] });
        add("value", Json::from(Decimal::parse(value).expect("a number")));
        add("currency", Json::from(rng.word(&["USD", "USD", "EUR", "CHF"])));
    }
    if rng.chance(30) {
        add("metadata", Json::object([("plan", Json::from(rng.word(&["pro", "free"])))]));
    }
    if rng.chance(8) {
        add("non_interaction", Json::from(true));
    }
    Object(fields)
}
