//! What chooses the events of a question: names, filters, segments, conditions on people, goals.

use crate::rng::Rng;
use crate::values::{BUYERS, FILTERS, GOALS, SEGMENTS, goals};
use headcount_model::{Json, Question};

/// Generates what chooses events in questions about single events.
pub(crate) fn chosen(rng: &mut Rng, body: &mut Vec<(&'static str, Json)>) {
    if rng.chance(25) {
        body.push(("event_name", Json::from(rng.word(&["order", "pageview", "nothing"]))));
    }
    let filters = if rng.chance(50) { rng.below(3) + 1 } else { 0 };
    let filters: Vec<_> = (0..filters).map(|_| clause(rng, &|rng| filter(rng, &FILTERS))).collect();
    if !filters.is_empty() {
        body.push(("filters", Json::List(filters)));
    }
    if rng.chance(10) {
        body.push(("segment", Json::parse(rng.word(&SEGMENTS)).expect("JSON")));
    }
}

/// Generates a condition on people.
fn people(rng: &mut Rng) -> Json {
    let mut events = Vec::new();
    if rng.chance(50) {
        events.push(("event_name", Json::from(rng.word(&["order", "pageview", "signup", "nothing"]))));
    }
    if rng.chance(40) {
        let any = |rng: &mut Rng| if rng.chance(40) { filter(rng, &SESSION_FILTERS) } else { filter(rng, &FILTERS) };
        events.push(("filters", Json::List(vec![clause(rng, &any)])));
    }
    if rng.chance(20) {
        events.push(("goal", Json::parse(rng.word(&GOALS)).expect("JSON")));
    }
    let mut condition = vec![(rng.word(&["did", "did", "did_not"]), object(events))];
    if rng.chance(50) {
        condition.push(("at_least", Json::from(rng.below(4) + 1)));
    }
    let days = object(vec![("days", Json::from(*rng.pick(&[1, 2, 30, 365])))]);
    let within = [Json::from("window"), Json::from("ever"), days];
    if rng.chance(70) {
        condition.push(("within", rng.pick(&within).clone()));
    }
    object(condition)
}

/// The field, the operator and the JSON of the operand of a filter.
type FilterValues = (&'static str, &'static str, &'static str);

pub(crate) fn filter(rng: &mut Rng, filters: &[FilterValues]) -> Json {
    let &(field, operator, value) = rng.pick(filters);
    let value = Json::parse(value).expect("JSON");
    let mut filter = vec![("field", Json::from(field)), ("operator", Json::from(operator))];
    filter.extend((value != Json::Null).then_some(("value", value)));
    object(filter)
}

/// A filter, or alternatives of some.
pub(crate) fn clause(rng: &mut Rng, filter: &dyn Fn(&mut Rng) -> Json) -> Json {
    if rng.chance(65) {
        return filter(rng);
    }
    let list = |rng: &mut Rng| Json::List((0..=rng.below(2)).map(|_| filter(rng)).collect());
    object(vec![("any", Json::List((0..=rng.below(3)).map(|_| list(rng)).collect()))])
}

/// Filters on what only questions about sessions know.
pub(crate) const SESSION_FILTERS: [FilterValues; 10] = [
    ("source", "is", r#""(direct)""#),
    ("source", "is_not", r#""google""#),
    ("source", "is_set", "null"),
    ("medium", "is", r#"["email", "cpc"]"#),
    ("medium", "is", r#""(none)""#),
    ("campaign", "contains", r#""SPRING""#),
    ("exit_url", "contains", r#""/A""#),
    ("exit_url", "is_not_set", "null"),
    ("source", "starts_with", r#""GOO""#),
    ("exit_url", "matches", r#""https://shop.example/*""#),
];

/// Generates what chooses events in questions about sessions.
pub(crate) fn chosen_in_sessions(rng: &mut Rng, body: &mut Vec<(&'static str, Json)>) {
    let known: Vec<&str> = body.iter().map(|(name, _)| *name).collect();
    assert!(!known.contains(&"filters"));
    chosen(rng, body);
    if !rng.chance(40) {
        return;
    }
    let filter = clause(rng, &|rng| if rng.chance(60) { filter(rng, &SESSION_FILTERS) } else { filter(rng, &FILTERS) });
    match body.iter_mut().find(|(name, _)| *name == "filters") {
        Some((_, Json::List(filters))) => filters.push(filter),
        _ => body.push(("filters", Json::List(vec![filter]))),
    }
}

/// Adds conditions on people to some questions with a body.
pub(crate) fn of_people(mut question: Question, rng: &mut Rng) -> Question {
    if let Some(Json::Object(body)) = &mut question.body {
        if rng.chance(25) {
            let people = Json::List((0..=rng.below(2)).map(|_| people(rng)).collect());
            if body.contains_key("goals") && people.to_string().contains("\"goal\"") {
                body.insert("goals".to_owned(), Json::list(goals()));
            }
            body.insert("people".to_owned(), people);
        }
        if rng.chance(5) {
            body.insert("segment".to_owned(), Json::parse(BUYERS).expect("JSON"));
        }
    }
    question
}

/// Generates the goal whose converters are counted.
pub(crate) fn goal(rng: &mut Rng, body: &mut Vec<(&'static str, Json)>) {
    if rng.chance(30) {
        body.push(("goal", Json::parse(rng.word(&GOALS)).expect("JSON")));
    }
}

/// An object of JSON.
pub(crate) fn object(fields: Vec<(&'static str, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
