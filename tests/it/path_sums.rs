//! Sums that must fit, whatever the figures are: rows and wholes, links and nodes, lists of people
//! and counts, goals and reports.

use std::collections::{BTreeMap, BTreeSet};

use headcount_histories::{History, Rng, Served, Size, Step, Subject, model_of, run, scans};
use headcount_model::{Json, Question};
use serde_json::{Value, json};

use crate::server::TestServer;
use crate::tenant::{Tenant, now_ms};

const HISTORIES: u64 = 4;

/// What is asked of the server, as other JSON.
fn asked(subject: &mut Served<Tenant>, path: &str, body: &Value) -> Value {
    let body = Json::parse(&body.to_string()).expect("JSON");
    let (status, answer) = subject.ask(&Question::post(path, body));
    assert_eq!(status, 200, "{answer}");
    serde_json::from_str(&answer.to_string()).expect("JSON")
}

fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a count"))
}

fn counts(values: &Value) -> Vec<u64> {
    values.as_array().expect("a list").iter().map(count).collect()
}

/// The ids of all who are listed, read in pages of two.
fn everybody(subject: &mut Served<Tenant>, path: &str, funnel: &Value, step: usize, outcome: &str) -> BTreeSet<String> {
    let mut body = funnel.clone();
    let fields = body.as_object_mut().expect("an object");
    ["compare", "breakdown"].iter().for_each(|field| drop(fields.remove(*field)));
    fields.extend([("step".to_owned(), json!(step)), ("outcome".to_owned(), json!(outcome)), ("limit".to_owned(), json!(2))]);
    let mut found = BTreeSet::new();
    loop {
        let page = asked(subject, &format!("{path}/people"), &body);
        for person in page["people"].as_array().expect("people") {
            let id = person.get("identity_id").or(person.get("company_id")).expect("an id").to_string();
            assert!(found.insert(id), "{person} is listed twice");
        }
        if page["next"].is_null() {
            return found;
        }
        body["cursor"] = page["next"].clone();
    }
}

fn check_funnel(subject: &mut Served<Tenant>, path: &str, funnel: &Value) -> usize {
    let answer = asked(subject, path, funnel);
    let entities: Vec<u64> = answer["steps"].as_array().expect("steps").iter().map(|step| count(&step["entities"])).collect();
    assert!(entities.is_sorted_by(|more, fewer| more >= fewer), "{answer}");
    if let Some(rows) = answer["breakdown"].as_array().filter(|_| answer["truncated"] == false) {
        let mut sums = vec![0; entities.len()];
        rows.iter().for_each(|row| sums.iter_mut().zip(counts(&row["steps"])).for_each(|(sum, count)| *sum += count));
        assert_eq!(sums, entities, "{answer}");
    }
    let reached: Vec<BTreeSet<String>> =
        (1..=entities.len()).map(|step| everybody(subject, path, funnel, step, "reached")).collect();
    for (step, those) in reached.iter().enumerate() {
        let next = reached.get(step + 1).cloned().unwrap_or_default();
        let dropped = everybody(subject, path, funnel, step + 1, "dropped");
        let is_last = step + 1 == reached.len();
        assert_eq!(those.len() as u64, entities[step], "step {step} of {answer}");
        assert_eq!(dropped.len() as u64, count(&answer["steps"][step]["dropped"]), "step {step} of {answer}");
        let went_no_further: BTreeSet<String> = if is_last { BTreeSet::new() } else { &reached[step] - &next };
        assert_eq!(dropped, went_no_further, "step {step} of {answer}");
    }
    reached[0].len()
}

