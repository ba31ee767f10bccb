//! Aggregates and filtered unique users over random histories, compared with the naive model: at
//! rest, and while events flow.
//!
//! `HEADCOUNT_SCAN_TRIALS` says how many histories are asked at rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headcount_histories::{History, Rng, Served, Size, Step, Subject, model_of, run, scans};
use headcount_model::{Ids, Json, Model, Question, Sender, same};
use serde_json::{Value, json};

use crate::archive::seal;
use crate::client::Call;
use crate::server::TestServer;
use crate::tenant::{Tenant, away_from_midnight, now_ms, rfc3339};

const TRIALS: u64 = 8;
const QUESTIONS: usize = 40;

/// The events of a random history, without questions.
fn events_only(seed: u64, events: usize) -> History {
    let history = History::from_seed(seed, now_ms(), Size { events, questions: 0 });
    let steps = history.steps.iter().filter(|step| !matches!(step, Step::Ask(_))).cloned().collect();
    let history = history.with_steps(steps);
    if seed % 2 == 1 { history.with_floors() } else { history }
}

/// The same, in which people mostly take many steps.
fn with_walks(history: &History) -> History {
    if history.seed % 4 < 3 { history.with_walks() } else { history.clone() }
}

/// The same, without restarts: other tests share the server.
fn undisturbed(seed: u64, events: usize) -> History {
    let history = events_only(seed, events);
    history.with_steps(history.steps.iter().filter(|step| **step != Step::Restart).cloned().collect())
}

