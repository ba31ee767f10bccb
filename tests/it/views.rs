//! Kept answers: the same questions are asked after every few events of random histories, while
//! events are sealed, and after restarts. Each answer must be the model's.

use std::sync::Arc;

use headcount_histories::{History, Rng, Served, Size, Step, model_of, run, scans};
use headcount_model::Question;
use serde_json::{Value, json};

use crate::archive::KeepSealing;
use crate::client::Call;
use crate::server::TestServer;
use crate::tenant::{Tenant, now_ms};

const TRIALS: u64 = 12;
const QUESTIONS: usize = 10;
/// The number of steps after which all questions are asked again.
const ASKED_EACH: usize = 6;

/// A history whose questions are asked again and again.
fn history(seed: u64) -> (History, Vec<Question>) {
    let history = History::from_seed(seed, now_ms(), Size { events: 70, questions: 0 }).with_walks();
    let mut questions = scans(&history, &mut Rng::new(seed), QUESTIONS);
    questions.extend(scans(&history, &mut Rng::new(seed), 400).into_iter().find(are_goals_of_events));
    let mut steps = Vec::new();
    let mut sent = 0;
    for step in history.steps.iter().filter(|step| !matches!(step, Step::Ask(_))) {
        // A restart takes a second, and forgets what is kept.
        if *step == Step::Restart && !seed.is_multiple_of(4) {
            continue;
        }
        steps.push(step.clone());
        sent += 1;
        if sent % ASKED_EACH == 0 {
            steps.extend(questions.iter().cloned().map(Step::Ask));
        }
    }
    // Twice without an event in between.
    steps.extend(questions.iter().chain(&questions).cloned().map(Step::Ask));
    (history.with_steps(steps), questions)
}

/// Whether a question is about goals whose users are kept, and advanced by later events.
fn are_goals_of_events(question: &Question) -> bool {
    let Some(body) = question.body.as_ref().filter(|_| question.path.ends_with("/analytics/goals")) else { return false };
    !["\"filters\"", "\"people\"", "\"segment\""].iter().any(|chosen| body.to_string().contains(chosen))
}

fn metric(server: &TestServer, name: &str) -> u64 {
    let text = server.send(&Call::get("/metrics").header("host", "localhost")).text();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
}

fn ask_again_and_again(settings: &[&str], first_seed: u64) -> (Arc<TestServer>, u64) {
    let server = Arc::new(TestServer::start_with(settings));
    let sealing = KeepSealing::on(&server);
    for seed in first_seed..first_seed + TRIALS {
        let (history, _) = history(seed);
        if let Err(failure) = run(&history, &mut Served::new(Tenant::on(&server)), model_of(&history)) {
            panic!("seed {seed}: {failure}\n{history}");
        }
    }
    let sealed = sealing.stop();
    (server, sealed)
}

#[test]
fn what_is_asked_again_equals_the_model() {
    let (server, sealed) = ask_again_and_again(&[], 9_000);
    assert!(sealed > 0, "nothing was sealed meanwhile");
    let hits = metric(&server, "headcount_view_hits_total");
    assert!(hits > 50, "{hits} hits");
    assert!(metric(&server, "headcount_views") > 0 && metric(&server, "headcount_view_bytes") > 0);
}

#[test]
fn what_is_evicted_equals_the_model() {
    let (server, _) = ask_again_and_again(&["--view-memory=6000"], 9_100);
    assert!(metric(&server, "headcount_view_evictions_total") > 0);
    assert!(metric(&server, "headcount_view_bytes") <= 6_000);
}

#[test]
fn nothing_is_kept_without_memory_for_it() {
    let server = Arc::new(TestServer::start_with(&["--view-memory=0"]));
    let tenant = Tenant::on(&server);
    let body = json!({"start_date": "2024-01-01", "group_by": "name"});
    for _ in 0..2 {
        tenant.post(&tenant.path("analytics/aggregate"), &body).ok(200);
    }
    let figures = ["headcount_views", "headcount_view_bytes", "headcount_view_hits_total", "headcount_view_misses_total"];
    assert_eq!(figures.map(|name| metric(&server, name)), [0, 0, 0, 2]);
}

/// Many different questions, each about a property with many values.
#[test]
fn many_questions_keep_little() {
    const VALUES: usize = 8_000;
    let server = Arc::new(TestServer::start_with(&["--memory=64MiB"]));
    let tenant = Tenant::on(&server);
    for numbers in (0..VALUES).collect::<Vec<_>>().chunks(4_000) {
        let event = |number: &usize| json!({"name": "a", "anonymous_id": format!("a{number}"), "metadata": {"value": number}});
        let events: Vec<Value> = numbers.iter().map(event).collect();
        let call = Call::post(tenant.path("batch")).bearer(&tenant.token).json(&json!({ "events": events }));
        assert_eq!(tenant.send(call).ok(202)["recorded"], events.len());
    }
    for number in 1..=80 {
        let body = json!({"start_date": "2024-01-01", "metadata_field": "value", "limit": number});
        let answer = tenant.post(&tenant.path("analytics/aggregate"), &body).ok(200);
        assert_eq!(answer["total_groups"].as_u64(), Some(VALUES as u64));
        let filter = json!({"field": "metadata.value", "operator": "lt", "value": number * 100});
        let body = json!({"start_date": "2024-01-01", "filters": [filter]});
        let answer = tenant.post(&tenant.path("analytics/count-unique-users-per-day"), &body).ok(200);
        assert_eq!(answer["total_unique_users"].as_u64(), Some(number * 100));
    }
    assert!(metric(&server, "headcount_view_bytes") <= 4 << 20);
    assert!(metric(&server, "headcount_views") <= 64);
    assert!(metric(&server, "headcount_view_evictions_total") >= 96);
}
