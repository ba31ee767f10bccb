//! Random histories over HTTP while events are sealed, each in an organization of its own, compared
//! with the naive model to the last cell.
//!
//! `HEADCOUNT_TRIALS` says how many histories, `HEADCOUNT_FIRST_SEED` from which seed on.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use headcount_common::PARTITIONS;
use headcount_domain::ProjectId;
use headcount_domain::cells::StoredCells as _;
use headcount_domain::cells::packed::Packed;
use headcount_domain::rollups::{Revenue, TrafficByTouch, UniqueUsers};
use headcount_histories::{
    Care, Coverage, History, Rng, Served, Size, Step, Subject, compare, is_of_server, minimize, model_of, questions, regressions,
    run, sender_of,
};
use headcount_model::served::ignored;
use headcount_model::{Ids, Json, Model, Question, same};
use headcount_storage::codec;
use headcount_storage::keyspace::{Key, PartitionId};
use headcount_storage::store::{DiskStore, Store, StoreOptions};
use serde_json::{Value, json};

use crate::archive::KeepSealing;
use crate::client::Call;
use crate::not_yet::is_not_yet;
use crate::server::{TestServer, command};
use crate::tenant::{Tenant, away_from_midnight, now_ms};

/// How many histories, unless `HEADCOUNT_TRIALS` says otherwise: some for each run of the tests.
/// The domain, without HTTP, runs ten times as many.
const TRIALS: u64 = 20;
/// One in this many restarts of a history is a real one: real restarts are slow, and other tests
/// wait for them.
const RESTART_EACH: u64 = 2;
/// How many histories between two verifications.
const VERIFIED_EACH: u64 = 10;
/// The group of rollups among the keys of the store.
const ROLLUPS: u8 = 2;

pub(crate) fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

pub(crate) fn can_be_asked(question: &Question) -> bool {
    !is_not_yet(&question.path)
}

/// The history of a seed, without what can't be asked yet.
pub(crate) fn history(seed: u64) -> History {
    let history = History::from_seed(seed, now_ms(), Size { events: 80, questions: 60 });
    let stays = |step: &&Step| match step {
        Step::Ask(question) => can_be_asked(question),
        Step::Restart => seed.is_multiple_of(RESTART_EACH),
        _ => true,
    };
    let steps = history.steps.iter().filter(stays).cloned().collect();
    let history = history.with_steps(steps);
    // Floors rise in some of them, as the retention of their projects says.
    if seed % 5 >= 3 { history.with_floors() } else { history }
}

fn trial(server: &Arc<TestServer>, seed: u64) -> Result<Coverage, String> {
    let history = history(seed).with_hints();
    let fails = |history: &History| run(history, &mut Served::new(Tenant::on(server)), model_of(history));
    fails(&history).map_err(|failure| {
        let small = minimize(&history, |history| fails(history).is_err());
        let failure = fails(&small).err().unwrap_or(failure);
        format!("seed {seed}: {failure}\n{small}")
    })
}