#[test]
fn scans_equal_the_model() {
    let server = TestServer::shared();
    let trials = std::env::var("HEADCOUNT_SCAN_TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(TRIALS);
    let mut pairs = 0;
    for seed in 5_000..5_000 + trials {
        let history = with_walks(&undisturbed(seed, 120));
        let mut steps = history.steps.clone();
        steps.extend(scans(&history, &mut Rng::new(seed), QUESTIONS).into_iter().map(Step::Ask));
        let history = history.with_steps(steps);
        if let Err(failure) = run(&history, &mut Served::new(Tenant::on(&server)), model_of(&history)) {
            panic!("seed {seed}: {failure}\n{history}");
        }
        pairs += QUESTIONS;
    }
    println!("{pairs} pairs of a history and a question");
}

/// The same questions, of the log and then of the archive, where they are read by column.
#[test]
fn sealing_changes_no_answer() {
    // Nothing is kept, so that each answer is a scan.
    let server = Arc::new(TestServer::start_with(&["--view-memory=0"]));
    let trials = std::env::var("HEADCOUNT_SCAN_TRIALS").ok().and_then(|trials| trials.parse().ok()).unwrap_or(TRIALS);
    let mut sealed = 0;
    for seed in 7_000..7_000 + trials {
        let history = with_walks(&events_only(seed, 120));
        let questions = scans(&history, &mut Rng::new(seed), QUESTIONS);
        let mut steps = history.steps.clone();
        steps.extend(questions.iter().cloned().map(Step::Ask));
        let history = history.with_steps(steps);
        let mut subject = Served::new(Tenant::on(&server));
        if let Err(failure) = run(&history, &mut subject, model_of(&history)) {
            panic!("seed {seed}: {failure}\n{history}");
        }
        let logged: Vec<(u16, Json)> = questions.iter().map(|question| subject.ask(question)).collect();
        sealed += seal(&server).expect("it seals").1;
        if seed % 4 == 1 {
            server.kill();
        }
        // Refusals have ids of their own.
        for (question, logged) in questions.iter().zip(&logged).filter(|(_, (status, _))| *status == 200) {
            assert_eq!(subject.ask(question), *logged, "seed {seed}: {question:?}\n{history}");
        }
    }
    assert!(sealed > trials, "{sealed} events were sealed");
}

/// Questions about all events of a project, two of them by session.
fn about_all(first_day: &str) -> Vec<Question> {
    let path = |rest: &str| format!("/projects/{{shop}}/analytics/{rest}");
    let text = |text: &str| Json::from(text);
    let filter = Json::object([("field", text("acquisition_channel")), ("operator", text("is_not")), ("value", text("Direct"))]);
    let aggregate = |group: &str| {
        let body = [("start_date", text(first_day)), ("group_by", text(group)), ("limit", Json::from(1_000))];
        Question::post(&path("aggregate"), Json::object(body))
    };
    let users = Json::object([("start_date", text(first_day)), ("filters", Json::list([filter]))]);
    vec![aggregate("name"), aggregate("entry_url"), Question::post(&path("count-unique-users-per-day"), users)]
}

/// What was asked, with how many events had been answered before, and how many had been sent after.
struct Asked {
    question: usize,
    answered_before: usize,
    sent_after: usize,
    answer: Json,
}

/// The model's answers after each number of events.
fn answers_after_each(mut model: Model, bodies: &[String], received_ms: i64, questions: &[Question]) -> Vec<Vec<Json>> {
    let answers =
        |model: &Model| -> Vec<Json> { questions.iter().map(|question| model.answer(received_ms, question).body).collect() };
    let mut after = vec![answers(&model)];
    for body in bodies {
        let _ = model.record("shop", body, received_ms, &Sender::browser());
        after.push(answers(&model));
    }
    after
}

/// Each answer is that of the model after some number of events between those that were answered
/// when it was asked and those that were sent when it came, and an answer is never older than the
/// one before.
#[test]
fn answers_while_events_flow_are_of_one_moment_and_never_go_back() {
    away_from_midnight();
    let server = TestServer::shared();
    let seed = (6_000..).find(|seed| {
        let history = events_only(*seed, 10);
        !history.live && history.projects[0].name == "shop"
    });
    let history = undisturbed(seed.expect("a seed"), 250);
    let bodies: Vec<String> = history.steps.iter().flat_map(bodies_of).collect();
    let first_day = history.days.iter().min().expect("a day").to_string();
    let questions = about_all(&first_day);
    let mut subject = Served::new(Tenant::on(&server));
    subject.setup(&history);
    let project = subject.project("shop").expect("the project");
    let tenant = subject.server;
    let (sent, answered, questioned) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut asked = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for (number, body) in bodies.iter().enumerate() {
                // Events don't run ahead of slow answers: 20 come while events flow.
                let until = Instant::now() + Duration::from_secs(60);
                while questioned.load(Ordering::SeqCst) < number * 20 / bodies.len() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(1));
                }
                sent.fetch_add(1, Ordering::SeqCst);
                let call = Call::post("/track").header("x-service-pk", &project.1).header("user-agent", crate::tenant::BROWSER);
                let status = tenant.send(call.text("application/json", body.as_str())).status;
                assert!(matches!(status, 202 | 400), "{body}: {status}");
                answered.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut number = 0;
        while answered.load(Ordering::SeqCst) < bodies.len() || number % questions.len() != 0 {
            let question = number % questions.len();
            asked.push(ask(&tenant, &project.0, &questions[question], question, (&answered, &sent)));
            number += 1;
            questioned.store(number, Ordering::SeqCst);
        }
        asked.push(ask(&tenant, &project.0, &questions[0], 0, (&answered, &sent)));
    });
    let expected = answers_after_each(model_of(&history), &bodies, now_ms(), &questions);
    let mut moment = vec![0; questions.len()];
    for Asked { question, answered_before, sent_after, answer } in &asked {
        let from = (*answered_before).max(moment[*question]);
        let is_it = |after: &usize| same(&expected[*after][*question], answer, &mut Ids::default()).is_ok();
        let found = (from..=*sent_after).find(is_it);
        moment[*question] =
            found.unwrap_or_else(|| panic!("question {question}: {answer} is of no moment in {from}..={sent_after}"));
    }
    assert!(asked.len() >= 15, "{} answers while events flow", asked.len());
    println!("{} answers to {} events", asked.len(), bodies.len());
}

fn ask(
    tenant: &Tenant,
    project: &str,
    asked: &Question,
    question: usize,
    (answered, sent): (&AtomicUsize, &AtomicUsize),
) -> Asked {
    let answered_before = answered.load(Ordering::SeqCst);
    let body: Value = serde_json::from_str(&asked.body.as_ref().expect("a body").to_string()).expect("JSON");
    let answer = tenant.post(&asked.path.replace("{shop}", project), &body);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent_after = sent.load(Ordering::SeqCst);
    Asked { question, answered_before, sent_after, answer: Json::parse(&answer.text()).expect("JSON") }
}