fn check_journeys(answer: &Value) -> u64 {
    let steps = answer["steps"].as_array().expect("steps");
    let (mut into, mut out) = (BTreeMap::new(), BTreeMap::new());
    for link in answer["links"].as_array().expect("links") {
        let (step, sessions) = (count(&link["step"]), count(&link["sessions"]));
        *into.entry((step, link["to"].to_string())).or_insert(0) += sessions;
        *out.entry((step - 1, link["from"].to_string())).or_insert(0) += sessions;
    }
    for (number, step) in (1..).zip(steps) {
        for node in step["nodes"].as_array().expect("nodes") {
            let at = (number, node["value"].to_string());
            let (sessions, exits) = (count(&node["sessions"]), count(&node["exits"]));
            assert!(count(&node["users"]) <= sessions, "{node}");
            if number > 1 {
                assert_eq!(into.get(&at), Some(&sessions), "{node} of {answer}");
            }
            if usize::try_from(number).is_ok_and(|number| number < steps.len()) {
                assert_eq!(out.get(&at).copied().unwrap_or(0) + exits, sessions, "{node} of {answer}");
            }
        }
    }
    let sessions = count(&answer["sessions"]);
    let of_first = steps.first().map_or(0, |step| {
        let nodes = step["nodes"].as_array().expect("nodes");
        nodes.iter().map(|node| count(&node["sessions"])).sum()
    });
    assert_eq!(of_first, sessions, "{answer}");
    sessions
}

/// Each goal's figures are those of a report with what the goal asks for.
fn check_goals(subject: &mut Served<Tenant>, project: &str, first_day: &str) {
    let window = json!({"start_date": first_day});
    for (name, page) in [("order", None), ("signup", None), ("", Some("/**"))] {
        let goal = match page {
            None => json!({"name": name, "event_name": name}),
            Some(page) => json!({"name": "page", "page": page}),
        };
        let made = subject.server.post(&format!("/projects/{project}/goals"), &goal).ok(201);
        let mut body = window.clone();
        body["filters"] = match page {
            None => json!([{"field": "name", "operator": "is", "value": name}]),
            Some(page) => json!([
                {"field": "name", "operator": "is", "value": ["pageview", "page_view", "$pageview", "page"]},
                {"field": "path", "operator": "matches", "value": page}
            ]),
        };
        let report = subject.server.post(&format!("/projects/{project}/analytics/report"), &body).ok(200);
        let goals = subject.server.post(&format!("/projects/{project}/analytics/goals"), &window).ok(200);
        let figures = goals["goals"].as_array().expect("goals").iter().find(|row| row["goal_id"] == made["goal_id"]).expect("it");
        assert_eq!(figures["conversions"], report["totals"]["events"], "{goal}: {figures} {report}");
        assert_eq!(figures["converters"], report["totals"]["unique_users"], "{goal}: {figures} {report}");
        assert!(count(&figures["converters"]) <= count(&goals["unique_users"]), "{goals}");
    }
}

#[test]
fn rows_links_and_lists_add_up() {
    let server = TestServer::shared();
    let (mut people, mut sessions) = (0, 0);
    for seed in 9_000..9_000 + HISTORIES {
        let history = History::from_seed(seed, now_ms(), Size { events: 120, questions: 0 }).with_walks();
        let events = history.steps.iter().filter(|step| !matches!(step, Step::Ask(_) | Step::Restart)).cloned().collect();
        let history = history.with_steps(events);
        let mut subject = Served::new(Tenant::on(&server));
        if let Err(failure) = run(&history, &mut subject, model_of(&history)) {
            panic!("seed {seed}: {failure}\n{history}");
        }
        for question in scans(&history, &mut Rng::new(seed), 200) {
            let body: Value =
                question.body.as_ref().map_or(Value::Null, |body| serde_json::from_str(&body.to_string()).expect("JSON"));
            if subject.ask(&question).0 != 200 {
                continue;
            }
            if question.path.ends_with("/funnel") {
                people += check_funnel(&mut subject, &question.path, &body);
            } else if question.path.ends_with("/journeys") {
                sessions += check_journeys(&asked(&mut subject, &question.path, &body));
            }
        }
        let (project, _) = subject.project("shop").expect("the project");
        let first_day = history.days.iter().min().expect("a day").to_string();
        check_goals(&mut subject, &project, &first_day);
    }
    println!("{people} people in funnels, {sessions} sessions in journeys");
    assert!(people > 150 && sessions > 250, "{people} people, {sessions} sessions");
}