#[test]
fn every_answer_equals_the_model() {
    let server = Arc::new(TestServer::start());
    let sealing = KeepSealing::on(&server);
    let first = number("HEADCOUNT_FIRST_SEED", 0);
    let mut coverage = Coverage::default();
    let mut failures = Vec::new();
    for seed in first..first + number("HEADCOUNT_TRIALS", TRIALS) {
        match trial(&server, seed) {
            Ok(seen) => coverage.merge(&seen),
            Err(failure) => failures.push(failure),
        }
        assert!(failures.len() < 3, "{}", failures.join("\n\n"));
        if seed % VERIFIED_EACH == VERIFIED_EACH - 1 {
            let report = server.send(&Call::post("/admin/verify").bearer(&server.operator())).ok(200);
            assert_eq!(report["status"], "clean", "after seed {seed}: {report}");
        }
    }
    let sealed = sealing.stop();
    flipped_cells_are_named(&server, first);
    println!("{coverage}{sealed} events sealed");
    assert!(sealed > 0, "nothing was sealed meanwhile");
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Flips a cell of some rollups in the stopped directory, and verifies that these are named, and
/// nothing without them.
fn flipped_cells_are_named(server: &TestServer, seed: u64) {
    let verify = |dir: &Path| -> Value {
        let output = command("verify", dir).arg("--json").output().expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
    };
    server.stopped(|dir| {
        let before = verify(dir);
        assert_eq!(before["status"], "clean", "{before}");
        let flipped = flip_cells(dir, &mut Rng::new(seed));
        let report = verify(dir);
        assert_eq!((&report["status"], &report["differing"]), (&json!("differs"), &json!(flipped.len())), "{report}");
        let cells = report["cells"].as_array().expect("cells").iter();
        let cell = |cell: &Value| ["project_id", "rollup"].map(|name| cell[name].as_str().expect("a text").to_owned());
        let named: BTreeMap<[String; 2], String> = cells.map(|one| (cell(one), one.to_string())).collect();
        for (project, rollup, pair) in &flipped {
            assert!(named.contains_key(&[project.clone(), rollup.clone()]), "{project} {rollup} in {report}");
            restore(dir, pair);
        }
        let after = verify(dir);
        assert_eq!((&after["status"], &after["projects"]), (&json!("clean"), &before["projects"]), "{after}");
    });
}

/// A key and its value.
type Pair = (Vec<u8>, Vec<u8>);

/// Flips a cell of a random project in each of three rollups. Returns project, rollup and the
/// former pair.
fn flip_cells(dir: &Path, rng: &mut Rng) -> Vec<(String, String, Pair)> {
    let store = DiskStore::open(&dir.join("store"), StoreOptions::default()).expect("the store");
    let mut flipped = Vec::new();
    for (wanted, wanted_tag) in
        [(Revenue::NAME, Revenue::TAG), (TrafficByTouch::NAME, TrafficByTouch::TAG), (UniqueUsers::NAME, UniqueUsers::TAG)]
    {
        let mut pairs = Vec::new();
        for partition in 0..PARTITIONS {
            let visit = &mut |key: &[u8], value: &[u8]| {
                if Key::decode(key).is_ok_and(|key| matches!(key, Key::Cells { tag, .. } if tag == wanted_tag)) {
                    pairs.push((key.to_vec(), value.to_vec()));
                }
                ControlFlow::Continue(())
            };
            store.scan(&[&partition.to_be_bytes()[..], &[ROLLUPS]].concat(), visit).expect("the pairs");
        }
        let (key, value) = rng.pick(&pairs).clone();
        let mut part: Packed = codec::decode(1, &value).expect("a part");
        let at = rng.below(part.count());
        let mut columns = part.columns(at);
        columns[0] ^= 2;
        part.set(at, &columns);
        put(&store, &key, &codec::encode(1, &part).expect("a part"));
        let Ok(Key::Cells { project, .. }) = Key::decode(&key) else { panic!("{key:?}") };
        flipped.push((ProjectId(project).to_string(), wanted.to_owned(), (key, value)));
    }
    flipped
}

fn put(store: &DiskStore, key: &[u8], value: &[u8]) {
    let mut checkpoint = store.begin(PartitionId::of_key(key).expect("a key")).expect("a checkpoint");
    checkpoint.put(key, value).expect("a pair");
    checkpoint.commit().expect("it is saved");
}

fn restore(dir: &Path, (key, value): &Pair) {
    put(&DiskStore::open(&dir.join("store"), StoreOptions::default()).expect("the store"), key, value);
}

/// The histories with a name.
#[test]
fn what_once_was_hard_stays_right() {
    away_from_midnight();
    let server = TestServer::shared();
    for regression in regressions(now_ms(), Care::AtTheEnd) {
        // Other tests share the server: it is not stopped here.
        let mut regression = regression;
        regression.history.steps.retain(|step| *step != Step::Restart);
        let outcome = regression.run(&mut Served::new(Tenant::on(&server)));
        assert!(outcome.is_ok(), "{}: {}", regression.name, outcome.unwrap_err());
    }
}

/// A project is deleted in the middle of a history: it is unknown from then on, and the other
/// projects and the organization answer as if it had never been.
#[test]
fn a_deleted_project_leaves_no_trace() {
    away_from_midnight();
    let server = Arc::new(TestServer::start());
    let sealing = KeepSealing::on(&server);
    let mut compared = 0;
    for seed in (3000..3200).filter(|seed| !history(*seed).live && history(*seed).projects.len() > 1).take(12) {
        let history = history(seed);
        let mut rng = Rng::new(seed);
        let gone = rng.pick(&history.projects).name.clone();
        let at = rng.below(history.steps.len() + 1);
        let mut served = Served::new(Tenant::on(&server));
        served.setup(&history);
        let mut model = model_of(&history);
        let (before, after) = history.steps.split_at(at);
        before.iter().for_each(|step| send(&mut served, &mut model, step));
        let path = format!("/projects/{}", id_of(&served.server, &gone));
        assert_eq!(served.server.delete(&path).status, 204, "{gone} of {history}");
        model.delete_project(&gone);
        let of_gone = |step: &&Step| match step {
            Step::Track { project, .. }
            | Step::Batch { project, .. }
            | Step::Settings { project, .. }
            | Step::Floor { project, .. } => *project == gone,
            Step::Rates(_) | Step::Restart | Step::Clock { .. } | Step::Ask(_) => false,
        };
        after.iter().filter(|step| !of_gone(step)).for_each(|step| send(&mut served, &mut model, step));
        let mut ids = Ids::default();
        let asked = questions(&history, &mut rng, 120);
        let comparable = |question: &&Question| {
            can_be_asked(question) && !question.path.contains("{company:") && !question.path.ends_with("/top-users")
        };
        for question in asked.iter().filter(comparable) {
            let got = served.ask(question);
            if question.path.contains(&format!("{{{gone}}}")) {
                assert_eq!(got.0, 404, "{question:?} of {history}");
                continue;
            }
            let same = compare(model.answer(now_ms(), question), got, &mut ids);
            assert!(same.is_ok(), "{same:?} at {question:?} without {gone} from step {at} of {history}");
            compared += 1;
        }
    }
    sealing.stop();
    println!("{compared} answers compared");
    assert!(compared >= 500, "{compared} answers compared");
    let ends =
        || server.send(&Call::get("/metrics").header("host", "localhost")).text().contains("\nheadcount_deletions_pending 0\n");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !ends() {
        assert!(std::time::Instant::now() < until, "the deletions don't end");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// Sends what a step sends to both.
pub(crate) fn send(served: &mut impl Subject, model: &mut Model, step: &Step) {
    let mut record = |project: &str, body: &str| drop(model.record(project, body, now_ms(), &sender_of(body)));
    match step {
        Step::Track { project, body } => {
            record(project, body);
            drop(served.track(project, body));
        }
        Step::Batch { project, bodies } => {
            bodies.iter().for_each(|body| record(project, body));
            drop(served.batch(project, bodies));
        }
        Step::Rates(rates) => {
            served.rates(rates);
            model.set_rates(rates.clone());
        }
        Step::Settings { project, body } => {
            served.settings(project, body);
            model.ignore_referrers(project, ignored(body));
        }
        Step::Restart => served.restart(),
        Step::Floor { project, day } => {
            served.raise_floor(project, *day);
            model.raise_floor(project, *day);
        }
        Step::Clock { ahead_ms } => served.set_clock(*ahead_ms),
        Step::Ask(_) => {}
    }
}

/// Removes the time of receipt, which no two runs share.
fn forget_receipt(intake: &mut Json) {
    if let Json::Object(fields) = intake {
        fields.remove("last_event_at");
    }
}

/// The same events in the same order, one at a time here, and there in batches of each project.
#[test]
fn batching_changes_no_answer() {
    let server = TestServer::shared();
    let mut compared = 0;
    for seed in (1000..1040).filter(|seed| !history(*seed).live).take(6) {
        let history = history(seed);
        let (mut singly, mut batched) = (Served::new(Tenant::on(&server)), Served::new(Tenant::on(&server)));
        singly.setup(&history);
        batched.setup(&history);
        let chunk = 2 + usize::try_from(seed % 9).expect("a small number");
        for project in &history.projects {
            // A batch is sent with a public key.
            let events: Vec<String> = events_of(&history, &project.name).into_iter().filter(|body| !is_of_server(body)).collect();
            for event in &events {
                singly.track(&project.name, event);
            }
            for events in events.chunks(chunk) {
                batched.batch(&project.name, events);
            }
        }
        let mut ids = Ids::default();
        let mut asked = questions(&history, &mut Rng::new(seed), 80);
        asked
            .extend(history.steps.iter().filter_map(|step| if let Step::Ask(asked) = step { Some(asked.clone()) } else { None }));
        for question in asked.iter().filter(|question| can_be_asked(question)) {
            let (mut one, mut other) = (singly.ask(question), batched.ask(question));
            if question.path.ends_with("/intake") {
                [&mut one.1, &mut other.1].into_iter().for_each(forget_receipt);
            }
            if one.0 == 200 {
                let same = same(&with_ids(one.1), &other.1, &mut ids);
                assert!(same.is_ok(), "{same:?} at {question:?} of {history}");
                compared += 1;
            }
            assert_eq!(one.0, other.0, "{question:?} of {history}");
        }
    }
    assert!(compared >= 100, "{compared} answers compared");
}

pub(crate) fn id_of(tenant: &Tenant, name: &str) -> String {
    let listed = tenant.get("/projects").ok(200);
    let project = listed["projects"].as_array().expect("projects").iter().find(|project| project["name"] == name);
    project.and_then(|project| project["project_id"].as_str()).expect("the project").to_owned()
}

/// The answer with its ids as names: those of another organization are others, but the same ones in
/// the same places.
pub(crate) fn with_ids(answer: Json) -> Json {
    match answer {
        Json::Object(fields) => Json::Object(
            fields
                .into_iter()
                // Each recording has its own.
                .filter(|(name, _)| !matches!(&**name, "id" | "event_id" | "position" | "received_at" | "visitor_id" | "next"))
                .map(|(name, value)| match value {
                    Json::Text(id) if matches!(&*name, "identity_id" | "company_id") => (name, Json::Id(id)),
                    value => (name, with_ids(value)),
                })
                .collect(),
        ),
        Json::List(items) => Json::List(items.into_iter().map(with_ids).collect()),
        other => other,
    }
}

fn events_of(history: &History, project: &str) -> Vec<String> {
    let mut events = Vec::new();
    for step in &history.steps {
        match step {
            Step::Track { project: of, body } if of == project => events.push(body.clone()),
            Step::Batch { project: of, bodies } if of == project => events.extend(bodies.iter().cloned()),
            _ => {}
        }
    }
    events
}