fn bodies_of(step: &Step) -> Vec<String> {
    match step {
        Step::Track { project, body } if project == "shop" => vec![body.clone()],
        Step::Batch { project, bodies } if project == "shop" => bodies.clone(),
        _ => Vec::new(),
    }
}

/// A property with more values than the least memory has room for, counted and summed over HTTP.
#[test]
fn many_values_are_counted_exactly() {
    const VALUES: u64 = 30_000;
    let server = Arc::new(TestServer::start_with(&["--memory=64MiB"]));
    let tenant = Tenant::on(&server);
    let batches = (0..3 * VALUES).collect::<Vec<_>>();
    for numbers in batches.chunks(5_000) {
        let event = |number: &u64| json!({"name": "a", "user_id": "u", "metadata": {"value": number % VALUES, "n": number % 7}});
        let events: Vec<Value> = numbers.iter().map(event).collect();
        let call = Call::post(tenant.path("batch")).bearer(&tenant.token).json(&json!({ "events": events }));
        assert_eq!(tenant.send(call).ok(202)["recorded"], events.len());
    }
    let body = json!({"start_date": "2024-01-01", "metadata_field": "value", "sum_metadata_field": "n", "limit": 2});
    let answer = tenant.post(&tenant.path("analytics/aggregate"), &body).ok(200);
    assert_eq!((answer["total_groups"].as_u64(), answer["truncated"].as_bool()), (Some(VALUES), Some(true)));
    let total = |value: u64| (0..3).map(|round| (value + round * VALUES) % 7).sum::<u64>();
    let mut best: Vec<u64> = (0..VALUES).collect();
    best.sort_by_key(|value| (std::cmp::Reverse(total(*value)), value.to_string()));
    for (row, value) in answer["rows"].as_array().unwrap().iter().zip(&best) {
        assert_eq!(*row, json!({"value": value, "count": 3, "total": total(*value), "summed": 3}));
    }
}

/// Answers that depend on more than the days of their window, asked again with the tag of before.
#[test]
fn scans_equal_the_model_also_after_events_of_other_days() {
    let tenant = Tenant::new();
    let day_ms = 86_400_000;
    let (then_ms, day) = (now_ms() - 20 * day_ms, rfc3339(now_ms() - 20 * day_ms)[..10].to_owned());
    let at = |name: &str, user: &str, at_ms: i64| {
        tenant.recorded(
            &json!({"name": name, "user_id": user, "timestamp": rfc3339(at_ms), "company_name": "Acme", "non_interaction": true}),
        );
    };
    at("a", "ada", then_ms);
    let window = json!({"start_date": day, "end_date": day});
    let with = |mut body: Value| {
        body.as_object_mut().expect("an object").extend(window.as_object().expect("an object").clone());
        body
    };
    let steps = json!([{"event_name": "a"}, {"event_name": "b"}]);
    let questions = [
        ("report", with(json!({"people": [{"did": {"event_name": "b"}, "within": "ever"}]})), "/totals/unique_users", 1),
        ("funnel", with(json!({"steps": steps, "within": {"days": 7}})), "/steps/1/entities", 1),
        ("funnel", with(json!({"steps": steps, "within": {"days": 7}, "level": "account"})), "/steps/1/entities", 1),
        // Such events are in no session: nobody has done both in one.
        ("funnel", with(json!({"steps": steps, "within": "session"})), "/steps/1/entities", 0),
    ];
    let path = |name: &str| tenant.path(&format!("analytics/{name}"));
    let ask = |(name, body, place, _): &(&str, Value, &str, i32), tag: &str| {
        let answer = tenant.send(Call::post(path(name)).bearer(&tenant.token).header("if-none-match", tag).json(body));
        (answer.etag(), answer.ok(200).pointer(place).cloned().unwrap_or_else(|| panic!("{name} {}", answer.text())))
    };
    let before: Vec<_> = questions.iter().map(|question| ask(question, "\"none\"")).collect();
    assert!(before.iter().all(|(_, count)| *count == 0), "{before:?}");
    at("b", "ada", then_ms + 5 * day_ms);
    for (question, (tag, _)) in questions.iter().zip(&before) {
        if question.3 > 0 {
            assert_eq!(ask(question, tag).1, question.3, "{question:?}");
        }
    }
    at("b", "ada", then_ms + 60_000);
    assert_eq!(ask(&questions[3], "\"none\"").1, 0);
}
